//! Differences between recorded and present messages.

use serde_json::Value;

/// Members that every session has of its own: metadata, and texts that only the server understands.
const IGNORED: [&str; 3] = ["_meta", "requestState", "nextCursor"];
/// The longest value that is shown.
const SHOWN: usize = 120;

/// Returns one line for each difference, beginning with the path of the value.
pub(super) fn differences(path: &str, recorded: &Value, present: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(path, recorded, present, &mut found);
    found
}

fn compare(path: &str, recorded: &Value, present: &Value, found: &mut Vec<String>) {
    match (recorded, present) {
        (Value::Object(recorded), Value::Object(present)) => {
            let is_compared = |name: &str| !IGNORED.contains(&name);
            for (name, value) in recorded.iter().filter(|member| is_compared(member.0)) {
                let path = format!("{path}.{name}");
                match present.get(name) {
                    Some(other) => compare(&path, value, other, found),
                    None => found.push(format!("{path}: {} recorded, missing now", show(value))),
                }
            }
            for (name, value) in present.iter().filter(|member| is_compared(member.0)) {
                if !recorded.contains_key(name) {
                    found.push(format!("{path}.{name}: not recorded, {} now", show(value)));
                }
            }
        }
        (Value::Array(recorded), Value::Array(present)) if recorded.len() == present.len() => {
            for (index, (recorded, present)) in recorded.iter().zip(present).enumerate() {
                compare(&format!("{path}[{index}]"), recorded, present, found);
            }
        }
        (recorded, present) if recorded == present => (),
        (recorded, present) => {
            found.push(format!("{path}: {} recorded, {} now", show(recorded), show(present)));
        }
    }
}

fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_has_its_path() {
        let recorded = json!({ "a": [1, 2], "b": { "c": "x" }, "_meta": 1, "gone": true });
        let present = json!({ "a": [1, 3], "b": { "c": "x" }, "_meta": 2, "more": null });
        let expected = [
            "result.a[1]: 2 recorded, 3 now",
            "result.gone: true recorded, missing now",
            "result.more: not recorded, null now",
        ];
        assert_eq!(differences("result", &recorded, &present), expected);
    }

    #[test]
    fn long_values_are_shortened() {
        let lines = differences("a", &json!("ä".repeat(1000)), &json!(1));
        assert!(lines[0].len() < 400, "{lines:?}");
    }
}
