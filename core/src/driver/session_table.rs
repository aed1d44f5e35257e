//! What a host keeps for sessions, such as the values of `ctx.session`.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use crate::{
    protocol::Raw,
    session::server::{ClientIdentity, SessionValues},
};

/// The number of sessions from which on those that have ended are removed.
const SWEEP_AT: usize = 64;

/// A table with one entry for each session. A session is identified by its client's identity object, which lives exactly as long.
#[derive(Debug)]
pub struct SessionTable<T> {
    /// Keyed by the identity's address, which is not reused while the weak reference exists.
    kept: HashMap<usize, Kept<T>>,
    sweep_at: usize,
    ended: Vec<T>,
}

#[derive(Debug)]
struct Kept<T> {
    client: Weak<ClientIdentity>,
    entry: T,
    /// The values of the store that the entry has.
    values: Option<Arc<SessionValues>>,
}

impl<T> SessionTable<T> {
    /// Returns the entry of a session, made by `new` if there is none.
    pub fn entry(&mut self, client: &Arc<ClientIdentity>, new: impl FnOnce() -> T) -> &mut T {
        &mut self.kept(client, new).entry
    }

    /// Returns the entry of a session that has these values in the store, made by `new` if there is none, and how they differ from
    /// those that this returned for the session before: names with their values, and without one the names that were removed.
    pub fn with_values(
        &mut self,
        client: &Arc<ClientIdentity>,
        values: &Arc<SessionValues>,
        new: impl FnOnce() -> T,
    ) -> (&mut T, Vec<(String, Option<Raw>)>) {
        let kept = self.kept(client, new);
        let changes = values.changes_since(kept.values.as_deref());
        if kept.values.as_ref().is_none_or(|known| known.is_before(values)) {
            kept.values = Some(Arc::clone(values));
        }
        (&mut kept.entry, changes)
    }

    /// Returns entries of sessions that have ended, which were removed since the last call.
    pub fn take_ended(&mut self) -> Vec<T> {
        std::mem::take(&mut self.ended)
    }

    fn kept(&mut self, client: &Arc<ClientIdentity>, new: impl FnOnce() -> T) -> &mut Kept<T> {
        let key = Arc::as_ptr(client).addr();
        if self.kept.len() >= self.sweep_at.max(SWEEP_AT) && !self.kept.contains_key(&key) {
            let over = self.kept.extract_if(|_, kept| kept.client.strong_count() == 0);
            self.ended.extend(over.map(|(_, kept)| kept.entry));
            self.sweep_at = 2 * self.kept.len();
        }
        let fresh = || Kept { client: Arc::downgrade(client), entry: new(), values: None };
        self.kept.entry(key).or_insert_with(fresh)
    }
}

impl<T> Default for SessionTable<T> {
    fn default() -> Self {
        Self { kept: HashMap::new(), sweep_at: 0, ended: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_ended_sessions_are_removed() {
        let mut table = SessionTable::default();
        let lives = Arc::new(ClientIdentity::default());
        *table.entry(&lives, || 1) = 0;
        for number in 1..=1_000 {
            let ends = Arc::new(ClientIdentity::default());
            assert_eq!(*table.entry(&ends, || number), number);
        }
        assert_eq!(*table.entry(&lives, || 1), 0);
        let ended = table.take_ended();
        assert!(ended.len() >= 1_000 - SWEEP_AT && !ended.contains(&0), "{ended:?}");
        assert!(table.kept.len() <= SWEEP_AT);
        assert!(table.take_ended().is_empty());
    }

    #[test]
    fn an_entry_gets_each_change_of_the_stored_values_once() {
        let values = |version, text: &str| {
            let found = Some((text.as_bytes().to_vec(), version));
            Arc::new(SessionValues::from_store(found).expect("it is an object"))
        };
        let mut table = SessionTable::default();
        let client = Arc::new(ClientIdentity::default());
        let mut changes = |values: &Arc<SessionValues>| {
            let ((), changes) = table.with_values(&client, values, || ());
            let text = |value: Option<Raw>| value.map(|value| value.get().to_owned());
            changes.into_iter().map(|(name, value)| (name, text(value))).collect::<Vec<_>>()
        };
        let (first, second) = (values(1, r#"{"a":1,"b":2}"#), values(2, r#"{"b":3}"#));
        let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(changes(&first), [set("a", "1"), set("b", "2")]);
        assert_eq!(changes(&first), []);
        assert_eq!(changes(&second), [set("b", "3"), ("a".to_owned(), None)]);
        assert_eq!(changes(&first), [], "it is older");
        assert_eq!(changes(&second), []);
    }
}
