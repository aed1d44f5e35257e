//! Detection of `_meta` keys that the specification reserves (Overview, "_meta"). Such keys are sent anyway, since the
//! receiver may know them; the server's operator is warned.

use serde_json::value::RawValue;

use crate::protocol::{Members, Raw, json, meta, meta_key};

/// Keys that describe requests and notifications, or that the server sets itself.
const OWN: [&str; 7] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
    meta::PROGRESS_TOKEN,
];
/// The prefixes of the protocol's extensions, which handlers may use.
const EXTENSIONS: &str = "io.modelcontextprotocol";
/// The maximum number of keys that are checked.
const MAX_KEYS: usize = 64;

/// Returns one message per reserved key: the problem and the fix.
pub fn problems(meta: &RawValue) -> Vec<String> {
    let Ok(members) = serde_json::from_str::<Members<&RawValue>>(meta.get()) else {
        return Vec::new();
    };
    let keys = members.0.iter().take(MAX_KEYS);
    keys.filter_map(|(key, _)| problem(key).map(|problem| format!("the key {key:?} {problem}")))
        .collect()
}

/// Returns the `_meta` of another server's result without the keys that describe that server or its connection. `None` if nothing
/// is left.
pub(crate) fn without_own(meta: &RawValue) -> Option<Raw> {
    let Members(mut members) = serde_json::from_str::<Members<Raw>>(meta.get()).ok()?;
    members.retain(|(key, _)| !OWN.contains(&key.as_str()));
    (!members.is_empty()).then(|| json::to_raw(&Members(members)))
}

fn problem(key: &str) -> Option<&'static str> {
    if OWN.contains(&key) {
        return Some("is reserved for the protocol and has no effect here: leave it out");
    }
    let (prefix, name) = meta_key::split(key);
    if !prefix.is_none_or(meta_key::is_prefix) || !meta_key::is_name(name) {
        return Some(
            "is not a name that the specification allows: use letters, digits, \"-\", \"_\" and \".\", a letter or digit first \
             and last, with a prefix such as \"com.example/\" before it where it needs one",
        );
    }
    let second =
        prefix.filter(|prefix| *prefix != EXTENSIONS).and_then(|prefix| prefix.split('.').nth(1));
    matches!(second, Some("modelcontextprotocol" | "mcp")).then_some(
        "has a prefix that is reserved for the protocol: use one of your own, such as \"com.example/\"",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_the_specification_allows_pass() {
        for key in [
            "a",
            "camelCase_1.x-y",
            "com.example/thing",
            "com.example/",
            "com.example.mcp/tools",
            "mcp/x",
            "x-1.y/z",
            "traceparent",
            "io.modelcontextprotocol/related-task",
        ] {
            assert_eq!(problem(key), None, "{key:?}");
        }
    }

    #[test]
    fn keys_without_a_room_are_told_apart() {
        for (key, said) in [
            ("bad key", "is not a name"),
            ("_private", "is not a name"),
            ("trailing-", "is not a name"),
            ("1com/x", "is not a name"),
            ("com..example/x", "is not a name"),
            ("com.example-/x", "is not a name"),
            ("a/b/c", "is not a name"),
            ("/x", "is not a name"),
            ("schl\u{fc}ssel", "is not a name"),
            ("dev.mcp/x", "reserved"),
            ("com.mcp.tools/x", "reserved"),
            ("org.modelcontextprotocol.api/x", "reserved"),
            ("io.modelcontextprotocol/serverInfo", "has no effect here"),
            ("progressToken", "has no effect here"),
        ] {
            assert!(problem(key).is_some_and(|problem| problem.contains(said)), "{key:?}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_keys_and_very_many_are_not_all_read() {
        let raw = |text: String| RawValue::from_string(text).expect("JSON");
        assert_eq!(problems(&raw("[1]".into())), [""; 0]);
        let many: Vec<_> = (0..1_000).map(|number| format!(r#""bad {number}":1"#)).collect();
        assert_eq!(problems(&raw(format!("{{{}}}", many.join(",")))).len(), MAX_KEYS);
    }
}
