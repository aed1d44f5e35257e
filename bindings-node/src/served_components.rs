//! The current components of a server, and the streams to notify of changes.

use std::sync::{Arc, Mutex, Weak};

use gudgeon::{
    bindings::upstreams::Upstreams,
    driver::{EndpointServer, Work},
    error::{Error, Language},
    router::{Components, Handler, List, Registrar},
    session::server::ListKind,
};

use crate::{
    handler::VisibilityFilter,
    shared::{Shared, lock},
};

/// The components of one server. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ServedComponents(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    visibility_filter: VisibilityFilter,
    upstreams: Arc<Upstreams>,
}

#[derive(Debug)]
struct State {
    components: Arc<Components>,
    served: Vec<Weak<Shared>>,
}

impl ServedComponents {
    pub(crate) fn new(components: Components) -> Self {
        let state = State { components: Arc::new(components), served: Vec::new() };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            visibility_filter: VisibilityFilter::default(),
            upstreams: Arc::new(Upstreams::new(Language::TypeScript)),
        }))
    }

    pub(crate) fn components(&self) -> Arc<Components> {
        Arc::clone(&lock(&self.0.state).components)
    }

    /// Sets the key of a server that is not served yet.
    pub(crate) fn set_state_key(&self, key: Vec<u8>) {
        let mut state = lock(&self.0.state);
        let components = Arc::make_mut(&mut state.components);
        Arc::make_mut(&mut components.server).request_state_keys = vec![key];
    }

    pub(crate) fn visibility_filter(&self) -> &VisibilityFilter {
        &self.0.visibility_filter
    }

    pub(crate) fn upstreams(&self) -> &Arc<Upstreams> {
        &self.0.upstreams
    }

    /// Opens a server with the current components; it receives changes for as long as it lives.
    pub(crate) fn open<T>(
        &self,
        make: impl FnOnce(Arc<Components>) -> (Arc<Shared>, T),
    ) -> (Arc<Shared>, T) {
        let mut state = lock(&self.0.state);
        let (shared, rest) = make(Arc::clone(&state.components));
        state.served.retain(|served| served.strong_count() > 0);
        state.served.push(Arc::downgrade(&shared));
        (shared, rest)
    }

    /// Returns whether something serves them at the moment.
    pub(crate) fn is_served(&self) -> bool {
        lock(&self.0.state).served.iter().any(|served| served.strong_count() > 0)
    }

    /// Sets the visibility filter. Only the first call has an effect.
    pub(crate) fn set_visibility_filter(&self, filter: Handler) {
        self.0.visibility_filter.get_or_init(|| filter);
    }

    /// Calls everything that is served at the moment.
    pub(crate) fn call_all(&self, call: impl Fn(&EndpointServer)) {
        self.0.call_all(call);
    }

    /// Changes the components and notifies all servers of the changed list, unless the change had no effect.
    pub(crate) fn change(
        &self,
        list: Option<ListKind>,
        change: impl FnOnce(&mut Components) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.0.change(list, change)
    }

    /// Returns the components as upstream servers change them, for as long as a server has them.
    pub(crate) fn registrar(&self) -> Arc<dyn Registrar> {
        Arc::clone(&self.0) as Arc<dyn Registrar>
    }
}

impl Inner {
    fn call_all(&self, call: impl Fn(&EndpointServer)) {
        let served: Vec<_> = lock(&self.state).served.iter().filter_map(Weak::upgrade).collect();
        for served in served {
            served.call(|endpoint| {
                call(endpoint);
                Work::default()
            });
        }
    }

    fn change(
        &self,
        list: Option<ListKind>,
        change: impl FnOnce(&mut Components) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if !change(Arc::make_mut(&mut state.components))? {
            return Ok(());
        }
        for served in state.served.iter().filter_map(Weak::upgrade) {
            served.set_components(Arc::clone(&state.components), list);
        }
        Ok(())
    }
}

/// Upstream servers change them, from the thread of the clients.
impl Registrar for Inner {
    fn change(
        &self,
        list: List,
        change: &mut dyn FnMut(&mut Components) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        Self::change(self, Some(list.kind()), change)
    }

    fn expect_growth(&self) {
        Arc::make_mut(&mut lock(&self.state).components).expect_growth();
    }

    fn updated(&self, uri: &str) {
        self.call_all(|endpoint| endpoint.updated(uri));
    }

    fn page_done(&self, page: &str) {
        self.call_all(|endpoint| endpoint.page_done(page));
    }
}
