//! Places in a value, as users write them: `order.lines[0].sku`.

use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

/// Returns the place at `path` in `value`, or of a member of the object there. Empty for the whole value.
pub(super) fn dotted(path: &Location, value: &Value, member: Option<&str>) -> String {
    let mut out = String::new();
    let mut at = Some(value);
    for segment in path.segments() {
        match (segment, at) {
            (LocationSegment::Index(index), Some(Value::Array(items))) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
                at = items.get(index);
            }
            (LocationSegment::Index(index), within) => {
                let name = index.to_string();
                push(&mut out, &name);
                at = within.and_then(|it| it.get(&name));
            }
            (LocationSegment::Property(name), within) => {
                push(&mut out, &name);
                at = within.and_then(|it| it.get(&*name));
            }
        }
    }
    if let Some(name) = member {
        push(&mut out, name);
    }
    out
}

fn push(out: &mut String, name: &str) {
    let is_special = |it: char| it.is_whitespace() || matches!(it, '.' | '[' | ']' | '\'' | '"');
    let is_plain = !name.is_empty() && !name.contains(is_special);
    match (is_plain, out.is_empty()) {
        (false, _) => {
            out.push('[');
            out.push_str(&Value::from(name).to_string());
            out.push(']');
        }
        (true, true) => out.push_str(name),
        (true, false) => {
            out.push('.');
            out.push_str(name);
        }
    }
}
