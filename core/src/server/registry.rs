//! The tools, resources and prompts of a server, which its connections share and which can change at run time.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde_json::Value;

use super::{
    changes::{Change, Changed, Outer},
    connection::Connection,
    handler::Components,
    visible::VisibilityFilter,
};
use crate::{error::Error, router::List, session::server::ListKind};

/// An item that can be added to a server: a [`Tool`](super::Tool), a [`Resource`](super::Resource) or a
/// [`Prompt`](super::Prompt).
pub trait Component: sealed::Sealed {
    #[doc(hidden)]
    fn register(self, components: &mut Components) -> Result<Registered, Error>;
}

/// The outcome of a registration.
#[doc(hidden)]
#[derive(Debug)]
pub struct Registered {
    pub list: List,
    pub key: String,
    /// Reasons why known hosts will not accept the item.
    pub warnings: Vec<String>,
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// Changes a server's tools, resources and prompts at run time; clients are notified of changed lists.
///
/// ```
/// # use gudgeon::{Registry, Server, Tool, List};
/// # fn main() -> Result<(), gudgeon::error::Error> {
/// let server = Server::new("shelf").tool("open", || async { "open" });
/// let registry: Registry = server.registry();
/// registry.add(Tool::new("close", || async { "closed" }))?;
/// registry.set_enabled(List::Tools, ["open"], false)?;
/// assert!(registry.remove(List::Tools, "nowhere").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    hub: Arc<Hub>,
}

impl Registry {
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }

    /// Adds an item. Errors if the name is taken or a part of it can't be used. Reasons why known hosts will not
    /// accept it are logged with `tracing` at level `warn`.
    pub fn add(&self, component: impl Component) -> Result<(), Error> {
        self.hub.add(component)
    }

    /// Removes an item. Errors if no item has this name.
    pub fn remove(&self, list: List, key: &str) -> Result<(), Error> {
        self.hub.apply(&Change::Remove(list, key.to_owned()))
    }

    /// Changes published members, given by their names in the newest revision's JSON; `null` removes a member. Names,
    /// URIs and schemas can't be changed.
    ///
    /// ```
    /// # use gudgeon::{Server, List};
    /// # let server = Server::new("shelf").tool("open", || async { "open" });
    /// let change = serde_json::json!({"description": "Open the shelf."});
    /// server.registry().update(List::Tools, "open", change)?;
    /// # Ok::<(), gudgeon::error::Error>(())
    /// ```
    pub fn update(&self, list: List, key: &str, changes: Value) -> Result<(), Error> {
        let Value::Object(changes) = changes else {
            return Err(Error::misuse("changes must be an object such as {\"description\": …}"));
        };
        self.hub.apply(&Change::Update(list, key.to_owned(), changes))
    }

    /// Shows or hides items. Hidden ones are not listed, and using them fails as if they did not exist.
    pub fn set_enabled<K: Into<String>>(
        &self,
        list: List,
        keys: impl IntoIterator<Item = K>,
        enabled: bool,
    ) -> Result<(), Error> {
        let keys = keys.into_iter().map(Into::into).collect();
        self.hub.apply(&Change::Enable { list, keys, tags: Vec::new(), enabled })
    }

    /// Shows or hides all items with the tag.
    pub fn set_tag_enabled(&self, list: List, tag: &str, enabled: bool) -> Result<(), Error> {
        let tags = vec![tag.to_owned()];
        self.hub.apply(&Change::Enable { list, keys: Vec::new(), tags, enabled })
    }

    /// Notifies all subscribers that this resource was updated (Resources, "Subscriptions").
    pub fn notify_updated(&self, uri: &str) {
        self.hub.notify(|connection| connection.updated(uri));
    }

    /// Notifies the client that a URL elicitation is finished; `elicitation` is the id that
    /// [`ask::elicit_url`](super::ask::elicit_url) is answered with (2025-11-25, Elicitation, "Completion
    /// Notifications").
    ///
    /// Other revisions have no such notification, and an unknown id has no effect.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// # let server = Server::new("shelf");
    /// server.registry().notify_url_done("550e8400-e29b");
    /// ```
    pub fn notify_url_done(&self, elicitation: &str) {
        self.hub.notify(|connection| connection.page_done(elicitation));
    }
}

