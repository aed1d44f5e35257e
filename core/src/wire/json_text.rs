//! Structured content of a tool in revisions that can't carry it: the text is its JSON, and the result's `_meta` says so.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::lower::apart;
use crate::protocol::{
    Raw,
    json::{self, ObjectWriter},
    meta,
};

/// Returns whether the content is a single text that is the JSON of this value.
pub(super) fn is_json_of(content: &str, value: &str) -> bool {
    let Some(text) = only_text(content) else { return false };
    if *text == *value {
        return true;
    }
    let parsed = |json| serde_json::from_str::<Value>(json).ok();
    parsed(&text).is_some_and(|json| Some(json) == parsed(value))
}

/// Returns a result's `_meta` with the mark that its text is JSON.
pub(super) fn marked(own: Option<&RawValue>) -> Raw {
    let mut marked = ObjectWriter::with_capacity(32);
    if let Some(own) = own {
        marked.splice(&apart(own, meta::JSON_TEXT).0);
    }
    marked.raw(meta::JSON_TEXT, "true");
    json::raw(marked.finish())
}

/// Returns the JSON in the text of a tool's result, if the result's `_meta` says that it is JSON and this is true.
pub fn json_text(content: &str, own_meta: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Marked {
        #[serde(rename = "gudgeon/jsonText")]
        is_json: bool,
    }
    let Marked { is_json: true } = serde_json::from_str(own_meta).ok()? else { return None };
    // Parsed whole, because languages fail for other numbers and depths.
    let text = only_text(content).filter(|text| serde_json::from_str::<Value>(text).is_ok())?;
    Some(text.into_owned())
}

fn only_text(content: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    let [block] = serde_json::from_str::<[Block<'_>; 1]>(content).ok()?;
    (block.kind == "text").then_some(block.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> String {
        Value::to_string(&serde_json::json!([{"type": "text", "text": text}]))
    }

    #[test]
    fn only_a_single_text_that_is_the_json_of_the_value_is_its_json() {
        for (text, value) in [
            ("5", "5"),
            ("[1, 2]", "[1,2]"),
            (r#"{"b":1,"a":"é"}"#, r#"{"a":"\u00e9","b":1}"#),
            ("null", "null"),
            ("12345678901234567890123", "12345678901234567890123"),
            (r#""quoted""#, r#""quoted""#),
        ] {
            assert!(is_json_of(&content(text), value), "{text}");
        }
        for (text, value) in [("5", r#""5""#), ("5", "6"), ("five", "5"), ("", "null")] {
            assert!(!is_json_of(&content(text), value), "{text}");
        }
        let two = r#"[{"type":"text","text":"5"},{"type":"text","text":"5"}]"#;
        let link = r#"[{"type":"other","text":"5"}]"#;
        assert!(!is_json_of(two, "5") && !is_json_of(link, "5") && !is_json_of("[]", "5"));
    }

    #[test]
    fn the_mark_is_beside_the_results_own_meta_and_stands_once() {
        let own = json::raw(r#"{"a":1,"gudgeon/jsonText":false}"#.into());
        assert_eq!(marked(Some(&own)).get(), r#"{"a":1,"gudgeon/jsonText":true}"#);
        assert_eq!(json_text(&content("[1]"), marked(None).get()), Some("[1]".into()));
    }

    #[test]
    fn a_text_is_json_only_if_the_result_says_so_and_it_is() {
        let mark = marked(None);
        for text in ["", "three", "007", "1e999", "[1", "1 2", &"[".repeat(1_000)] {
            assert_eq!(json_text(&content(text), mark.get()), None, "{text}");
        }
        for meta in ["{}", r#"{"gudgeon/jsonText":false}"#, r#"{"gudgeon/jsonText":1}"#, "1"] {
            assert_eq!(json_text(&content("1"), meta), None, "{meta}");
        }
    }
}
