//! The values that handlers keep for the duration of a session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use gudgeon::session::server::ClientIdentity;
use pyo3::{prelude::*, types::PyDict};

use crate::stream::lock;

/// The number of sessions from which on values of ended sessions are removed.
const SWEEP_AT: usize = 64;

/// One dictionary per session. A session is identified by its client's identity object, which lives exactly as long.
#[derive(Debug, Default)]
pub(crate) struct SessionValues(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Keyed by the identity's address; while a weak reference is held, the address is not reused.
    kept: HashMap<usize, (Weak<ClientIdentity>, Py<PyDict>)>,
    sweep_at: usize,
}

impl SessionValues {
    pub(crate) fn values(&self, py: Python<'_>, client: &Arc<ClientIdentity>) -> Py<PyDict> {
        let key = Arc::as_ptr(client).addr();
        if let Some((_, values)) = lock(&self.0).kept.get(&key) {
            return values.clone_ref(py);
        }
        client.keep_values();
        let fresh = PyDict::new(py).unbind();
        let mut over = Vec::new();
        let mut table = lock(&self.0);
        if table.kept.len() >= table.sweep_at.max(SWEEP_AT) {
            over.extend(table.kept.extract_if(|_, (client, _)| client.strong_count() == 0));
            table.sweep_at = 2 * table.kept.len();
        }
        let entry = table.kept.entry(key);
        let values = entry.or_insert_with(|| (Arc::downgrade(client), fresh.clone_ref(py)));
        let values = values.1.clone_ref(py);
        drop(table);
        // Dropped outside the lock, because that may run Python code.
        drop(over);
        values
    }
}
