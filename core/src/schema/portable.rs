//! Normalization of schemas for hosts with limited support: `$ref` expanded, `$defs` and the default `$schema` removed,
//! nullable types simplified. The output is deterministic.

use serde_json::{Map, Value, json};

use super::{SchemaError, dialect};

type Object = Map<String, Value>;

/// Keywords that hold a schema or a list of schemas, and keywords that hold a map of schemas.
const HOLDING: [&str; 15] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
];
const HOLDING_TOO: &str = "unevaluatedProperties";
const NAMING: [&str; 4] = ["dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Removed, because definitions are expanded where they are used.
const DEFINING: [&str; 2] = ["$defs", "definitions"];
/// Descriptive keywords, which may be merged with the target of a `$ref`.
const DESCRIBING: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];
/// The maximum number of schemas after expansion.
const MAX_PARTS: usize = 20_000;
/// The maximum nesting depth after expansion, which bounds the stack.
const MAX_DEPTH: usize = 256;

/// The form in which schemas are published.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum SchemaProfile {
    /// Without `$ref`, for hosts with limited support.
    #[default]
    Portable,
    /// Unchanged.
    Full,
}

/// Expands all references inside the schema. External references stay and are rejected by [`super::Schema::compile`].
///
/// Errors if the schema is recursive or grows beyond the limits.
pub fn portable(schema: &Object) -> Result<Object, SchemaError> {
    let mut writer = Writer {
        root: schema,
        ignores_siblings: dialect::ignores_siblings(schema.get("$schema")),
        keeps_references: false,
        parts: 0,
        depth: 0,
    };
    let mut written = writer.write(schema, &mut Vec::new())?;
    if !writer.keeps_references {
        for name in DEFINING {
            written.shift_remove(name);
        }
    }
    if dialect::is_default(written.get("$schema")) {
        written.shift_remove("$schema");
    }
    Ok(written)
}

struct Writer<'a> {
    root: &'a Object,
    /// `true` before 2019-09, where keywords beside a `$ref` are ignored.
    ignores_siblings: bool,
    keeps_references: bool,
    parts: usize,
    depth: usize,
}

impl<'a> Writer<'a> {
    /// Expands a schema; `open` are the references being expanded around it.
    fn write(
        &mut self,
        schema: &'a Object,
        open: &mut Vec<&'a str>,
    ) -> Result<Object, SchemaError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SchemaError::new(format!(
                "without $ref the schema gets deeper than {MAX_DEPTH} levels"
            )));
        }
        let written = self.write_one(schema, open);
        self.depth -= 1;
        written
    }

    fn write_one(
        &mut self,
        schema: &'a Object,
        open: &mut Vec<&'a str>,
    ) -> Result<Object, SchemaError> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(SchemaError::new(format!(
                "without $ref the schema grows past {MAX_PARTS} parts"
            )));
        }
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return self.write_members(schema, open).map(simple_null);
        };
        let Some(target) = target(self.root, reference) else {
            self.keeps_references = true;
            return self.write_members(schema, open);
        };
        if open.contains(&reference) {
            let way: Vec<_> = open.iter().copied().chain([reference]).collect();
            return Err(SchemaError::new(format!("the schema is cyclic ({})", way.join(" → "))));
        }
        open.push(reference);
        let mut inlined = self.write(target, open)?;
        open.pop();
        for name in ["$defs", "definitions", "$schema", "$anchor"] {
            inlined.shift_remove(name);
        }
        let hidden = ["$ref", "$defs", "definitions", "$schema"];
        let mut beside = schema.clone();
        beside.retain(|name, _| !self.ignores_siblings && !hidden.contains(&name.as_str()));
        if beside.keys().all(|keyword| DESCRIBING.contains(&keyword.as_str())) {
            inlined.extend(beside);
            return Ok(inlined);
        }
        let mut siblings = Object::new();
        for (name, value) in schema.iter().filter(|(name, _)| beside.contains_key(*name)) {
            self.write_member(name, value, open, &mut siblings)?;
        }
        let mut all = vec![Value::Object(inlined)];
        if let Some(Value::Array(others)) = siblings.shift_remove("allOf") {
            all.extend(others);
        }
        siblings.insert("allOf".into(), all.into());
        Ok(siblings)
    }

    fn write_members(
        &mut self,
        schema: &'a Object,
        open: &mut Vec<&'a str>,
    ) -> Result<Object, SchemaError> {
        let mut written = Object::new();
        for (name, value) in schema {
            self.write_member(name, value, open, &mut written)?;
        }
        Ok(written)
    }

    fn write_member(
        &mut self,
        name: &str,
        value: &'a Value,
        open: &mut Vec<&'a str>,
        written: &mut Object,
    ) -> Result<(), SchemaError> {
        self.keeps_references |= name == "$dynamicRef";
        let value = match value {
            Value::Object(named) if NAMING.contains(&name) => {
                let mut schemas = Object::new();
                for (name, value) in named {
                    schemas.insert(name.clone(), self.write_any(value, open)?);
                }
                Value::Object(schemas)
            }
            value if HOLDING.contains(&name) || name == HOLDING_TOO => {
                self.write_any(value, open)?
            }
            // Its mapping names definitions (OpenAPI, "Discriminator Object").
            Value::Object(members) if name == "discriminator" => {
                let kept = members.iter().filter(|(key, _)| *key != "mapping");
                Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
            }
            value => value.clone(),
        };
        written.insert(name.to_owned(), value);
        Ok(())
    }

    fn write_any(
        &mut self,
        value: &'a Value,
        open: &mut Vec<&'a str>,
    ) -> Result<Value, SchemaError> {
        match value {
            Value::Object(schema) => self.write(schema, open).map(Value::Object),
            Value::Array(items) => items.iter().map(|item| self.write_any(item, open)).collect(),
            other => Ok(other.clone()),
        }
    }
}

