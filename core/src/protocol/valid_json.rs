//! Parts of JSON that was parsed before. To find them costs a tenth of parsing the text again, because strings are skipped by
//! vector instructions and nothing is checked. For invalid JSON the returned
//! parts are arbitrary; no function panics.

use std::{borrow::Cow, ops::Range};

/// A member of an object.
#[derive(Debug)]
pub struct ValidMember<'a> {
    pub name: Cow<'a, str>,
    /// The value as JSON.
    pub value: &'a str,
    /// The place of the value in the text of the object.
    pub place: Range<usize>,
}

/// Returns the members of an object in their order; none for any other value.
pub fn members(object: &str) -> impl Iterator<Item = ValidMember<'_>> {
    let bytes = object.as_bytes();
    let mut at = skip_space(bytes, 0);
    let is_object = bytes.get(at) == Some(&b'{');
    at += 1;
    std::iter::from_fn(move || {
        at = skip_space(bytes, at);
        if !is_object || bytes.get(at) != Some(&b'"') {
            return None;
        }
        let end = skip_string(bytes, at);
        let name = name(object.get(at..end)?);
        let colon = skip_space(bytes, end);
        let start = skip_space(bytes, colon + 1);
        let end = skip_value(bytes, start);
        at = skip_space(bytes, end) + 1;
        Some(ValidMember { name, value: object.get(start..end)?, place: start..end })
    })
}

/// Returns the value of a member of an object as JSON; the last one if several have this name.
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    members(object).filter(|member| member.name == name).last().map(|member| member.value)
}

/// Returns whether a string contains a word, by vector instructions.
pub fn contains(text: &[u8], word: &str) -> bool {
    memchr::memmem::find(text, word.as_bytes()).is_some()
}

/// Returns the place behind the string whose quotation mark is at `at`.
pub fn skip_string(json: &[u8], at: usize) -> usize {
    let mut from = at + 1;
    while let Some(found) = json.get(from..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if json[from + found] == b'"' {
            return from + found + 1;
        }
        from += found + 2;
    }
    json.len()
}

/// Returns the place behind the value that begins at `at`.
fn skip_value(json: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at = skip_string(json, at),
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            b'}' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            b'}' | b']' => (at, depth) = (at + 1, depth - 1),
            _ => at += 1,
        }
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return at;
        }
    }
    json.len()
}

fn skip_space(json: &[u8], at: usize) -> usize {
    let space = json.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace());
    at + space.count()
}

/// Returns a name without its quotation marks and escapes.
fn name(json: &str) -> Cow<'_, str> {
    let inside = json.get(1..json.len() - 1).unwrap_or_default();
    match inside.contains('\\') {
        // Half of a surrogate pair is valid JSON, but no name that anything looks for.
        true => serde_json::from_str(json).map_or(Cow::Borrowed(inside), Cow::Owned),
        false => Cow::Borrowed(inside),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn parts(object: &str) -> Vec<(String, String)> {
        members(object).map(|member| (member.name.into_owned(), member.value.to_owned())).collect()
    }

    #[test]
    fn members_are_found_with_their_places() {
        let text =
            " { \"a\" : [1, {\"b\": \"}\\\"]\"}] , \"\\u0062\\n\":-1.5e3,\"c\":{},\"\":\"\"\n} ";
        let expected =
            [("a", "[1, {\"b\": \"}\\\"]\"}]"), ("b\n", "-1.5e3"), ("c", "{}"), ("", "\"\"")];
        assert_eq!(parts(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for member in members(text) {
            assert_eq!(&text[member.place], member.value);
        }
        for other in ["{}", "[{}]", "\"{\"", "3", "", " "] {
            assert_eq!(parts(other), [], "{other}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_members_are_those_of_serde_json(value in any_json(), is_pretty: bool) {
            let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let found: Vec<_> = parts(&text);
            let expected: Vec<_> = value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let found: Vec<_> = found
                .into_iter()
                .map(|(name, value)| (name, serde_json::from_str::<Value>(&value).unwrap()))
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn other_text_does_no_harm(text: String, json in "[{}\\[\\]\",:\\\\ä ]{0,20}") {
            members(&text).count();
            members(&json).count();
        }
    }
}
