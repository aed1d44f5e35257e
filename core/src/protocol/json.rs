//! Construction of JSON by concatenating parts that are JSON already.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::{Value, value::RawValue};

use super::{Members, Raw};

/// Appends `text` as a JSON string.
pub fn push_string(json: &mut String, text: &str) {
    match is_plain(text) {
        true => {
            json.reserve(text.len() + 2);
            json.push('"');
            json.push_str(text);
            json.push('"');
        }
        false => push(json, text),
    }
}

/// Returns whether a JSON string has the text as it is, without escapes.
fn is_plain(text: &str) -> bool {
    // Without an early exit inside a block, so that the compiler can use vector instructions there.
    let (blocks, rest) = text.as_bytes().as_chunks::<256>();
    blocks.iter().all(|block| !has_escapes(block)) && !has_escapes(rest)
}

/// Returns whether a JSON string escapes any of these bytes.
fn has_escapes(bytes: &[u8]) -> bool {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    bytes.iter().fold(0, |found, &byte| found | u8::from(is_escaped(byte))) != 0
}

/// Appends a value as JSON.
///
/// # Panics
/// Panics if the value's `Serialize` implementation fails; those of the protocol's types never do.
pub fn push<T: Serialize + ?Sized>(json: &mut String, value: &T) {
    json.push_str(&serde_json::to_string(value).expect("protocol types always serialise"));
}

/// Reads a value.
pub fn from_bytes<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    // `serde_json::from_slice` would be compiled for each type beside `from_str`.
    serde_json::from_str(str::from_utf8(json).map_err(serde_json::Error::custom)?)
}

/// Returns the text of a JSON string that has no escapes, as most do: it is what stands between the quotation marks.
pub fn plain_text(json: &RawValue) -> Option<&str> {
    let text = json.get().strip_prefix('"')?.strip_suffix('"')?;
    memchr::memchr(b'\\', text.as_bytes()).is_none().then_some(text)
}

/// Reads a value from parsed JSON.
pub fn from_value<'a, T: Deserialize<'a>>(json: &'a Value) -> serde_json::Result<T> {
    T::deserialize(json)
}

/// Serializes a value as raw JSON.
///
/// # Panics
/// Panics if the value's `Serialize` implementation fails; those of the protocol's types never do.
pub fn to_raw<T: Serialize + ?Sized>(value: &T) -> Raw {
    serde_json::value::to_raw_value(value).expect("protocol types always serialise")
}

/// Returns what is wrong with a JSON text that somebody else wrote.
pub fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let halves = ["unexpected end of hex escape", "lone leading surrogate in hex escape"];
    match halves.iter().find_map(|message| text.strip_prefix(message)) {
        Some(place) => {
            format!("half of a surrogate pair (\\ud800 to \\udfff without its other half){place}")
        }
        None => text,
    }
}

/// Wraps JSON text assembled from valid parts.
///
/// # Panics
/// Panics if the text is not valid JSON, which is a bug of the caller.
pub fn raw(json: String) -> Raw {
    RawValue::from_string(json).expect("put together from valid JSON")
}

/// Removes the member with this name from an object; returns the rest and the member. Of several with that name, the
/// last one is returned.
pub fn apart<'a>(
    object: &'a str,
    name: &str,
) -> Result<(Cow<'a, str>, Option<Raw>), serde_json::Error> {
    // The name might be written with escapes.
    if !object.contains(name) && !object.contains("\\u") {
        return Ok((object.into(), None));
    }
    let members: Members<Raw> = serde_json::from_str(object)?;
    let (mut own, others): (Vec<_>, Vec<_>) =
        members.0.into_iter().partition(|(key, _)| key == name);
    Ok(match own.pop() {
        None => (object.into(), None),
        Some((_, own)) => (to_raw(&Members(others)).get().to_owned().into(), Some(own)),
    })
}

/// A writer for an object, member by member.
#[derive(Debug)]
pub struct ObjectWriter {
    json: String,
    /// The place of the object's first member.
    start: usize,
}

impl ObjectWriter {
    pub fn with_capacity(bytes: usize) -> Self {
        Self::behind(String::with_capacity(bytes + 2))
    }

    /// Writes an object behind other text, which [`Self::finish`] returns with it.
    pub fn behind(mut text: String) -> Self {
        text.push('{');
        Self { start: text.len(), json: text }
    }

    /// Adds a member whose value is given as JSON text. `name` must not need escaping.
    pub fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name).json.push_str(value);
        self
    }

    /// Adds a member whose value is an object with one member, `inner`, whose value is given as JSON text. The names must
    /// not need escaping.
    pub fn wrapped(&mut self, name: &str, inner: &str, value: &str) -> &mut Self {
        let json = &mut self.name(name).json;
        json.extend(["{\"", inner, "\":", value, "}"]);
        self
    }

    /// Adds a member. `name` must not need escaping.
    pub fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> &mut Self {
        push(&mut self.name(name).json, value);
        self
    }

    /// Adds all members of an object given as JSON text. Adds nothing if the text is not an object.
    pub fn splice(&mut self, object: &str) -> &mut Self {
        let inner = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(inner) = inner.map(str::trim).filter(|inner| !inner.is_empty()) {
            self.separate();
            self.json.push_str(inner);
        }
        self
    }

    pub fn finish(mut self) -> String {
        self.json.push('}');
        self.json
    }

    fn name(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.json.push('"');
        self.json.push_str(name);
        self.json.push_str("\":");
        self
    }

    fn separate(&mut self) {
        if self.json.len() > self.start {
            self.json.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_surrogate_pair_is_named() {
        for text in [r#"["\ud800"]"#, r#"["\ud800x"]"#, r#"["\udc00"]"#, r#"["\ud800\ud800"]"#] {
            let said = problem(&from_bytes::<Value>(text.as_bytes()).unwrap_err());
            assert!(
                said.starts_with("half of a surrogate pair") && said.contains("column"),
                "{said}"
            );
        }
        let other = from_bytes::<Value>(b"[1").unwrap_err();
        assert_eq!(problem(&other), other.to_string());
    }

    #[test]
    fn a_string_without_escapes_is_read_as_serde_json_reads_it() {
        for json in
            [r#""""#, r#""tools/call""#, "\"é\u{2028}\"", r#""a\\""#, r#""\"""#, r#""\u0041""#]
        {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let read: String = serde_json::from_str(json).unwrap();
            let has_escapes = json.contains('\\');
            assert_eq!(plain_text(raw), (!has_escapes).then_some(read.as_str()), "{json}");
        }
        for other in ["1", "null", "[]", r#"{"a":"b"}"#] {
            assert_eq!(plain_text(serde_json::from_str(other).unwrap()), None, "{other}");
        }
    }

    #[test]
    fn strings_are_written_as_serde_json_writes_them() {
        let texts = (0..=0x7f_u8).map(|byte| char::from(byte).to_string());
        let texts = texts.chain(["é", "\u{2028}", "😀"].map(str::to_owned));
        for special in texts {
            for length in [0, 1, 7, 8, 9, 31, 255, 256, 257, 263, 511, 512, 1_000] {
                let plain = "x".repeat(length);
                for text in [
                    format!("{plain}{special}"),
                    format!("{special}{plain}"),
                    format!("{plain}{special}x"),
                ] {
                    let mut json = String::from("[");
                    push_string(&mut json, &text);
                    assert_eq!(json[1..], serde_json::to_string(&text).unwrap());
                }
            }
        }
    }
}
