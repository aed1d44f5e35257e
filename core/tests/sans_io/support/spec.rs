//! The published JSON Schemas of every revision, if available.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex},
};

use gudgeon::{protocol::Revision, schema::Schema};
use serde_json::{Value, json};

type Cache<K, V> = LazyLock<Mutex<HashMap<K, Arc<V>>>>;

static SCHEMAS: Cache<Revision, Value> = LazyLock::new(Mutex::default);
static VALIDATORS: Cache<(Revision, String), Schema> = LazyLock::new(Mutex::default);

/// Returns whether the schemas are available; if not, prints that the test is skipped.
pub(crate) fn available() -> bool {
    let folder = folder();
    if !folder.is_dir() {
        eprintln!(
            "skipped: spec schemas not found at {} (set GUDGEON_SPEC_SCHEMAS)",
            folder.display()
        );
    }
    folder.is_dir()
}

/// The definitions of a revision's schema.json.
pub(crate) fn definitions(revision: Revision) -> Value {
    let schema = schema(revision);
    schema[definitions_key(&schema)].clone()
}

/// Holds `json` against one definition of a revision's schema.json; the error names every place that fails.
pub(crate) fn check(revision: Revision, definition: &str, json: &Value) -> Result<(), String> {
    validator(revision, definition).check(json).map_err(|violation| {
        format!("{json} is not a valid {definition} of {revision}: {violation}")
    })
}

fn folder() -> PathBuf {
    std::env::var_os("GUDGEON_SPEC_SCHEMAS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec-schemas")),
        PathBuf::from,
    )
}

fn schema(revision: Revision) -> Arc<Value> {
    let mut schemas = SCHEMAS.lock().expect("no test panics while it reads a schema");
    Arc::clone(schemas.entry(revision).or_insert_with(|| {
        let path = folder().join(revision.to_string()).join("schema.json");
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Arc::new(serde_json::from_slice(&text).expect("a published schema is JSON"))
    }))
}

fn validator(revision: Revision, definition: &str) -> Arc<Schema> {
    let schema = schema(revision);
    let key = definitions_key(&schema);
    assert!(schema[key].get(definition).is_some(), "{revision} defines no {definition}");
    let mut validators = VALIDATORS.lock().expect("no test panics while it compiles a schema");
    Arc::clone(validators.entry((revision, definition.to_owned())).or_insert_with(|| {
        let root = json!({
            "$schema": schema["$schema"],
            "$ref": format!("#/{key}/{definition}"),
            key: schema[key],
        });
        Arc::new(Schema::compile(&root.to_string()).expect("a published schema compiles"))
    }))
}

fn definitions_key(schema: &Value) -> &'static str {
    match schema.get("$defs") {
        Some(_) => "$defs",
        None => "definitions",
    }
}
