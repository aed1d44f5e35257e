//! Roots of clients, as both languages give them.

use std::path::Path;

use serde_json::Value;

use crate::{
    error::given::Problem,
    protocol::{
        Root,
        file_uri::{file_uri, is_file_uri},
        json::{self, to_raw},
    },
};

const WANTED: &str = "must be a file:// URI such as \"file:///srv/shelf\", an absolute path, or an object with \"uri\" and \"name\"";

/// Reads a list of roots, JSON.
pub fn read(given: &[u8]) -> Result<Vec<Root>, Problem> {
    read_all(&json::from_bytes(given).map_err(Problem::wrong_type)?)
}

/// Reads a list of roots. Each is a `file:` URI, an absolute path, or an object with such a `uri` and a `name`.
pub(super) fn read_all(given: &Value) -> Result<Vec<Root>, Problem> {
    let Value::Array(list) = given else {
        return Err(Problem::wrong_type(format!("roots must be a list, not {given}")));
    };
    list.iter().enumerate().map(|(at, value)| root(at, value)).collect()
}

fn root(at: usize, given: &Value) -> Result<Root, Problem> {
    let is_object = given.is_object();
    let member = |name: &str| given.get(name).filter(|value| !value.is_null());
    let message = || format!("roots[{at}] {WANTED}, not {given}");
    let text = |value: &Value| {
        value.as_str().map(str::to_owned).ok_or_else(|| Problem::wrong_type(message()))
    };
    let uri = text(if is_object { &given["uri"] } else { given })?;
    Ok(Root {
        uri: uri_of(uri).ok_or_else(|| Problem::not_allowed(message()))?,
        name: member("name").map(text).transpose()?,
        meta: member("_meta").map(to_raw),
    })
}

/// Returns the `file:` URI of an absolute path; a `file:` URI as it is.
fn uri_of(given: String) -> Option<String> {
    if is_file_uri(&given) {
        return Some(given);
    }
    let path = Path::new(&given);
    path.is_absolute().then(|| file_uri(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roots_are_uris_paths_and_objects() {
        let given = json!([
            "file:///a",
            "/srv/my shelf",
            { "uri": "FILE:///c", "name": "C", "_meta": { "a": 1 } },
            { "uri": "/d", "name": null },
        ]);
        let read = serde_json::to_value(read_all(&given).unwrap()).unwrap();
        let expected = json!([
            { "uri": "file:///a" },
            { "uri": "file:///srv/my%20shelf" },
            { "uri": "FILE:///c", "name": "C", "_meta": { "a": 1 } },
            { "uri": "file:///d" },
        ]);
        assert_eq!(read, expected);
    }

    #[test]
    fn other_values_are_refused() {
        for (given, is_range, text) in [
            (json!("file:///a"), false, r#"roots must be a list, not "file:///a""#),
            (json!(["/a", "http://b"]), true, "roots[1] must be a file:// URI such as"),
            (
                json!(["shelf"]),
                true,
                r#"an absolute path, or an object with "uri" and "name", not "shelf""#,
            ),
            (json!([{ "uri": "http://b" }]), true, r#"not {"uri":"http://b"}"#),
            (json!([3]), false, "roots[0] must be a file:// URI"),
            (json!([{ "name": "b" }]), false, "roots[0] must be"),
            (json!([{ "uri": "/b", "name": 3 }]), false, "roots[0] must be"),
        ] {
            let problem = read_all(&given).unwrap_err();
            assert!(problem.message.contains(text), "{}", problem.message);
            assert_eq!(problem.is_range, is_range, "{given}");
        }
    }
}
