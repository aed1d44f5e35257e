//! Values that handlers keep for the lifetime of a session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{ToolError, run::lock};
use crate::{
    driver::SessionTable,
    protocol::{exact, json},
    session::server::{CallContext, ValueChanges},
};

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

    /// Returns all values as a JSON object.
    fn to_json(&self) -> String {
        let mut object = String::new();
        json::push(&mut object, &*lock(&self.values));
        object
    }
}

/// The values of all sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<SessionTable<Session>>);

impl Sessions {
    /// Returns the values of the session that a call belongs to. Errors if a store has them and could not be read.
    pub(super) fn values(&self, context: &CallContext) -> Result<Session, ToolError> {
        let mut table = lock(&self.0);
        let stored = match context.session_values.as_deref() {
            None => {
                context.client.keep_values();
                return Ok(table.entry(&context.client, Session::default).clone());
            }
            Some(Ok(stored)) => stored,
            Some(Err(reason)) => {
                return Err(ToolError::new(format!("ctx.session() can't be read: {reason}")));
            }
        };
        let (session, update) = table.with_values(&context.client, stored, Session::default);
        let mut values = lock(&session.values);
        if update.replaces {
            values.clear();
        }
        for (name, value) in update.changes {
            match value {
                Some(value) => values.insert(name, serde_json::from_str(value.get())?),
                None => values.remove(&name),
            };
        }
        drop(values);
        Ok(session.clone())
    }

    /// Returns what handlers have changed in a session, or why that can't be stored.
    pub(super) fn changes_of(
        &self,
        context: &CallContext,
        session: &Session,
    ) -> Result<ValueChanges, String> {
        lock(&self.0).changes_of(&context.client, &session.to_json())
    }
}
