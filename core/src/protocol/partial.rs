//! Messages of which only a part can be read.

use std::{borrow::Cow, fmt, sync::LazyLock};

use regex::bytes::Regex;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{BYTE_ORDER_MARK, Id};

/// The id as the last member of a message. Inside a string its quotes would have backslashes.
static LAST_MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?-u)[,{]\s*"id"\s*:\s*(-?[0-9]+|"[^"\\]*")\s*\}\s*$"#;
    Regex::new(pattern).expect("the pattern is valid")
});

/// The members that were read of a message.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct PartialMessage {
    /// The id, if it was read and can be one.
    pub id: Option<Id>,
    /// It has a method, so that it is a request or a notification.
    pub has_method: bool,
    /// It has a result or an error.
    pub has_outcome: bool,
}

impl PartialMessage {
    /// Reads the beginning of a message.
    pub fn from_beginning(beginning: &[u8]) -> Self {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let mut read = Self::default();
        // Parsing ends with an error at the latest where the beginning ends.
        let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut read);
        read
    }

    /// Reads the beginning of a message, and the id at its end if the beginning has none.
    pub fn from_ends(beginning: &[u8], end: &[u8]) -> Self {
        let read = Self::from_beginning(beginning);
        if read.id.is_some() || !beginning.trim_ascii_start().starts_with(b"{") {
            return read;
        }
        let last = LAST_MEMBER
            .captures(end)
            .and_then(|found| str::from_utf8(found.get(1)?.as_bytes()).ok());
        Self { id: last.and_then(Id::parse), ..read }
    }

    /// Calls `found` with the members that were read of each message in a batch that can't be read whole.
    pub fn read_batch(frame: &[u8], found: impl FnMut(Self)) {
        // Parsing ends with an error at the latest where the frame becomes unreadable.
        let _ = serde_json::Deserializer::from_slice(frame).deserialize_seq(Batch(found));
    }
}

/// Reads a batch without keeping its members, of which a message of a few megabytes can have millions.
struct Batch<F>(F);

impl<'de, F: FnMut(PartialMessage)> Visitor<'de> for Batch<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut batch: A) -> Result<(), A::Error> {
        loop {
            let mut read = PartialMessage::default();
            let next = batch.next_element_seed(&mut read);
            let is_end = !matches!(next, Ok(Some(())));
            // The last member that can be read may be cut.
            (self.0)(read);
            if is_end {
                return next.map(|_| ());
            }
        }
    }
}

/// Reads a member of a batch, which may be any value.
impl<'de> DeserializeSeed<'de> for &mut PartialMessage {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut PartialMessage {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            match &*name {
                "id" => {
                    self.id = Id::parse(members.next_value::<&RawValue>()?.get());
                    continue;
                }
                "method" => self.has_method = true,
                "result" | "error" => self.has_outcome = true,
                _ => {}
            }
            members.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_end_has_the_id_if_the_beginning_has_none() {
        let request = r#"{"method":"tools/call","params":{"text":"x"#;
        let cases = [
            (request, r#"xx"},"jsonrpc":"2.0","id":7}"#, Some("7")),
            (request, "x\"}, \"id\" : \"a-1\" }\r", Some("\"a-1\"")),
            (r#"{"id":3,"method":"tools/call","params":{"#, r#""},"id":7}"#, Some("3")),
            // Members of inner values, and text.
            (request, r#"xx","id":7}}"#, None),
            (request, r#"xx\",\"id\":7}"#, None),
            (request, r#"xx,\"id":"7"}"#, None),
            (request, r#""},"id":7,"more":1}"#, None),
            (request, r#""},"id":null}"#, None),
            (request, r#""},"id":{"a":7}"#, None),
            ("[{", r#"{"method":"ping","id":7}"#, None),
            ("log", r#"{"method":"ping","id":7}"#, None),
        ];
        for (beginning, end, id) in cases {
            let read = PartialMessage::from_ends(beginning.as_bytes(), end.as_bytes());
            assert_eq!(read.id.as_ref().map(Id::as_json), id, "{beginning} … {end}");
        }
        assert!(PartialMessage::from_ends(request.as_bytes(), b"").has_method);
    }

    proptest! {
        #[test]
        fn the_end_of_a_message_names_its_own_id_or_none(text: String, id in 10_u64..1000, at in 0_usize..200) {
            let inner = serde_json::json!({"text": text, "id": 1});
            let message = format!(r#"{{"method":"m","params":{inner},"id":{id}}}"#);
            let end = &message.as_bytes()[at.min(message.len())..];
            let read = PartialMessage::from_ends(b"{\"method\":\"m\",", end);
            prop_assert!(read.id.is_none_or(|read| read.as_json() == id.to_string()));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, end: Vec<u8>) {
            PartialMessage::from_ends(&bytes, &end);
            PartialMessage::from_ends(b"{", &end);
            PartialMessage::read_batch(&bytes, |_| ());
            PartialMessage::read_batch(&[b"[", &*bytes].concat(), |_| ());
        }
    }
}
