//! Tasks and threads that a process starts at first use.

use std::{
    process,
    sync::{Mutex, PoisonError},
};

/// The way to a thread, which a process starts at first use, and again after it was forked from one that had it.
pub(super) struct PerProcess<S>(Mutex<Option<(u32, S)>>);

impl<S> Default for PerProcess<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Clone> PerProcess<S> {
    pub(super) fn get_or_start(&self, start: impl FnOnce() -> Option<S>) -> Option<S> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let process = process::id();
        if started.as_ref().is_none_or(|(of, _)| *of != process) {
            *started = start().map(|fresh| (process, fresh));
        }
        started.as_ref().map(|(_, way)| way.clone())
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn get(&self) -> Option<S> {
        let started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.as_ref().filter(|(of, _)| *of == process::id()).map(|(_, way)| way.clone())
    }
}
