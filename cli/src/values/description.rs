//! Schemas in words: one line a member, as in `limit  integer, from 1 to 100, default 10  The most results`.

use serde_json::{Map, Value};

use super::SchemaInDocument;

/// The depth to which members of members are listed.
const DEPTH: usize = 4;
/// The most alternatives, and values of an enumeration, that are listed.
const LISTED: usize = 12;
/// The most characters of a value that are shown.
const SHOWN: usize = 60;

/// Describes the members of an object, one line each; members of members are indented.
pub fn lines(schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    describe_members(SchemaInDocument { root: schema, schema }, 0, &mut out);
    out
}

/// Describes the member at a dotted place such as `order.lines[0].sku`; `None` if the schema does not describe it.
pub fn line_of(schema: &Value, place: &str) -> Option<String> {
    let mut at = SchemaInDocument { root: schema, schema }.resolved();
    let mut line = None;
    for part in place.split(['.', '[']).filter(|part| !part.is_empty()) {
        let next = if part.ends_with(']') {
            at.schema.get("items").map(|items| at.at(items).resolved())
        } else {
            let found = at.schema.get("properties").and_then(|properties| properties.get(part));
            found.map(|schema| {
                line = Some(line_with(part, at.at(schema), is_required(at.schema, part)));
                at.at(schema).resolved()
            })
        };
        let Some(next) = next else { break };
        at = next;
    }
    line
}

/// Returns the accepted types with an article: "an integer or null".
pub fn with_article(place: SchemaInDocument<'_>) -> String {
    let phrase = kind(place, 0);
    match phrase.split(' ').next() {
        Some("null" | "any" | "one") => phrase,
        Some(word) if word.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {phrase}"),
        _ => format!("a {phrase}"),
    }
}

fn describe_members(place: SchemaInDocument<'_>, depth: usize, out: &mut Vec<String>) {
    let place = place.resolved();
    let members = place.schema.get("properties").and_then(Value::as_object);
    for (name, schema) in members.into_iter().flatten() {
        let line = line_with(name, place.at(schema), is_required(place.schema, name));
        out.push(format!("{}{line}", "  ".repeat(depth)));
        if depth + 1 < DEPTH {
            let member = place.at(schema).resolved();
            let inner = member.schema.get("items").map_or(member, |items| member.at(items));
            describe_members(inner, depth + 1, out);
        }
    }
}

/// Returns the line of a member.
pub fn line_with(name: &str, place: SchemaInDocument<'_>, is_required: bool) -> String {
    let mut line = format!("{name}  {}", phrase(place, is_required));
    if let Some(text) = text_of(place) {
        line.push_str("  ");
        line.push_str(&text);
    }
    line
}

/// Describes a member in words, without its name and description.
pub fn phrase(place: SchemaInDocument<'_>, is_required: bool) -> String {
    let resolved = place.resolved();
    let mut parts = vec![kind(place, 0)];
    parts.extend(bounds(resolved.schema));
    if let Some(format) = resolved.schema.get("format").and_then(Value::as_str) {
        parts.push(format.to_owned());
    }
    if let Some(default) = place.schema.get("default").or_else(|| resolved.schema.get("default")) {
        parts.push(format!("default {}", shown(default)));
    } else if is_required {
        parts.push("required".into());
    }
    parts.join(", ")
}

/// Returns the description of a member, or else its title, on one line.
pub fn text_of(place: SchemaInDocument<'_>) -> Option<String> {
    let texts = [place.schema, place.resolved().schema].into_iter();
    let text =
        texts.flat_map(|schema| ["description", "title"].map(|name| schema.get(name)?.as_str()));
    let text = text.flatten().find(|text| !text.trim().is_empty())?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_required(object: &Value, name: &str) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|known| known == name))
}

