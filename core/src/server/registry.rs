//! The tools, resources and prompts of a server, which its connections share and which can change at run time.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde_json::Value;

use super::{
    changes::{Change, Outer},
    connection::Connection,
    handler::{self, Components, Erased},
    middleware::Stack,
    state::States,
    visible::VisibilityFilter,
};
use crate::{
    error::Error,
    router::{Handler, List, Registrar, late_route},
    session::server::ListKind,
};

/// An item that can be added to a server: a [`Tool`](super::Tool), a [`Resource`](super::Resource) or a
/// [`Prompt`](super::Prompt).
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be added to a server",
    note = "add a `Tool`, a `Resource` or a `Prompt`, such as `Tool::new(\"name\", handler)`"
)]
pub trait Component: sealed::Sealed {
    /// Returns the handler, to give it the states of its server.
    #[doc(hidden)]
    fn handler(&mut self) -> &mut Erased;

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
    #[expect(unnameable_types, reason = "so that nobody else implements `Component`")]
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
    /// The values that handlers share.
    states: Arc<States>,
    visibility_filter: Arc<VisibilityFilter>,
}

struct State {
    components: Components,
    /// The server that this one is mounted into.
    outer: Option<Outer>,
    connections: Vec<Weak<Connection>>,
}

impl State {
    /// Shows the connections the current items.
    fn publish(&self, changed: ListKind) {
        let mut components = None;
        for connection in self.connections.iter().filter_map(Weak::upgrade) {
            let components = components.get_or_insert_with(|| Arc::new(self.components.clone()));
            connection.set_components(Arc::clone(components), vec![changed]);
            connection.flush();
        }
    }
}

impl Hub {
    pub(super) fn new(components: Components) -> Self {
        Self {
            state: Mutex::new(State { components, outer: None, connections: Vec::new() }),
            states: Arc::default(),
            visibility_filter: Arc::default(),
        }
    }

    pub(super) fn states(&self) -> &Arc<States> {
        &self.states
    }

    /// Returns the filter that decides which items a principal sees.
    pub(super) fn visibility_filter(&self) -> Arc<VisibilityFilter> {
        Arc::clone(&self.visibility_filter)
    }

    /// Opens a connection with the current items; it is notified of all later changes.
    pub(super) fn attach<T>(
        &self,
        open: impl FnOnce(Arc<Components>) -> (Connection, T),
    ) -> (Arc<Connection>, T) {
        let mut state = self.lock();
        let (connection, opened) = open(Arc::new(state.components.clone()));
        let connection = Arc::new(connection);
        state.connections.retain(|connection| connection.strong_count() > 0);
        state.connections.push(Arc::downgrade(&connection));
        (connection, opened)
    }

    /// Adds an item and logs reasons why known hosts will not accept it.
    pub(super) fn add(&self, mut component: impl Component) -> Result<(), Error> {
        component.handler().join(&self.states);
        self.grow(|components| component.register(components))
    }

    /// Adds one item to this server and those that it is mounted into; if that fails anywhere, nothing is changed. Lists
    /// that no connection has are changed in place: a copy for each addition would make starts quadratic.
    pub(super) fn grow(
        &self,
        add: impl FnOnce(&mut Components) -> Result<Registered, Error>,
    ) -> Result<(), Error> {
        let state = &mut *self.lock();
        let Registered { list, key, warnings } = add(&mut state.components)?;
        if let Some(outer) = &state.outer
            && let Err(error) = outer.follow(list, &key, &state.components)
        {
            state.components.list_mut(list).undo_add();
            return Err(error);
        }
        self.visibility_filter.add(&state.components, list, &key);
        state.publish(list.kind());
        warn(&warnings);
        Ok(())
    }

    /// Applies a change to this server and those that it is mounted into; if that fails anywhere, nothing is changed.
    /// Connections are notified only if the change makes a difference.
    fn apply(&self, change: &Change) -> Result<(), Error> {
        let state = &mut *self.lock();
        let before = state.outer.as_ref().map(|_| state.components.clone());
        let list = change.make(&mut state.components)?;
        if let (Some(outer), Some(before)) = (&state.outer, before) {
            let above = change.above(outer, &state.components, &outer.hub.lock().components);
            if let Err(error) = above.map_or(Ok(()), |change| outer.hub.apply(&change)) {
                state.components = before;
                return Err(error);
            }
        }
        if let Change::Remove(list, key) = change {
            self.visibility_filter.remove(&state.components, *list, key);
        }
        if let Some(list) = list {
            state.publish(list);
        }
        Ok(())
    }