/// Rewrites `anyOf: [X, null]` as X with a nullable type, if X has a single type.
fn simple_null(schema: Object) -> Object {
    let null = json!({"type": "null"});
    let other = match schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([other, is_null] | [is_null, other]) if *is_null == null => other.as_object(),
        _ => None,
    };
    let Some(other) = other else { return schema };
    let kind = other.get("type").and_then(Value::as_str).filter(|kind| *kind != "null");
    // Other keywords beside the choice apply as well.
    let is_outside = |name: &&String| *name != "anyOf" && !DEFINING.contains(&name.as_str());
    let outside = || schema.keys().filter(is_outside);
    let (Some(kind), false) = (kind, other.contains_key("const")) else { return schema };
    if !outside().all(|keyword| DESCRIBING.contains(&keyword.as_str())) {
        return schema;
    }
    let mut merged = other.clone();
    merged.insert("type".into(), json!([kind, "null"]));
    if let Some(Value::Array(values)) = merged.get_mut("enum") {
        values.push(Value::Null);
    }
    merged.extend(schema.into_iter().filter(|(name, _)| name != "anyOf"));
    merged
}

/// Returns the target of `#`, `#/a/b` or `#anchor` in this document.
pub fn target<'a>(root: &'a Object, reference: &str) -> Option<&'a Object> {
    let fragment = reference.strip_prefix('#')?;
    let Some(path) = fragment.strip_prefix('/') else {
        return match fragment {
            "" => Some(root),
            anchor => find_anchor(root, anchor),
        };
    };
    let mut at: Option<&Value> = None;
    for part in path.split('/') {
        let name = percent_decoded(part).replace("~1", "/").replace("~0", "~");
        at = Some(match at {
            None => root.get(&name)?,
            Some(Value::Object(members)) => members.get(&name)?,
            Some(Value::Array(items)) => items.get(name.parse::<usize>().ok()?)?,
            Some(_) => return None,
        });
    }
    at?.as_object()
}

fn find_anchor<'a>(schema: &'a Object, anchor: &str) -> Option<&'a Object> {
    if schema.get("$anchor").is_some_and(|name| name == anchor) {
        return Some(schema);
    }
    schema.values().find_map(|value| find_anchor_in(value, anchor))
}

fn find_anchor_in<'a>(value: &'a Value, anchor: &str) -> Option<&'a Object> {
    match value {
        Value::Object(schema) => find_anchor(schema, anchor),
        Value::Array(items) => items.iter().find_map(|item| find_anchor_in(item, anchor)),
        _ => None,
    }
}

