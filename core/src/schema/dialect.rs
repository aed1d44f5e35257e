//! The dialects of JSON Schema.

use serde_json::Value;

use super::SchemaError;
use super::explain::clipped;

/// A version of JSON Schema, from the oldest to the newest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

/// The URIs of dialects, without scheme and trailing `#`.
const DIALECTS: [(&str, Dialect); 6] = [
    ("json-schema.org/draft/2020-12/schema", Dialect::Draft2020),
    ("json-schema.org/schema", Dialect::Draft2020),
    ("json-schema.org/draft/2019-09/schema", Dialect::Draft2019),
    ("json-schema.org/draft-07/schema", Dialect::Draft7),
    ("json-schema.org/draft-06/schema", Dialect::Draft6),
    ("json-schema.org/draft-04/schema", Dialect::Draft4),
];

impl Dialect {
    /// Returns the dialect that `$schema` names, and `None` without it. Errors for an unknown one.
    pub(super) fn named_by(schema: &Value) -> Result<Option<Self>, SchemaError> {
        let Some(named) = schema.get("$schema") else { return Ok(None) };
        let uri = named.as_str().unwrap_or_default();
        let without_scheme =
            ["https://", "http://"].iter().find_map(|prefix| uri.strip_prefix(prefix));
        let bare = without_scheme.unwrap_or_default();
        let bare = bare.strip_suffix('#').unwrap_or(bare);
        match DIALECTS.iter().find(|(known, _)| *known == bare) {
            Some((_, dialect)) => Ok(Some(*dialect)),
            None => Err(SchemaError::new(format!(
                "the dialect `$schema`: {} is unknown; supported are 2020-12 (also without `$schema`), 2019-09, \
                 draft-07, draft-06 and draft-04, such as \"https://json-schema.org/draft/2020-12/schema\"",
                clipped(&named.to_string(), 100)
            ))
            .foreign()),
        }
    }

    /// Returns `true` before 2019-09, where all keywords beside a `$ref` are ignored.
    pub(super) fn ignores_siblings(self) -> bool {
        self <= Self::Draft7
    }

    /// Returns the keyword that names a schema by its URI.
    pub(super) fn identifier(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }
}

/// Returns `true` if a `$schema` names the default dialect.
pub(super) fn is_default(named: Option<&Value>) -> bool {
    let uri = named.and_then(Value::as_str).unwrap_or_default();
    uri.strip_suffix('#').unwrap_or(uri) == "https://json-schema.org/draft/2020-12/schema"
}

/// Returns `true` if keywords beside a `$ref` are ignored, as before 2019-09.
pub(super) fn ignores_siblings(named: Option<&Value>) -> bool {
    let uri = named.and_then(Value::as_str).unwrap_or_default();
    ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"]
        .iter()
        .any(|draft| uri.contains(draft))
}