/// Logs reasons why known hosts will not accept an item.
pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// The current tools, resources and prompts, and the connections to notify of changes.
pub(super) struct Hub {
    state: Mutex<State>,
    visibility_filter: Arc<VisibilityFilter>,
}

struct State {
    components: Components,
    /// The server that this one is mounted into.
    outer: Option<Outer>,
    connections: Vec<Weak<dyn Connection>>,
}

impl Hub {
    pub(super) fn new(components: Components) -> Self {
        Self {
            state: Mutex::new(State { components, outer: None, connections: Vec::new() }),
            visibility_filter: Arc::default(),
        }
    }

    /// Returns the filter that decides which items a principal sees.
    pub(super) fn visibility_filter(&self) -> Arc<VisibilityFilter> {
        Arc::clone(&self.visibility_filter)
    }

    /// Opens a connection with the current items; it is notified of all later changes.
    pub(super) fn attach<C: Connection + 'static>(
        &self,
        open: impl FnOnce(Arc<Components>) -> Arc<C>,
    ) -> Arc<C> {
        let mut state = self.lock();
        let connection = open(Arc::new(state.components.clone()));
        state.connections.retain(|it| it.strong_count() > 0);
        let weak: Weak<C> = Arc::downgrade(&connection);
        state.connections.push(weak);
        connection
    }

    /// Adds an item and logs reasons why known hosts will not accept it.
    pub(super) fn add(&self, component: impl Component) -> Result<(), Error> {
        let mut state = self.lock();
        let mut components = state.components.clone();
        let Registered { list, key, warnings } = component.register(&mut components)?;
        if let Some(outer) = &state.outer {
            outer.hub.apply(&outer.follow(list, &key, &components))?;
        }
        self.commit(&mut state, components, list.kind());
        warn(&warnings);
        Ok(())
    }

    /// Applies a change to this server and those that it is mounted into; if that fails anywhere, nothing is changed.
    /// Connections are notified only if the change makes a difference.
    fn apply(&self, change: &Change) -> Result<(), Error> {
        let mut state = self.lock();
        let mut components = state.components.clone();
        let Changed { list, warnings } = change.make(&mut components)?;
        if let Some(outer) = &state.outer {
            let above = change.above(outer, &components, &outer.hub.lock().components);
            above.map_or(Ok(()), |it| outer.hub.apply(&it))?;
        }
        if let Some(list) = list {
            self.commit(&mut state, components, list);
        }
        warn(&warnings);
        Ok(())
    }

    fn commit(&self, state: &mut State, components: Components, changed: ListKind) {
        state.components = components;
        self.visibility_filter.update(&state.components);
        let components = Arc::new(state.components.clone());
        for connection in state.connections.iter().filter_map(Weak::upgrade) {
            connection.set_components(Arc::clone(&components), vec![changed]);
            connection.flush();
        }
    }

    /// Propagates all later changes to an outer server.
    pub(super) fn follow(&self, outer: Outer) {
        self.lock().outer = Some(outer);
    }

    fn notify(&self, notify: impl Fn(&dyn Connection)) {
        self.notify_all(&notify);
    }

    fn notify_all(&self, notify: &dyn Fn(&dyn Connection)) {
        let state = self.lock();
        for connection in state.connections.iter().filter_map(Weak::upgrade) {
            notify(&*connection);
            connection.flush();
        }
        if let Some(outer) = &state.outer {
            outer.hub.notify_all(notify);
        }
    }

    /// Changes items that are not listed, before any connection exists.
    pub(super) fn edit<T>(&self, edit: impl FnOnce(&mut Components) -> T) -> T {
        let mut state = self.lock();
        let edited = edit(&mut state.components);
        self.visibility_filter.update(&state.components);
        edited
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}
