//! What a server offers, shared with its connections and changed while they run.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde_json::Value;

use super::{
    changes::{Change, Changed, Outer},
    connection::Connection,
    visible::Judge,
};
use crate::{
    error::Error,
    router::{Handler, List, Offers},
    session::server::ListKind,
};

/// Something that is added to a server: a [`Tool`](super::Tool), a [`Resource`](super::Resource) or a
/// [`Prompt`](super::Prompt).
pub trait Offering: sealed::Sealed {
    #[doc(hidden)]
    fn register(self, offers: &mut Offers) -> Result<Registered, Error>;
}

/// What came of a registration.
#[doc(hidden)]
#[derive(Debug)]
pub struct Registered {
    pub list: List,
    pub key: String,
    /// What known hosts will not take.
    pub warnings: Vec<String>,
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// Changes what a server offers while it runs; clients are told that the list has changed.
///
/// ```
/// # use gudgeon::{Registry, Server, Tool, List};
/// # fn main() -> Result<(), gudgeon::error::Error> {
/// let server = Server::new("shelf").tool("open", || async { "open" });
/// let registry: Registry = server.registry();
/// registry.add(Tool::new("close", || async { "closed" }))?;
/// registry.disable(List::Tools, ["open"])?;
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

    /// Adds it. Fails where the name is taken or something of it can't be used; what known hosts will not take of it is
    /// told to `tracing`, at the level `warn`.
    pub fn add(&self, offering: impl Offering) -> Result<(), Error> {
        self.hub.add(offering)
    }

    /// Removes it. Fails where there is none of this name.
    pub fn remove(&self, list: List, key: &str) -> Result<(), Error> {
        self.hub.apply(&Change::Remove(list, key.to_owned()))
    }

    /// Changes what clients see of it: members by their names in the newest revision's JSON; `null` removes one. Names,
    /// URIs and schemas can't change.
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
            return Err(Error::misuse("changes are an object: {\"description\": …}"));
        };
        self.hub.apply(&Change::Update(list, key.to_owned(), changes))
    }

    /// Shows those that were hidden.
    pub fn enable<K: Into<String>>(
        &self,
        list: List,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Error> {
        self.set_enabled(list, keys.into_iter().map(Into::into).collect(), Vec::new(), true)
    }

    /// Hides them: they are not listed, and calling them fails as if they were not there.
    pub fn disable<K: Into<String>>(
        &self,
        list: List,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Error> {
        self.set_enabled(list, keys.into_iter().map(Into::into).collect(), Vec::new(), false)
    }

    /// Shows or hides all that carry the tag.
    pub fn set_tag_enabled(&self, list: List, tag: &str, enabled: bool) -> Result<(), Error> {
        self.set_enabled(list, Vec::new(), vec![tag.to_owned()], enabled)
    }

    /// Tells everybody who subscribed to this resource that it was updated (Resources, "Subscriptions").
    pub fn notify_updated(&self, uri: &str) {
        self.hub.tell(|connection| connection.updated(uri));
    }

    /// Tells the client that it was sent to a page for that this is finished: the id that
    /// [`Context::elicit_url`](super::Context::elicit_url) gave (2025-11-25, Elicitation, "Completion Notifications").
    ///
    /// Other revisions have no word for it, and an id that nobody knows tells nobody.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// # let server = Server::new("shelf");
    /// server.registry().notify_url_done("550e8400-e29b");
    /// ```
    pub fn notify_url_done(&self, elicitation: &str) {
        self.hub.tell(|connection| connection.page_done(elicitation));
    }

    fn set_enabled(
        &self,
        list: List,
        keys: Vec<String>,
        tags: Vec<String>,
        enabled: bool,
    ) -> Result<(), Error> {
        self.hub.apply(&Change::Enable { list, keys, tags, enabled })
    }
}

/// For whoever runs the server: what known hosts will not take.
pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// The offers of now, and who is to hear of changes.
pub(super) struct Hub {
    state: Mutex<State>,
    judge: Arc<Judge>,
}

struct State {
    offers: Offers,
    /// What this server is mounted into.
    outer: Option<Outer>,
    connections: Vec<Weak<dyn Connection>>,
}

impl Hub {
    pub(super) fn new(mut offers: Offers) -> Self {
        let judge = Arc::new(Judge::default());
        offers.set_judge(Arc::clone(&judge) as Handler);
        Self { state: Mutex::new(State { offers, outer: None, connections: Vec::new() }), judge }
    }

    /// Opens a connection with the offers of now; it hears of every later change.
    pub(super) fn attach<C: Connection + 'static>(
        &self,
        open: impl FnOnce(Arc<Offers>) -> Arc<C>,
    ) -> Arc<C> {
        let mut state = self.lock();
        let connection = open(Arc::new(state.offers.clone()));
        state.connections.retain(|it| it.strong_count() > 0);
        let weak: Weak<C> = Arc::downgrade(&connection);
        state.connections.push(weak);
        connection
    }

    /// Adds it, and tells whoever runs the server what known hosts will not take of it.
    pub(super) fn add(&self, offering: impl Offering) -> Result<(), Error> {
        let mut state = self.lock();
        let mut offers = state.offers.clone();
        let Registered { list, key, warnings } = offering.register(&mut offers)?;
        if let Some(outer) = &state.outer {
            outer.hub.apply(&outer.follow(list, &key, &offers))?;
        }
        self.commit(&mut state, offers, list.kind());
        warn(&warnings);
        Ok(())
    }

    /// Changes nothing where the change fails, here or in a server that this one is mounted into, and tells nobody where it
    /// makes no difference.
    fn apply(&self, change: &Change) -> Result<(), Error> {
        let mut state = self.lock();
        let mut offers = state.offers.clone();
        let Changed { list, warnings } = change.make(&mut offers)?;
        if let Some(outer) = &state.outer {
            let above = change.above(outer, &offers, &outer.hub.lock().offers);
            above.map_or(Ok(()), |it| outer.hub.apply(&it))?;
        }
        if let Some(list) = list {
            self.commit(&mut state, offers, list);
        }
        warn(&warnings);
        Ok(())
    }

    fn commit(&self, state: &mut State, offers: Offers, changed: ListKind) {
        state.offers = offers;
        self.judge.update(&state.offers);
        let offers = Arc::new(state.offers.clone());
        for connection in state.connections.iter().filter_map(Weak::upgrade) {
            connection.set_offers(Arc::clone(&offers), vec![changed]);
            connection.flush();
        }
    }

    /// From now on what is changed here is changed there as well.
    pub(super) fn follow(&self, outer: Outer) {
        self.lock().outer = Some(outer);
    }

    fn tell(&self, tell: impl Fn(&dyn Connection)) {
        self.tell_all(&tell);
    }

    fn tell_all(&self, tell: &dyn Fn(&dyn Connection)) {
        let state = self.lock();
        for connection in state.connections.iter().filter_map(Weak::upgrade) {
            tell(&*connection);
            connection.flush();
        }
        if let Some(outer) = &state.outer {
            outer.hub.tell_all(tell);
        }
    }

    /// For what no list shows; before anybody is connected.
    pub(super) fn edit<T>(&self, edit: impl FnOnce(&mut Offers) -> T) -> T {
        let mut state = self.lock();
        let edited = edit(&mut state.offers);
        self.judge.update(&state.offers);
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
