//! Detection of the JSON Schema dialect.

use jsonschema::Draft;
use serde_json::Value;

use super::SchemaError;
use super::explain::clipped;

/// The dialect's URI without scheme and trailing `#`.
const DIALECTS: [(&str, Draft); 6] = [
    ("json-schema.org/draft/2020-12/schema", Draft::Draft202012),
    ("json-schema.org/schema", Draft::Draft202012),
    ("json-schema.org/draft/2019-09/schema", Draft::Draft201909),
    ("json-schema.org/draft-07/schema", Draft::Draft7),
    ("json-schema.org/draft-06/schema", Draft::Draft6),
    ("json-schema.org/draft-04/schema", Draft::Draft4),
];

/// Returns `true` if a `$schema` names the default dialect.
pub(super) fn is_default(named: Option<&Value>) -> bool {
    let uri = named.and_then(Value::as_str).unwrap_or_default();
    uri.strip_suffix('#').unwrap_or(uri) == "https://json-schema.org/draft/2020-12/schema"
}

/// Returns `true` if keywords beside a `$ref` are ignored, as before 2019-09.
pub(super) fn ignores_siblings(named: Option<&Value>) -> bool {
    let uri = named.and_then(Value::as_str).unwrap_or_default();
    ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"].iter().any(|it| uri.contains(it))
}

pub(super) fn of(schema: &Value) -> Result<Draft, SchemaError> {
    let Some(named) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let uri = named.as_str().unwrap_or_default();
    let bare =
        uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")).unwrap_or_default();
    let bare = bare.strip_suffix('#').unwrap_or(bare);
    let known = DIALECTS.iter().find(|(it, _)| *it == bare);
    known.map(|(_, draft)| *draft).ok_or_else(|| {
        SchemaError::new(format!(
            "the dialect `$schema`: {} is unknown; supported are 2020-12 (also without `$schema`), 2019-09, draft-07, \
             draft-06 and draft-04, such as \"https://json-schema.org/draft/2020-12/schema\"",
            clipped(&named.to_string(), 100)
        ))
        .foreign()
    })
}
