//! How much a schema may ask for.

use serde_json::Value;

use super::SchemaError;

/// Bytes of a schema's text: 1 MiB.
pub const MAX_TEXT: usize = 1024 * 1024;
/// Schemas within one schema.
pub const MAX_SUBSCHEMAS: usize = 10_000;
/// Steps from schema to schema (`$ref`, `allOf`, …) that stay at the same value. With the 128 levels a value can have,
/// this bounds the stack of a check.
pub const MAX_IN_PLACE: usize = 64;
/// Regular expressions in one schema.
pub const MAX_PATTERNS: usize = 1_000;
/// Patterns run in linear time, but for look-around and back-references, which may backtrack this often.
pub(super) const BACKTRACKS: usize = 50_000;
/// Where explaining a violation would take more steps than this, it is not explained.
pub(super) const EXPLAINED_STEPS: usize = 20_000;

/// A schema that has more schemas than this when it is written out can multiply the work of a check: each value is then
/// looked at first, and refused where its check could take more steps than this.
pub(super) const CHECKED_STEPS: usize = 1_000_000;

/// Bytes that one compiled pattern may take, so that all of them stay below 256 MiB.
pub(super) fn pattern_size(patterns: usize) -> usize {
    const ALL: usize = 256 * 1024 * 1024;
    const ONE: usize = 4 * 1024 * 1024;
    (ALL / patterns.max(1)).min(ONE)
}

pub(super) fn read(text: &str) -> Result<Value, SchemaError> {
    if text.len() > MAX_TEXT {
        let message =
            format!("the schema has {} bytes; at most {MAX_TEXT} are allowed", text.len());
        return Err(SchemaError::new(message));
    }
    // serde_json reads at most 128 levels, which is the depth a schema may have as well.
    let document: Value = serde_json::from_str(text)
        .map_err(|error| SchemaError::new(format!("the schema can't be read: {error}")))?;
    match document {
        Value::Object(_) | Value::Bool(_) => Ok(document),
        _ => Err(SchemaError::new("a schema must be an object or a boolean")),
    }
}
