//! JSON Schemas for values that the core does not check itself.

use gudgeon::{
    error::Error,
    schema::{self, Schema},
    session::asking,
};
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::misuse;

#[napi]
#[derive(Debug)]
pub struct NativeSchema(Schema);

#[napi]
impl NativeSchema {
    /// Errors if the schema can't be used; the message names the place in it and the fix.
    #[napi(constructor, catch_unwind)]
    pub fn new(schema: String) -> napi::Result<Self> {
        Schema::compile(&schema).map(Self).map_err(|error| misuse(Error::misuse(error.to_string())))
    }

    /// Returns the problem of a value given as JSON; null if it is valid.
    #[napi(catch_unwind)]
    pub fn violation(&self, value: String) -> Option<String> {
        match serde_json::from_str(&value) {
            Ok(value) => self.0.check(&value).err().map(|violation| violation.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the schema of the form for a schema, and whether it asks for the one property `value`, with an answer that may
    /// be required. `reading` is `plain` or `validated`.
    #[napi(catch_unwind)]
    pub fn form(
        schema: String,
        reading: String,
        is_required: bool,
    ) -> napi::Result<(String, bool)> {
        let schema = serde_json::from_str(&schema)
            .map_err(|error| misuse(Error::misuse(format!("the schema can't be read: {error}"))))?;
        let reading = reading.parse().map_err(misuse)?;
        let form = asking::form_schema(&schema, reading, Some(is_required));
        Ok((form.schema.to_string(), form.is_value))
    }

    /// Returns the problem and the fix if no form can use this schema; null otherwise. `name` is the message for the
    /// user.
    #[napi(catch_unwind)]
    pub fn form_problem(name: String, schema: String) -> Option<String> {
        asking::check_form(&name, &schema).err()
    }

    /// Returns the schema with `"type": "object"`; null if it does not describe an object.
    #[napi(catch_unwind)]
    pub fn of_object(schema: String) -> Option<String> {
        let typed = schema::of_object(serde_json::from_str(&schema).ok()?)?;
        Some(Value::Object(typed).to_string())
    }

    /// Returns the schema that a reference inside this schema leads to; null if it leads nowhere.
    #[napi(catch_unwind)]
    pub fn target(schema: String, reference: String) -> Option<String> {
        let schema = serde_json::from_str(&schema).ok()?;
        schema::target(&schema, &reference).map(|target| json!(target).to_string())
    }

    /// Returns the schema normalized for hosts with limited support: references expanded, nullable types simplified.
    /// Errors if it is recursive.
    #[napi(catch_unwind)]
    pub fn portable(schema: String) -> napi::Result<String> {
        let unusable = |message: String| misuse(Error::misuse(message));
        let schema = serde_json::from_str(&schema).map_err(|error| unusable(error.to_string()))?;
        let written = schema::portable(&schema).map_err(|error| unusable(error.to_string()))?;
        Ok(Value::Object(written).to_string())
    }

    /// Returns a pattern that matches without flags what `pattern` matches with `flags`; null where there is none.
    #[napi(catch_unwind)]
    pub fn without_flags(pattern: String, flags: String) -> Option<String> {
        schema::without_flags(&pattern, &flags)
    }
}
