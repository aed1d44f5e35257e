//! The values of `ctx.session` as a store has them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::value::RawValue;

use crate::protocol::{Raw, json};

/// The maximum size of the values of a session, with their names, in bytes of JSON.
const MAX_BYTES: usize = 256 * 1024;

/// Changes of values: names with their values, and without one the names that were removed.
pub type ValueChanges = Vec<(String, Option<Raw>)>;

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
}

impl ValuesByName {
    /// Reads the values of a session, a JSON object. Errors with the reason why they can't be stored.
    pub(crate) fn of_session(object: &str) -> Result<Self, String> {
        let size = object.len();
        if size > MAX_BYTES {
            return Err(format!(
                "the values of ctx.session take {size} bytes, and {MAX_BYTES} can be stored; keep large values in a database, under a \
                 name that the session has"
            ));
        }
        Self::from_json(object.as_bytes()).map_err(|error| error.to_string())
    }

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
    pub(crate) fn changes_since(&self, older: &Self) -> ValueChanges {
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
