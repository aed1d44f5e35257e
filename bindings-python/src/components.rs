//! The components of a Python server, and the sources of calls that see them.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use gudgeon::{
    error::Error,
    router::{Components, List, Registrar},
    session::server::ListKind,
};

use crate::{handler::PyHandler, source::Source};

/// The components of one server. A change creates the next snapshot and shows it to every source. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ServerComponents(Arc<CurrentComponents>);

#[derive(Debug)]
pub(crate) struct CurrentComponents(Mutex<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) components: Arc<Components>,
    sources: Vec<Weak<Source>>,
    pub(crate) has_async: bool,
    /// All registered handlers, for the garbage collector: functions refer to the server that they are registered with.
    pub(crate) handlers: Vec<Weak<PyHandler>>,
}

impl ServerComponents {
    pub(crate) fn new(components: Components) -> Self {
        Self(Arc::new(CurrentComponents(Mutex::new(Shared {
            components: Arc::new(components),
            sources: Vec::new(),
            has_async: false,
            handlers: Vec::new(),
        }))))
    }

    /// Returns the components as upstream servers change them, for as long as a server has them.
    pub(crate) fn registrar(&self) -> Arc<dyn Registrar> {
        Arc::clone(&self.0) as Arc<dyn Registrar>
    }
}

impl Deref for ServerComponents {
    type Target = CurrentComponents;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl CurrentComponents {
    /// Returns the current components.
    pub(crate) fn snapshot(&self) -> Arc<Components> {
        Arc::clone(&self.lock().components)
    }

    /// Changes the components. Returns them, to be shown, if the change had an effect.
    pub(crate) fn change(
        &self,
        is_async: bool,
        change: impl FnOnce(&mut Components) -> Result<bool, Error>,
    ) -> Result<Option<Arc<Components>>, Error> {
        let mut shared = self.lock();
        if !change(Arc::make_mut(&mut shared.components))? {
            return Ok(None);
        }
        shared.has_async |= is_async;
        Ok(Some(Arc::clone(&shared.components)))
    }

    /// Sets the key of a server that is not served yet.
    pub(crate) fn set_state_key(&self, key: Vec<u8>) {
        let mut shared = self.lock();
        let components = Arc::make_mut(&mut shared.components);
        Arc::make_mut(&mut components.server).request_state_keys = vec![key];
    }

    /// Shows every source these components. Must not be called while holding the interpreter.
    pub(crate) fn show(&self, components: &Arc<Components>, list: Option<ListKind>) {
        self.tell(|source| {
            source.set_components(Arc::clone(components), list.into_iter().collect());
        });
    }

    /// Calls every source. Must not be called while holding the interpreter.
    pub(crate) fn tell(&self, call: impl Fn(&Source)) {
        let sources: Vec<_> = self.lock().sources.iter().filter_map(Weak::upgrade).collect();
        for source in sources {
            call(&source);
            source.try_flush();
        }
    }

    /// Returns whether a source sees the components.
    pub(crate) fn is_served(&self) -> bool {
        self.lock().sources.iter().any(|source| source.strong_count() > 0)
    }

    /// Registers a source for changes, including those made since its snapshot.
    pub(crate) fn keep_informed(&self, source: &Arc<Source>) {
        let mut shared = self.lock();
        shared.sources.retain(|source| source.strong_count() > 0);
        shared.sources.push(Arc::downgrade(source));
        let missed = Arc::clone(&shared.components);
        drop(shared);
        source.set_components(missed, Vec::new());
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Shared>> {
        self.0.try_lock().ok()
    }
}

/// Upstream servers change them, from the thread of the clients.
impl Registrar for CurrentComponents {
    fn change(
        &self,
        list: List,
        change: &mut dyn FnMut(&mut Components) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        if let Some(components) = Self::change(self, false, change)? {
            self.show(&components, Some(list.kind()));
        }
        Ok(())
    }

    fn expect_growth(&self) {
        let mut shared = self.lock();
        Arc::make_mut(&mut shared.components).expect_growth();
    }

    fn updated(&self, uri: &str) {
        self.tell(|source| source.updated(uri));
    }

    fn page_done(&self, page: &str) {
        self.tell(|source| source.page_done(page));
    }
}
