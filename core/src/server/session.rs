//! Values that handlers keep for the lifetime of a session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{ToolError, run::lock};
use crate::{protocol::exact, session::server::ClientIdentity};

/// The number of entries at which those of ended sessions are removed.
const SWEEP_AT: usize = 64;

/// The values of a legacy session, returned by [`Context::session`](super::Context::session). Clones share the
/// values, which are stored as JSON.
#[derive(Clone, Debug, Default)]
pub struct Session {
    values: Arc<Mutex<HashMap<String, Value>>>,
}

impl Session {
    /// Returns the value with this name, or `None`. Errors if it has another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ToolError> {
        let found = lock(&self.values).get(name).cloned();
        Ok(found.map(serde_json::from_value).transpose()?)
    }

    /// Stores a value under a name. Errors if the value can't be serialized as JSON.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> Result<(), ToolError> {
        let value = serde_json::from_str(&exact::to_string(&value, "the value")?)?;
        lock(&self.values).insert(name.into(), value);
        Ok(())
    }

    /// Removes a value; returns whether it existed.
    pub fn remove(&self, name: &str) -> bool {
        lock(&self.values).remove(name).is_some()
    }
}

/// The values of all sessions, by client identity, which lives exactly as long as its session.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The key is the address of the identity, which stays reserved while the weak reference exists.
    kept: HashMap<usize, (Weak<ClientIdentity>, Session)>,
    sweep_at: usize,
}

impl Sessions {
    pub(super) fn values(&self, client: &Arc<ClientIdentity>) -> Session {
        let key = Arc::as_ptr(client).addr();
        let mut table = lock(&self.0);
        if let Some((_, session)) = table.kept.get(&key) {
            return session.clone();
        }
        if table.kept.len() >= table.sweep_at.max(SWEEP_AT) {
            table.kept.retain(|_, (client, _)| client.strong_count() > 0);
            table.sweep_at = 2 * table.kept.len();
        }
        let session = Session::default();
        client.keep_values();
        table.kept.insert(key, (Arc::downgrade(client), session.clone()));
        session
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    #[test]
    fn what_ended_sessions_kept_goes() {
        let sessions = Sessions::default();
        let lives = Arc::new(ClientIdentity::default());
        sessions.values(&lives).set("a", 1).unwrap();
        for _ in 0..1_000 {
            let ends = Arc::new(ClientIdentity::default());
            assert_eq!(sessions.values(&ends).get::<i32>("a").unwrap(), None);
        }
        assert_eq!(sessions.values(&lives).get("a").unwrap(), Some(1));
        assert!(lock(&sessions.0).kept.len() <= SWEEP_AT);
    }
}