    /// Adds a route. Errors if an address is being served, whose requests would not reach it.
    #[cfg(feature = "http")]
    pub(super) fn add_route(
        &self,
        method: &str,
        path: &str,
        needs_auth: bool,
        handler: Handler,
    ) -> Result<(), Error> {
        let state = &mut *self.lock();
        if state.connections.iter().any(|served| served.strong_count() > 0) {
            return Err(late_route(path));
        }
        state.components.add_route(method, path, needs_auth, handler)
    }

    /// Adds everything that another server has now.
    pub(super) fn mount(
        &self,
        prefix: &str,
        other: &Components,
        stack: &Arc<Stack>,
    ) -> Result<(), Error> {
        let wrap = |handler: &_, name: Option<&str>| handler::mounted(handler, stack, name);
        let components = &mut self.lock().components;
        let warnings = components.mount(prefix, other, &wrap)?;
        for list in [List::Tools, List::Resources, List::Templates, List::Prompts] {
            for key in other.list(list).keys() {
                let key = list.mounted_key(prefix, &key);
                self.visibility_filter.add(components, list, &key);
            }
        }
        warn(&warnings);
        Ok(())
    }

    /// Propagates all later changes to an outer server.
    pub(super) fn follow(&self, outer: Outer) {
        self.lock().outer = Some(outer);
    }

    fn notify(&self, notify: impl Fn(&Connection)) {
        self.notify_all(&notify);
    }

    fn notify_all(&self, notify: &dyn Fn(&Connection)) {
        let state = self.lock();
        for connection in state.connections.iter().filter_map(Weak::upgrade) {
            notify(&connection);
            connection.flush();
        }
        if let Some(outer) = &state.outer {
            outer.hub.notify_all(notify);
        }
    }

    /// Changes what no list has, before any connection exists.
    pub(super) fn edit<T>(&self, edit: impl FnOnce(&mut Components) -> T) -> T {
        edit(&mut self.lock().components)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registrar for Hub {
    fn change(
        &self,
        list: List,
        change: &mut dyn FnMut(&mut Components) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let state = &mut *self.lock();
        let before = state.components.list(list).keys();
        if !change(&mut state.components)? {
            return Ok(());
        }
        if let Some(outer) = &state.outer {
            outer.repeat(list, &before, &state.components)?;
        }
        state.publish(list.kind());
        Ok(())
    }

    fn expect_growth(&self) {
        self.edit(Components::expect_growth);
    }

    fn updated(&self, uri: &str) {
        self.notify(|connection| connection.updated(uri));
    }

    fn page_done(&self, page: &str) {
        self.notify(|connection| connection.page_done(page));
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Components;
    use crate::{
        router::{AnyRegistry, List, counted::COPIES},
        server::{Server, Tool},
    };

    const MANY: usize = 100;

    fn tool(index: usize) -> Tool {
        Tool::new(format!("tool_{index}"), || async { "done" }).visible(|_| true)
    }

    fn components(server: &Server) -> Components {
        server.hub.edit(|components| components.clone())
    }

    #[test]
    fn a_start_copies_no_lists() {
        let server = (0..MANY).fold(Server::new("shelf"), |server, index| server.add(tool(index)));
        assert_eq!(COPIES.get(), 0);
        let registry = server.registry();
        let house = Server::new("house").mount("shelf", server);
        for index in MANY..2 * MANY {
            registry.add(tool(index)).expect("is added to both");
        }
        let here = components(&house).tools;
        assert_eq!((here.keys().len(), here.is_guarded(), COPIES.get()), (2 * MANY, true, 0));
    }

    #[test]
    fn readers_keep_what_they_have() {
        let server = Server::new("shelf").add(tool(0));
        let (seen, registry) = (components(&server), server.registry());
        for index in 1..MANY {
            registry.add(tool(index)).expect("is added");
        }
        registry.remove(List::Tools, "tool_0").expect("is there");
        assert_eq!(seen.tools.keys(), ["tool_0"]);
        assert_eq!(COPIES.get(), 1);
    }

    #[test]
    fn a_registration_that_an_outer_server_refuses_leaves_no_trace() {
        let shelf = Server::new("shelf");
        let (registry, hub) = (shelf.registry(), shelf.hub.clone());
        let house = Server::new("house").add(Tool::new("shelf_tool_0", || async { "taken" }));
        let house = house.mount("shelf", shelf);
        registry.add(tool(0)).expect_err("the name is taken in the house");
        assert!(hub.edit(|components| components.tools.is_empty()));
        registry.add(tool(1)).expect("another name");
        assert_eq!(components(&house).tools.keys(), ["shelf_tool_0", "shelf_tool_1"]);
    }
}
