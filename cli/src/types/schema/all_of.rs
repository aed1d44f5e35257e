//! Objects that are described in parts.

use serde_json::{Map, Value};

use super::{DEEPEST, reference::unescaped};

/// Returns one object schema for all parts of `allOf` and what stands beside them; `None` if a part is not an object.
pub fn merged(
    root: &Value,
    schema: &Map<String, Value>,
    parts: &[Value],
) -> Option<Map<String, Value>> {
    let mut merged = schema.clone();
    merged.remove("allOf");
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut open: Vec<(Value, usize)> = parts.iter().rev().map(|part| (part.clone(), 0)).collect();
    let mut left = 1_000_usize;
    let own = Value::Object(merged.clone());
    open.insert(0, (own, 0));
    while let Some((part, depth)) = open.pop() {
        left = left.checked_sub(1)?;
        let part = part.as_object()?;
        if depth > DEEPEST {
            return None;
        }
        if let Some(reference) = part.get("$ref") {
            let pointer = reference.as_str()?.strip_prefix('#')?;
            open.push((root.pointer(&unescaped(pointer))?.clone(), depth + 1));
        }
        let inner = part.get("allOf").and_then(Value::as_array);
        open.extend(inner.into_iter().flatten().rev().map(|part| (part.clone(), depth + 1)));
        if part.get("type").is_some_and(|kind| kind != "object")
            || ["anyOf", "oneOf", "enum", "const", "items"]
                .iter()
                .any(|keyword| part.contains_key(*keyword))
        {
            return None;
        }
        for (name, schema) in
            part.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            properties.insert(name.clone(), schema.clone());
        }
        required
            .extend(part.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
        if let Some(description) = part.get("description")
            && !merged.contains_key("description")
        {
            merged.insert("description".to_owned(), description.clone());
        }
    }
    if properties.is_empty() {
        return None;
    }
    merged.remove("$ref");
    merged.insert("type".to_owned(), "object".into());
    merged.insert("properties".to_owned(), Value::Object(properties));
    merged.insert("required".to_owned(), Value::Array(required));
    Some(merged)
}
