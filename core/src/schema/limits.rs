//! Limits of schemas.

use serde_json::Value;

use super::SchemaError;

/// The maximum size of a schema: 1 MiB.
pub const MAX_TEXT: usize = 1024 * 1024;
/// The maximum nesting depth of schemas.
pub const MAX_SUBSCHEMAS: usize = 10_000;
/// The maximum length of a chain of schemas (`$ref`, `allOf`, …) applied to the same value.
pub const MAX_IN_PLACE: usize = 64;
/// The maximum number of regular expressions in a schema.
pub const MAX_PATTERNS: usize = 1_000;
/// The steps that all patterns with look-around or back-references may take in one check, times the bytes that a step may look
/// at. Other patterns run in linear time.
pub(super) const PATTERN_STEPS: usize = 50_000_000;
/// The maximum number of steps to explain a violation; beyond it the message stays general.
pub(super) const EXPLAINED_STEPS: usize = 20_000;

/// The steps that a check may take, and those for each value inside the checked one: a schema that is applied to a value is a
/// step.
pub(super) const CHECKED_STEPS: usize = 1_000_000;
pub(super) const STEPS_PER_VALUE: usize = 64;
/// The bytes of a string that are looked at in a step.
const BYTES_PER_STEP: usize = 512;
/// The steps that may be nested in each other, which bounds the stack of a check.
pub(super) const NESTED_STEPS: usize = 1_000;

/// The maximum size of a compiled pattern, in bytes, so that all patterns together stay below 256 MiB.
pub(super) fn pattern_size(patterns: usize) -> usize {
    const ALL: usize = 256 * 1024 * 1024;
    const ONE: usize = 4 * 1024 * 1024;
    (ALL / patterns.max(1)).min(ONE)
}

/// Returns the steps that it takes to look at a string.
pub(super) fn steps_of(text: &str) -> usize {
    text.len() / BYTES_PER_STEP
}

/// Counts the patterns in a schema, and what looks like one.
pub(super) fn count_patterns(document: &Value) -> usize {
    match document {
        Value::Array(items) => items.iter().map(count_patterns).sum(),
        Value::Object(members) => {
            let own = members.iter().map(|(name, value)| match (name.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(patterns)) => patterns.len(),
                _ => 0,
            });
            own.sum::<usize>() + members.values().map(count_patterns).sum::<usize>()
        }
        _ => 0,
    }
}

pub(super) fn read(text: &str) -> Result<Value, SchemaError> {
    if text.len() > MAX_TEXT {
        let message =
            format!("the schema has {} bytes; at most {MAX_TEXT} are allowed", text.len());
        return Err(SchemaError::new(message));
    }
    // serde_json accepts at most 128 levels, which is also the maximum depth of a schema.
    let document: Value = serde_json::from_str(text)
        .map_err(|error| SchemaError::new(format!("the schema can't be read: {error}")))?;
    match document {
        Value::Object(_) | Value::Bool(_) => Ok(document),
        _ => Err(SchemaError::new("a schema must be an object or a boolean")),
    }
}
