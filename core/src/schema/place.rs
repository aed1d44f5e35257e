//! Places in a value, as users write them: `order.lines[0].sku`.

use serde_json::Value;

use super::failure::Segment;

/// Returns the place at `path`, or of a member of the object there. Empty for the whole value.
pub(super) fn dotted(path: &[Segment<'_>], member: Option<&str>) -> String {
    let mut out = String::new();
    for segment in path {
        match segment {
            Segment::Item(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
            Segment::Member(name) => push(&mut out, name),
        }
    }
    if let Some(name) = member {
        push(&mut out, name);
    }
    out
}

fn push(out: &mut String, name: &str) {
    let is_special =
        |each: char| each.is_whitespace() || matches!(each, '.' | '[' | ']' | '\'' | '"');
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
