//! The values of `ctx.session` as a store has them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::value::RawValue;

use crate::protocol::{Raw, json};

/// The values of a session for a handler, or the reason why the store did not give them.
pub type ReadValues = Result<Arc<SessionValues>, Arc<str>>;

/// The values of a session at one time.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct SessionValues {
    /// 0 before the first value was stored.
    pub(crate) version: u64,
    pub(crate) values: ValuesByName,
}

/// Values as JSON, by name. Two are equal if their texts are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ValuesByName(BTreeMap<String, Box<str>>);

impl SessionValues {
    /// Reads a value of the store with its version. Errors if it is something else.
    pub(crate) fn from_store(found: Option<(Vec<u8>, u64)>) -> serde_json::Result<Self> {
        let Some((text, version)) = found else { return Ok(Self::default()) };
        Ok(Self { version, values: ValuesByName::from_json(&text)? })
    }

    /// Returns whether other values are newer.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.version < other.version
    }

    /// Returns the differences to older values: names with their values, and without one the names that were removed. There are none
    /// if the others are not older.
    pub fn changes_since(&self, older: Option<&Self>) -> Vec<(String, Option<Raw>)> {
        match older {
            Some(older) if !older.is_before(self) => Vec::new(),
            Some(older) => self.values.changes_since(&older.values),
            None => self.values.changes_since(&ValuesByName::default()),
        }
    }
}

impl ValuesByName {
    pub(crate) fn from_json(object: &[u8]) -> serde_json::Result<Self> {
        let values: BTreeMap<String, Raw> = json::from_bytes(object)?;
        Ok(Self(values.into_iter().map(|(name, value)| (name, Box::from(value))).collect()))
    }

    /// Returns the values as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        let mut object = String::from("{");
        for (name, value) in &self.0 {
            if object.len() > 1 {
                object.push(',');
            }
            json::push_string(&mut object, name);
            object.push(':');
            object.push_str(value);
        }
        object + "}"
    }

    /// Returns the differences to older values: names with their values, and without one the names that were removed.
    pub(crate) fn changes_since(&self, older: &Self) -> Vec<(String, Option<Raw>)> {
        let set = self.0.iter().filter(|(name, value)| older.0.get(*name) != Some(value));
        let set = set.map(|(name, value)| (name.clone(), Some(json::raw(value.to_string()))));
        let removed = older.0.keys().filter(|name| !self.0.contains_key(*name));
        set.chain(removed.map(|name| (name.clone(), None))).collect()
    }

    /// Makes changes.
    pub(crate) fn change(&mut self, changes: &[(String, Option<Raw>)]) {
        for (name, value) in changes {
            match value {
                Some(value) => self.0.insert(name.clone(), RawValue::get(value).into()),
                None => self.0.remove(name),
            };
        }
    }
}
