//! The current components of a server, and the streams to notify of changes.

use std::sync::{Arc, Mutex, Weak};

use gudgeon::{error::Error, router::Components, session::server::ListKind};

use crate::{
    handler::Handler,
    shared::{Shared, lock},
};

#[derive(Debug)]
pub(crate) struct ServedComponents {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    components: Arc<Components<Handler>>,
    served: Vec<Weak<Shared>>,
}

impl ServedComponents {
    pub(crate) fn new(components: Components<Handler>) -> Self {
        Self { state: Mutex::new(State { components: Arc::new(components), served: Vec::new() }) }
    }

    pub(crate) fn components(&self) -> Arc<Components<Handler>> {
        Arc::clone(&lock(&self.state).components)
    }

    /// Opens a server with the current components; it receives changes for as long as it lives.
    pub(crate) fn open<T>(
        &self,
        make: impl FnOnce(Arc<Components<Handler>>) -> (Arc<Shared>, T),
    ) -> (Arc<Shared>, T) {
        let mut state = lock(&self.state);
        let (shared, rest) = make(Arc::clone(&state.components));
        state.served.retain(|it| it.strong_count() > 0);
        state.served.push(Arc::downgrade(&shared));
        (shared, rest)
    }

    /// Returns everything that is served at the moment.
    pub(crate) fn served(&self) -> Vec<Arc<Shared>> {
        lock(&self.state).served.iter().filter_map(Weak::upgrade).collect()
    }

    /// Changes the components and notifies all servers of the changed list, unless the change had no effect.
    pub(crate) fn change(
        &self,
        list: Option<ListKind>,
        change: impl FnOnce(&mut Components<Handler>) -> Result<bool, Error>,
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
