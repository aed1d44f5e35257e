//! The state that a client keeps from a server's results: listed tools and cached results.

use std::sync::{Mutex, MutexGuard};

use super::connected::lock;
use crate::{
    clock,
    peer::{KnownTools, ResultCache},
    protocol::{Method, Raw},
    session::client::{Change, ListKind},
};

/// The server's listed tools, and its results that are still fresh.
#[derive(Debug)]
pub(super) struct Known {
    tools: Mutex<KnownTools>,
    /// `None` if results are not cached.
    results: Option<Mutex<ResultCache>>,
}

impl Known {
    pub(super) fn new(is_cached: bool) -> Self {
        Self { tools: Mutex::default(), results: is_cached.then(Mutex::default) }
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, KnownTools> {
        lock(&self.tools)
    }

    /// Removes what the change makes out of date.
    pub(super) fn changed(&self, change: &Change) {
        if *change == Change::List(ListKind::Tools) {
            self.tools().forget();
        }
        if let Some(mut results) = self.results() {
            results.changed(change);
        }
    }

    /// Removes the results of these methods, which may be out of date.
    pub(super) fn forget_results(&self, methods: &[Method]) {
        if let Some(mut results) = self.results() {
            results.forget(methods);
        }
    }

    /// Removes all results.
    pub(super) fn clear_results(&self) {
        if let Some(mut results) = self.results() {
            results.clear();
        }
    }

    /// Returns the result of the method with these params if it is still fresh, or else what `send` returns; and whether
    /// it is the former.
    pub(super) async fn fresh_or<E>(
        &self,
        method: Method,
        params: &str,
        send: impl Future<Output = Result<Raw, E>>,
    ) -> Result<(Raw, bool), E> {
        let version = {
            let Some(results) = self.results() else { return Ok((send.await?, false)) };
            if let Some(result) = results.get(clock::now(), method, params) {
                return Ok((result, true));
            }
            results.version()
        };
        let result = send.await?;
        if let Some(mut results) = self.results() {
            results.store(clock::now(), version, method, params, &result);
        }
        Ok((result, false))
    }

    fn results(&self) -> Option<MutexGuard<'_, ResultCache>> {
        self.results.as_ref().map(lock)
    }
}