/// Decodes percent-encoding; invalid text is returned unchanged.
fn percent_decoded(text: &str) -> String {
    let (bytes, mut decoded) = (text.as_bytes(), Vec::with_capacity(text.len()));
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        if let Some(value) =
            digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            decoded.push(value);
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    fn written(schema: &Value) -> Result<Value, String> {
        portable(schema.as_object().unwrap()).map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn references_of_every_form_are_written_out() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "pointer": {"$ref": "#/$defs/a~1b", "description": "D"},
                "encoded": {"$ref": "#/%24defs/a~1b"},
                "anchor": {"$ref": "#here"},
                "item": {"$ref": "#/$defs/list/anyOf/0"},
                "narrowed": {"$ref": "#/$defs/anchored", "minimum": 3},
                "$ref": {"type": "string", "enum": ["$ref"]},
                "data": {"const": {"$ref": "#/$defs/a~1b"}, "default": {"$defs": 1}},
            },
            "$defs": {
                "a/b": {"type": "string"},
                "anchored": {"$anchor": "here", "type": "integer"},
                "list": {"anyOf": [{"type": "boolean"}]},
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "pointer": {"type": "string", "description": "D"},
                "encoded": {"type": "string"},
                "anchor": {"type": "integer"},
                "item": {"type": "boolean"},
                "narrowed": {"minimum": 3, "allOf": [{"type": "integer"}]},
                "$ref": {"type": "string", "enum": ["$ref"]},
                "data": {"const": {"$ref": "#/$defs/a~1b"}, "default": {"$defs": 1}},
            },
        });
        assert_eq!(written(&schema).unwrap(), expected);
    }

    #[test]
    fn another_dialect_keeps_its_name_and_rules_and_what_points_elsewhere_stays() {
        let old = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "definitions": {"n": {"type": "number"}},
            "properties": {"a": {"$ref": "#/definitions/n", "minimum": 1}},
        });
        let expected = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {"type": "number"}},
        });
        assert_eq!(written(&old).unwrap(), expected);
        let foreign = json!({
            "type": "object", "$defs": {"n": {}},
            "properties": {
                "a": {"$ref": "https://example.org/x.json"}, "b": {"$ref": "#/$defs/missing"},
            },
        });
        assert_eq!(written(&foreign).unwrap(), foreign);
    }

    #[test]
    fn a_discriminator_names_no_definitions() {
        let cat = |reference: &str| json!({"propertyName": "kind", "mapping": {"cat": reference}});
        let schema = json!({
            "type": "object",
            "properties": {
                "pet": {"anyOf": [{"$ref": "#/$defs/cat"}], "discriminator": cat("#/$defs/cat")},
                "discriminator": {"type": "object", "mapping": 1},
            },
            "$defs": {"cat": {"type": "object"}},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "pet": {"anyOf": [{"type": "object"}], "discriminator": {"propertyName": "kind"}},
                "discriminator": {"type": "object", "mapping": 1},
            },
        });
        assert_eq!(written(&schema).unwrap(), expected);
    }

    #[test]
    fn null_is_kept_simple() {
        let cases = [
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
                json!({"type": ["integer", "null"]}),
            ),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "string", "enum": ["a"]}], "description": "D"}),
                json!({"type": ["string", "null"], "enum": ["a", null], "description": "D"}),
            ),
            (
                json!({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"type": "string"}}}),
                json!({"type": ["string", "null"]}),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(written(&schema).unwrap(), expected);
        }
        for kept in [
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
            json!({"anyOf": [{"const": 1, "type": "integer"}, {"type": "null"}]}),
            json!({"anyOf": [{"enum": [1]}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}], "minimum": 1}),
        ] {
            assert_eq!(written(&kept).unwrap(), kept);
        }
    }

    #[test]
    fn what_needs_itself_or_grows_beyond_use_is_refused() {
        let itself = json!({"type": "object", "properties": {"up": {"$ref": "#"}}});
        assert_eq!(written(&itself).unwrap_err(), "the schema is cyclic (# → #)");
        let unused = json!({"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert_eq!(written(&unused).unwrap(), json!({"type": "object"}));
        let mut defs = json!({"d0": {"type": "string"}});
        for depth in 1..=30 {
            let below = json!({"$ref": format!("#/$defs/d{}", depth - 1)});
            defs[format!("d{depth}")] = json!({"oneOf": [below, below]});
        }
        let bomb = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d30"}}});
        assert!(written(&bomb).unwrap_err().contains("grows past 20000 parts"));
        let mut defs = json!({"d0": {"type": "string"}});
        for depth in 1..=5_000 {
            defs[format!("d{depth}")] = json!({"$ref": format!("#/$defs/d{}", depth - 1)});
        }
        let chain = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d5000"}}});
        assert!(written(&chain).unwrap_err().contains("deeper than 256 levels"));
    }
}
