//! References between the parts of a schema.

use std::collections::BTreeMap;

use serde_json::Value;

/// Returns the texts of a definition and of all that it refers to.
pub fn closure(root: &Value, pointer: &str) -> String {
    let mut texts = BTreeMap::new();
    let mut open = vec![pointer.to_owned()];
    while let Some(pointer) = open.pop() {
        if texts.contains_key(&pointer) {
            continue;
        }
        let Some(definition) = root.pointer(&pointer) else { continue };
        let mut values = vec![definition];
        while let Some(value) = values.pop() {
            match value {
                Value::Object(members) => {
                    let reference = members.get("$ref").and_then(Value::as_str);
                    if let Some(next) = reference.and_then(|reference| reference.strip_prefix('#'))
                    {
                        open.push(unescaped(next));
                    }
                    values.extend(members.values());
                }
                Value::Array(items) => values.extend(items),
                _ => (),
            }
        }
        texts.insert(pointer, definition.to_string());
    }
    format!("{pointer} {texts:?}")
}

/// Returns whether a schema refers to the part of it at a pointer.
pub fn refers_to(root: &Value, pointer: &str) -> bool {
    let mut values = vec![root];
    while let Some(value) = values.pop() {
        match value {
            Value::Object(members) => {
                if members
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|reference| reference.strip_prefix('#'))
                    == Some(pointer)
                {
                    return true;
                }
                values.extend(members.values());
            }
            Value::Array(items) => values.extend(items),
            _ => (),
        }
    }
    false
}

/// Returns a JSON pointer of a fragment, in which characters may be percent-encoded.
pub fn unescaped(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte =
            hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}
