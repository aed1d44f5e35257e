//! Integers that JavaScript's numbers can't hold. Its JSON parser rounds them, so that texts for it have a marked string in
//! their place, from which `model/big-integers.ts` makes a `BigInt`.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use napi_derive::napi;

/// The digits of the smallest such integer, 2⁵³.
const DIGITS: usize = 16;
/// The largest integer that a number holds exactly, as it does all smaller ones.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// The beginning of a marked string. Nobody else knows it, so that no peer can send one.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut bytes = [0; 16];
    // Without random bytes a peer could send a string that becomes a BigInt, but nothing worse.
    let _ = getrandom::fill(&mut bytes);
    format!("integer:{:032x}:", u128::from_be_bytes(bytes))
});

#[napi]
#[derive(Debug)]
pub struct NativeIntegers;

#[napi]
impl NativeIntegers {
    /// Returns the beginning of the strings that stand for integers.
    #[napi(catch_unwind)]
    pub fn mark() -> String {
        MARK.clone()
    }

    /// Returns a JSON text with strings in place of integers that a number can't hold; null if it has none.
    #[napi(catch_unwind)]
    pub fn marked(json: String) -> Option<String> {
        match marked(&json) {
            Cow::Borrowed(_) => None,
            Cow::Owned(marked) => Some(marked),
        }
    }
}

/// Returns a JSON text with strings in place of integers that a number can't hold.
pub(crate) fn marked(json: &str) -> Cow<'_, str> {
    if !has_long_digits(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let mut marked = String::new();
    let mut copied = 0;
    for integer in big_integers(json) {
        marked.push_str(&json[copied..integer.start]);
        marked.push('"');
        marked.push_str(&MARK);
        marked.push_str(&json[integer.clone()]);
        marked.push('"');
        copied = integer.end;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    marked.push_str(&json[copied..]);
    Cow::Owned(marked)
}

/// Returns whether a text has 16 digits in a row, in a number or a string. It looks at every 16th byte only, because each such
/// row has a digit there.
fn has_long_digits(json: &[u8]) -> bool {
    let count = |bytes: &mut dyn Iterator<Item = &u8>| {
        bytes.take_while(|byte| byte.is_ascii_digit()).count()
    };
    (DIGITS - 1..json.len()).step_by(DIGITS).any(|place| {
        let (before, after) = json.split_at(place);
        after[0].is_ascii_digit()
            && count(&mut before.iter().rev()) + count(&mut after.iter()) >= DIGITS
    })
}

/// Returns the places of the integers that a number can't hold.
fn big_integers(json: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => at = end_of_string(bytes, at),
                b'-' | b'0'..=b'9' => {
                    let start = at;
                    let is_part =
                        |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    at += bytes[start..].iter().take_while(is_part).count();
                    if is_big(&json[start..at]) {
                        return Some(start..at);
                    }
                }
                _ => at += 1,
            }
        }
        None
    })
}

/// Returns the place after a string that begins here.
fn end_of_string(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(rest) = json.get(at..)
        && let Some(found) = memchr::memchr2(b'"', b'\\', rest)
    {
        at += found;
        match json[at] {
            b'"' => return at + 1,
            _ => at += 2,
        }
    }
    json.len()
}

fn is_big(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.parse().map_or(true, |integer: u64| integer > MAX_SAFE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn without_mark(json: &str) -> String {
        let mark = format!("\"{}", *MARK);
        let mut parts = json.split(&mark);
        let mut plain = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (digits, rest) = part.split_once('"').expect("the end of the string");
            plain.push_str(digits);
            plain.push_str(rest);
        }
        plain
    }

    #[test]
    fn only_integers_beyond_those_that_a_number_holds_are_marked() {
        for json in [
            "9007199254740991",
            "[-9007199254740991, 1]",
            "9007199254740993.0",
            "1e300",
            r#"{"9007199254740993":"9007199254740993"}"#,
            r#"["\"9007199254740993,9007199254740993"]"#,
            "[000000000000000]",
            "",
            "\"9007199254740993",
            "9007199254740993\\",
        ] {
            let is_marked = matches!(marked(json), Cow::Owned(_));
            assert_eq!(is_marked, json.ends_with('\\'), "{json}");
        }
        for (json, count) in [
            ("9007199254740992", 1),
            ("-9007199254740993", 1),
            (r#"{"a":[12345678901234567890123,1],"b":-9007199254740992}"#, 2),
            (r#"["\\",9007199254740993]"#, 1),
        ] {
            let text = marked(json);
            assert_eq!(text.matches(&*MARK).count(), count, "{json}");
            assert_eq!(without_mark(&text), json);
            serde_json::from_str::<Value>(&text).expect("JSON");
        }
    }

    proptest! {
        #[test]
        fn rows_of_digits_are_found_wherever_they_are(before in ".{0,40}", row in 1_usize..40, after in ".{0,40}") {
            let text = format!("{before}{}{after}", "7".repeat(row));
            let longest = text.split(|letter: char| !letter.is_ascii_digit()).map(str::len).max();
            prop_assert_eq!(has_long_digits(text.as_bytes()), longest >= Some(DIGITS));
        }
    }
}