/// Returns the types or values that a schema accepts, in words.
fn kind(place: SchemaInDocument<'_>, depth: usize) -> String {
    let place = place.resolved();
    let schema = place.schema;
    if let Some(value) = schema.get("const") {
        return shown(value);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let mut names: Vec<_> = values.iter().take(LISTED).map(shown).collect();
        if values.len() > LISTED {
            names.push("…".into());
        }
        return format!("one of {}", names.join(", "));
    }
    if depth >= DEPTH {
        return "any value".into();
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema.get(keyword).and_then(Value::as_array) {
            let mut names = Vec::new();
            for schema in schemas.iter().take(LISTED) {
                let name = kind(place.at(schema), depth + 1);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            return names.join(" or ");
        }
    }
    let one = |name: &str| match (name, schema.get("items")) {
        ("array", Some(items)) => format!("array of {}", kind(place.at(items), depth + 1)),
        _ => name.to_owned(),
    };
    match schema.get("type") {
        Some(Value::String(name)) => one(name),
        Some(Value::Array(names)) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).map(one).collect();
            names.join(" or ")
        }
        _ if schema.get("properties").is_some() => "object".into(),
        _ => "any value".into(),
    }
}

fn bounds(schema: &Value) -> Vec<String> {
    let Some(schema) = schema.as_object() else { return Vec::new() };
    let pairs = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ];
    let mut out: Vec<_> =
        pairs.iter().filter_map(|(least, most, unit)| range(schema, least, most, unit)).collect();
    if let Some(limit) = schema.get("exclusiveMinimum") {
        out.push(format!("above {}", shown(limit)));
    }
    if let Some(limit) = schema.get("exclusiveMaximum") {
        out.push(format!("below {}", shown(limit)));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        out.push(format!("like {}", clipped(pattern)));
    }
    out
}

fn range(schema: &Map<String, Value>, least: &str, most: &str, unit: &str) -> Option<String> {
    match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) if least == most => Some(format!("{}{unit}", shown(least))),
        (Some(least), Some(most)) => {
            Some(format!("from {} to {}{unit}", shown(least), shown(most)))
        }
        (Some(least), None) => Some(format!("at least {}{unit}", shown(least))),
        (None, Some(most)) => Some(format!("at most {}{unit}", shown(most))),
        (None, None) => None,
    }
}

fn shown(value: &Value) -> String {
    clipped(&value.to_string())
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_member_has_a_line() {
        let schema = json!({
            "type": "object",
            "required": ["title", "order"],
            "$defs": {"Line": {"type": "object", "required": ["sku"], "properties": {
                "sku": {"type": "string", "maxLength": 8, "description": "The\n article"},
            }}},
            "properties": {
                "title": {"type": "string", "title": "Title"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                "color": {"enum": ["red", "green"]},
                "year": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
                "order": {"type": "array", "items": {"$ref": "#/$defs/Line"}, "minItems": 1},
            },
        });
        assert_eq!(
            lines(&schema),
            [
                "title  string, required  Title",
                "limit  integer, from 1 to 100, default 10",
                r#"color  one of "red", "green""#,
                "year  integer or null, default null",
                "order  array of object, at least 1 items, required",
                "  sku  string, at most 8 characters, required  The article",
            ]
        );
        assert_eq!(
            line_of(&schema, "order[0].sku").as_deref(),
            Some("sku  string, at most 8 characters, required  The article")
        );
        assert_eq!(
            line_of(&schema, "order[0].color").as_deref(),
            line_of(&schema, "order").as_deref()
        );
        assert_eq!(line_of(&schema, "other"), None);
    }

    #[test]
    fn schemas_within_themselves_end() {
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {
            "next": {"$ref": "#/$defs/n"}, "list": {"items": {"$ref": "#/$defs/n"}},
        }}}});
        assert!(lines(&schema).len() < 100);
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [
            {"$ref": "#/$defs/n"}, {"type": "array", "items": {"$ref": "#/$defs/n"}},
        ]}}});
        assert!(!with_article(SchemaInDocument { root: &schema, schema: &schema }).is_empty());
    }
}
