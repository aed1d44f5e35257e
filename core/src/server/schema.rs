//! JSON Schemas of Rust types, such that every client can read them: nothing referred to but what recurs, no dialect, no
//! names of Rust types.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

/// Of what is read.
pub(super) fn of_arguments<T: JsonSchema>() -> Value {
    portable::<T>(settings())
}

/// Of what is written.
pub(super) fn of_output<T: JsonSchema>() -> Value {
    portable::<T>(settings().for_serialize())
}

/// Of a handler that takes no arguments.
pub(super) fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

/// The properties of an object's schema: name, description, whether it must be given.
pub(super) fn properties(schema: &Value) -> Vec<(String, Option<String>, bool)> {
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
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
    SchemaSettings::draft2020_12().with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    })
}

fn portable<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with_transform(RecursiveTransform(drop_rust_formats));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    if schema.get("title").is_some_and(|it| *it == *T::schema_name()) {
        schema.remove("title");
    }
    schema.into()
}

/// `int64`, `uint8`, `double`, … are no formats of JSON Schema; what they bound is said by `minimum` and `maximum`.
fn drop_rust_formats(schema: &mut Schema) {
    let is_number = schema.get("format").and_then(Value::as_str).is_some_and(|it| {
        ["int", "uint", "float", "double"].iter().any(|name| it.starts_with(name))
    });
    if is_number {
        schema.remove("format");
    }
}
