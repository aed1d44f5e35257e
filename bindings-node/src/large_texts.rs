//! Large strings of inputs. They reach JavaScript beside the JSON of their input, because the event loop does nothing else
//! while it parses JSON.

use std::collections::HashSet;

use gudgeon::protocol::{Members, json};
use serde_json::value::RawValue;

use crate::large_text::LargeText;

/// The size from which on a string is passed beside its input, in bytes of JSON.
const LARGE: usize = 16 * 1024;

/// The large strings of one input, by the names of the input's members.
#[derive(Debug, Default)]
pub(crate) struct LargeTexts {
    names: Vec<String>,
    /// `None` where JavaScript has taken it.
    texts: Vec<Option<LargeText>>,
}

impl LargeTexts {
    /// Takes the large strings that are members of an input, and puts an empty string in the place of each. Returns `None`
    /// and changes nothing if there are none, or if two members have the same name, of which only the last one counts.
    pub(crate) fn take_out_of(input: &mut String) -> Option<Self> {
        if input.len() < LARGE {
            return None;
        }
        let members: Members<&RawValue> = serde_json::from_str(input).ok()?;
        if !members.0.iter().any(|(_, value)| is_large(value.get())) {
            return None;
        }
        let mut found = Self::default();
        let mut rest = String::with_capacity(1024);
        for (name, value) in &members.0 {
            rest.push(if rest.is_empty() { '{' } else { ',' });
            json::push_string(&mut rest, name);
            rest.push(':');
            match large_text(value.get()) {
                Some(text) => {
                    rest.push_str("\"\"");
                    found.names.push(name.clone());
                    found.texts.push(Some(LargeText::new(text)));
                }
                None => rest.push_str(value.get()),
            }
        }
        rest.push('}');
        let names: HashSet<&String> = members.0.iter().map(|(name, _)| name).collect();
        if found.names.is_empty() || names.len() < members.0.len() {
            return None;
        }
        *input = rest;
        Some(found)
    }

    /// Returns the names as a JSON array.
    pub(crate) fn names(&self) -> String {
        json::to_raw(&self.names).get().to_owned()
    }

    /// Takes the string of the name with this index.
    pub(crate) fn take(&mut self, index: usize) -> Option<LargeText> {
        self.texts.get_mut(index)?.take()
    }

    /// Returns the bytes that were not taken.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().flatten().map(LargeText::bytes).sum()
    }
}

/// Returns the text of a large JSON string. Half a surrogate pair, which only JavaScript can represent, has none.
fn large_text(value: &str) -> Option<String> {
    is_large(value).then(|| serde_json::from_str(value).ok()).flatten()
}

fn is_large(value: &str) -> bool {
    value.len() >= LARGE && value.starts_with('"')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn parts(input: &str) -> Option<(String, LargeTexts)> {
        let mut rest = input.to_owned();
        let taken = LargeTexts::take_out_of(&mut rest);
        assert!(taken.is_some() || rest == input);
        taken.map(|texts| (rest, texts))
    }

    fn text_of(text: LargeText) -> String {
        match text {
            LargeText::Latin1(bytes) => bytes.into_iter().map(char::from).collect(),
            LargeText::Utf16(units) => String::from_utf16(&units).unwrap(),
        }
    }

    #[test]
    fn large_members_are_taken_out_and_the_order_stays() {
        let (large, other) = ("x".repeat(LARGE), "ü\"\n".repeat(LARGE));
        let input = serde_json::json!({ "b": large, "a": { "c": [1] }, "é\"": other }).to_string();
        let (rest, mut texts) = parts(&input).unwrap();
        assert!(texts.bytes() > 2 * LARGE);
        let order: Vec<_> = serde_json::from_str::<Members<Value>>(&rest).unwrap().0;
        for (name, value) in order {
            match &*name {
                "a" => assert_eq!(value, serde_json::json!({ "c": [1] })),
                _ => assert_eq!(value, ""),
            }
        }
        let names: Vec<String> = serde_json::from_str(&texts.names()).unwrap();
        for (index, name) in names.iter().enumerate() {
            let text = if name == "b" { &large } else { &other };
            assert_eq!(texts.take(index), Some(LargeText::new(text.clone())));
        }
        assert_eq!(texts.bytes(), 0);
        assert_eq!(texts.take(2), None);
    }

    #[test]
    fn what_only_a_parser_knows_stays() {
        let large = "x".repeat(LARGE);
        for input in [
            format!(r#"{{"a":"{large}","a":null}}"#),
            format!(r#"{{"a":null,"\u0061":"{large}"}}"#),
            format!(r#"{{"a":"{large}\ud800"}}"#),
            format!(r#"{{"a":["{large}"]}}"#),
            format!(r#"["{large}"]"#),
            format!("\"{large}\""),
            r#"{"a":"small"}"#.to_owned(),
        ] {
            assert!(parts(&input).is_none(), "{}", &input[..20]);
        }
    }

    proptest! {
        #[test]
        fn the_parts_are_the_whole(
            members in prop::collection::vec(("[a-d\"\\\\é]{0,2}", "\\PC{0,8}", 0..3usize), 0..6),
        ) {
            let members = members.into_iter().map(|(name, text, size)| (name, Value::from(text.repeat(size * LARGE / 2))));
            let members: Vec<(String, Value)> = members.collect();
            let input = json::to_raw(&Members(members)).get().to_owned();
            let whole: Value = serde_json::from_str(&input).unwrap();
            if let Some((rest, mut texts)) = parts(&input) {
                let mut read: Value = serde_json::from_str(&rest).unwrap();
                let names: Vec<String> = serde_json::from_str(&texts.names()).unwrap();
                for (index, name) in names.iter().enumerate() {
                    prop_assert_eq!(&read[name], "");
                    read[name] = text_of(texts.take(index).unwrap()).into();
                }
                prop_assert_eq!(read, whole);
            }
        }
    }
}
