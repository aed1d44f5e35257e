//! A host's entries for sessions, such as the values of `ctx.session`.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use crate::session::server::{ClientIdentity, SessionValues, ValueChanges, ValuesByName};

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
    /// The values that the entry had when it was last compared with those of the store.
    known: ValuesByName,
    /// The version of the newest values of the store that the entry has got.
    version: u64,
    /// `true` if the entry has something that can't be stored.
    is_spoilt: bool,
}

/// The changes that bring the values of a session up to date.
#[derive(Debug)]
pub struct ValuesUpdate {
    /// `true` if all values of before are to be removed first.
    pub replaces: bool,
    /// Names with their values, and without one the names to remove.
    pub changes: ValueChanges,
}

impl<T> SessionTable<T> {
    /// Returns the entry of a session, made by `new` if there is none.
    pub fn entry(&mut self, client: &Arc<ClientIdentity>, new: impl FnOnce() -> T) -> &mut T {
        &mut self.kept(client, new).entry
    }

    /// Returns the entry of a session that has these values in the store, made by `new` if there is none, and the changes to make to
    /// it. Changes of handlers that still run stay.
    pub fn with_values(
        &mut self,
        client: &Arc<ClientIdentity>,
        values: &SessionValues,
        new: impl FnOnce() -> T,
    ) -> (&mut T, ValuesUpdate) {
        let kept = self.kept(client, new);
        let replaces = std::mem::take(&mut kept.is_spoilt);
        let mut changes = Vec::new();
        if replaces {
            kept.known = ValuesByName::default();
        }
        if replaces || values.version >= kept.version {
            changes = values.values.changes_since(&kept.known);
            kept.known = values.values.clone();
            kept.version = values.version;
        }
        (&mut kept.entry, ValuesUpdate { replaces, changes })
    }

    /// Returns what handlers have changed in the values of a session since they were last compared: `values` are all of them, as a JSON
    /// object. Errors if they can't be stored; they are replaced by those of the store then.
    pub fn changes_of(
        &mut self,
        client: &Arc<ClientIdentity>,
        values: &str,
    ) -> Result<ValueChanges, String> {
        let key = Arc::as_ptr(client).addr();
        let Some(kept) = self.kept.get_mut(&key) else { return Ok(Vec::new()) };
        let read = ValuesByName::of_session(values);
        kept.is_spoilt = read.is_err();
        let read = read?;
        let changes = read.changes_since(&kept.known);
        kept.known = read;
        Ok(changes)
    }

    /// Has the values of a session replaced by those of the store, because they can't be stored.
    pub fn spoil(&mut self, client: &Arc<ClientIdentity>) {
        if let Some(kept) = self.kept.get_mut(&Arc::as_ptr(client).addr()) {
            kept.is_spoilt = true;
        }
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
        let fresh = || Kept {
            client: Arc::downgrade(client),
            entry: new(),
            known: ValuesByName::default(),
            version: 0,
            is_spoilt: false,
        };
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

    fn values(version: u64, text: &str) -> SessionValues {
        let found = Some((text.as_bytes().to_vec(), version));
        SessionValues::from_store(found).expect("it is an object")
    }

    fn texts(changes: ValueChanges) -> Vec<(String, Option<String>)> {
        let text = |value: crate::protocol::Raw| value.get().to_owned();
        changes.into_iter().map(|(name, value)| (name, value.map(text))).collect()
    }

    fn set(name: &str, value: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(value.to_owned()))
    }

    fn removed(name: &str) -> (String, Option<String>) {
        (name.to_owned(), None)
    }

    #[test]
    fn an_entry_gets_each_change_of_the_stored_values_once() {
        let mut table = SessionTable::default();
        let client = Arc::new(ClientIdentity::default());
        let mut changes =
            |values: &SessionValues| texts(table.with_values(&client, values, || ()).1.changes);
        let (first, second) = (values(1, r#"{"a":1,"b":2}"#), values(2, r#"{"b":3}"#));
        assert_eq!(changes(&first), [set("a", "1"), set("b", "2")]);
        assert_eq!(changes(&first), []);
        assert_eq!(changes(&second), [set("b", "3"), removed("a")]);
        assert_eq!(changes(&first), [], "it is older");
        assert_eq!(changes(&second), []);
    }

    #[test]
    fn what_others_have_removed_goes_also_where_it_was_set() {
        let mut table = SessionTable::default();
        let client = Arc::new(ClientIdentity::default());
        let _ = table.with_values(&client, &values(0, "{}"), || ());
        let own = table.changes_of(&client, r#"{"user":"ada"}"#).expect("it is JSON");
        assert_eq!(texts(own), [set("user", "\"ada\"")]);
        let ((), update) = table.with_values(&client, &values(2, "{}"), || ());
        assert_eq!(texts(update.changes), [removed("user")]);
        let own = table.changes_of(&client, "{}").expect("it is JSON");
        assert_eq!(texts(own), [], "nobody has changed anything here");
    }

    #[test]
    fn a_change_is_that_of_one_handler() {
        let mut table = SessionTable::default();
        let client = Arc::new(ClientIdentity::default());
        let _ = table.with_values(&client, &values(0, "{}"), || ());
        let first = table.changes_of(&client, r#"{"a":1}"#).expect("it is JSON");
        let second = table.changes_of(&client, r#"{"a":1,"b":2}"#).expect("it is JSON");
        let third = table.changes_of(&client, r#"{"b":2}"#).expect("it is JSON");
        assert_eq!(texts(first), [set("a", "1")]);
        assert_eq!(texts(second), [set("b", "2")]);
        assert_eq!(texts(third), [removed("a")]);
    }

    #[test]
    fn values_that_can_not_be_stored_are_replaced() {
        let mut table = SessionTable::default();
        let client = Arc::new(ClientIdentity::default());
        let stored = values(1, r#"{"a":1}"#);
        let _ = table.with_values(&client, &stored, || ());
        let large = format!(r#"{{"a":1,"b":"{}"}}"#, "x".repeat(256 * 1024));
        let refused = table.changes_of(&client, &large).expect_err("it is too large");
        assert!(refused.contains("262144 can be stored"), "{refused}");
        let ((), update) = table.with_values(&client, &stored, || ());
        assert!(update.replaces);
        assert_eq!(texts(update.changes), [set("a", "1")]);
        table.spoil(&client);
        assert!(table.with_values(&client, &stored, || ()).1.replaces);
        assert!(!table.with_values(&client, &stored, || ()).1.replaces);
    }
}
