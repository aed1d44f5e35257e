//! The current components of a server, and the streams to notify of changes.

use std::sync::{Arc, Mutex, Weak};

use gudgeon::{
    error::Error,
    router::{Components, Handler},
    session::server::ListKind,
};

use crate::{
    handler::VisibilityFilter,
    shared::{Shared, lock},
};

#[derive(Debug)]
pub(crate) struct ServedComponents {
    state: Mutex<State>,
    visibility_filter: VisibilityFilter,
}

#[derive(Debug)]
struct State {
    components: Arc<Components>,
    served: Vec<Weak<Shared>>,
}

impl ServedComponents {
    pub(crate) fn new(components: Components) -> Self {
        let state = State { components: Arc::new(components), served: Vec::new() };
        Self { state: Mutex::new(state), visibility_filter: VisibilityFilter::default() }
    }

    pub(crate) fn components(&self) -> Arc<Components> {
        Arc::clone(&lock(&self.state).components)
    }

    /// Opens a server with the current components; it receives changes for as long as it lives.
    pub(crate) fn open<T>(
        &self,
        make: impl FnOnce(Arc<Components>, VisibilityFilter) -> (Arc<Shared>, T),
    ) -> (Arc<Shared>, T) {
        let mut state = lock(&self.state);
        let (shared, rest) =
            make(Arc::clone(&state.components), Arc::clone(&self.visibility_filter));
        state.served.retain(|it| it.strong_count() > 0);
        state.served.push(Arc::downgrade(&shared));
        (shared, rest)
    }

    /// Sets the visibility filter. Only the first call has an effect.
    pub(crate) fn set_visibility_filter(&self, filter: Handler) {
        self.visibility_filter.get_or_init(|| filter);
    }

    /// Returns everything that is served at the moment.
    pub(crate) fn served(&self) -> Vec<Arc<Shared>> {
        lock(&self.state).served.iter().filter_map(Weak::upgrade).collect()
    }

    /// Changes the components and notifies all servers of the changed list, unless the change had no effect.
    pub(crate) fn change(
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
