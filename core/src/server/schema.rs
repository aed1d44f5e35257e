//! JSON Schemas of Rust types in a form that all clients can read: without dialect, without formats specific to Rust,
//! and without references unless the server's profile allows them.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

use crate::{
    error::Error,
    protocol::{Raw, json::to_raw},
    schema::{self, SchemaProfile, portable},
};

/// Compiles the schema that a handler's values are checked against.
pub(super) fn compile(schema: &Value, place: &str) -> Result<schema::Schema, Error> {
    schema::Schema::compile(to_raw(schema).get())
        .map_err(|error| Error::misuse(format!("the schema of {place} can't be used: {error}")))
}

/// Returns the schema of a type for deserialization.
pub(super) fn of_arguments<T: JsonSchema>() -> Value {
    generated::<T>(settings())
}

/// Returns the schema of a type for serialization.
pub(super) fn of_output<T: JsonSchema>() -> Value {
    generated::<T>(settings().for_serialize())
}

/// Replaces references by their targets, unless a type is recursive.
pub(super) fn written_out(schema: Value) -> Value {
    match schema.as_object().map(portable) {
        Some(Ok(written)) => Value::Object(written),
        _ => schema,
    }
}

/// Converts a schema to the server's profile.
pub(super) fn shown(schema: Raw, profile: SchemaProfile, place: &str) -> Result<Raw, Error> {
    if profile == SchemaProfile::Full {
        return Ok(schema);
    }
    // Values other than objects are handled where the schema is compiled.
    let Ok(whole) = serde_json::from_str(schema.get()) else { return Ok(schema) };
    match portable(&whole) {
        Ok(written) => Ok(to_raw(&written)),
        Err(error) => Err(Error::misuse(format!(
            "{place} can't be published: {error}. Hosts can't read such schemas; limit the depth, make the inner type opaque, or make \
             the server with schema_profile = SchemaProfile::Full"
        ))),
    }
}

/// Returns the schema of a handler without arguments.
pub(super) fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

/// Returns the properties of an object schema: name, description, and whether it is required.
pub(super) fn properties(schema: &Value) -> Vec<(String, Option<String>, bool)> {
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let description = property["description"].as_str().map(ToOwned::to_owned);
            (name.clone(), description, is_required(name))
        })
        .collect()
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = false;
        settings.meta_schema = None;
    })
}

fn generated<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with_transform(RecursiveTransform(drop_rust_formats));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    if schema.get("title").is_some_and(|title| *title == *T::schema_name()) {
        schema.remove("title");
    }
    schema.into()
}

/// Removes `int64`, `uint8`, `double`, …, which are not formats of JSON Schema; `minimum` and `maximum` express the
/// bounds.
fn drop_rust_formats(schema: &mut Schema) {
    let is_number = schema.get("format").and_then(Value::as_str).is_some_and(|kind| {
        ["int", "uint", "float", "double"].iter().any(|name| kind.starts_with(name))
    });
    if is_number {
        schema.remove("format");
    }
}
