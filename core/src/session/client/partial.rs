//! Messages that can't be read whole: what the part that can be read says about them.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::tolerance::number_of;
use crate::protocol::BYTE_ORDER_MARK;

/// A message that can't be read whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Partial {
    /// The response to the request with this id.
    Response(u64),
    /// A request, a notification, or a response with an id that this client never sends.
    NoResponse,
    /// The readable part does not say which.
    Unclear,
}

impl Partial {
    /// Reads the beginning of a message.
    pub(crate) fn of(beginning: &[u8]) -> Self {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let mut read = Members::default();
        // Parsing ends with an error at the latest where the beginning ends.
        let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut read);
        read.kind()
    }
}

/// Calls `found` with the id of each response in a frame that can't be read whole.
pub(super) fn responses(frame: &[u8], mut found: impl FnMut(u64)) {
    if frame.trim_ascii_start().starts_with(b"[") {
        // Parsing ends with an error at the latest where the frame becomes unreadable.
        let _ = serde_json::Deserializer::from_slice(frame).deserialize_seq(Batch(found));
    } else if let Partial::Response(id) = Partial::of(frame) {
        found(id);
    }
}

/// Reads a batch without keeping its members, of which a message of a few megabytes can have millions.
struct Batch<F>(F);

impl<'de, F: FnMut(u64)> Visitor<'de> for Batch<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut batch: A) -> Result<(), A::Error> {
        loop {
            let mut read = Members::default();
            let next = batch.next_element_seed(&mut read);
            // The last member that can be read may be cut.
            if let Partial::Response(id) = read.kind() {
                (self.0)(id);
            }
            if next?.is_none() {
                return Ok(());
            }
        }
    }
}

/// The members of a message that decide its kind.
#[derive(Default)]
struct Members {
    /// The id as JSON.
    id: Option<String>,
    has_method: bool,
    has_outcome: bool,
}

impl Members {
    fn kind(self) -> Partial {
        match self {
            Self { has_method: true, .. } => Partial::NoResponse,
            Self { has_outcome: true, id: Some(id), .. } => {
                number_of(&id).map_or(Partial::NoResponse, Partial::Response)
            }
            Self { .. } => Partial::Unclear,
        }
    }
}

/// Reads a member of a batch, which may be any value.
impl<'de> DeserializeSeed<'de> for &mut Members {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            match &*name {
                "id" => self.id = Some(members.next_value::<&RawValue>()?.get().to_owned()),
                "method" => {
                    self.has_method = true;
                    members.next_value::<IgnoredAny>()?;
                }
                "result" | "error" => {
                    self.has_outcome = true;
                    members.next_value::<IgnoredAny>()?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
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
    fn the_beginning_names_the_request_that_is_answered() {
        for (beginning, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#, Partial::Response(7)),
            (r#"{"id" : 7 , "error" : {"code""#, Partial::Response(7)),
            (r#"{"result":{},"id":7,"more":"x"#, Partial::Response(7)),
            (r#"{"jsonrpc":"2.0","id":"7","result":{"#, Partial::Response(7)),
            (r#"{"jsonrpc":"2.0","id":"a","result":{"#, Partial::NoResponse),
            (r#"{"id":-7,"result":{"#, Partial::NoResponse),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","par"#, Partial::NoResponse),
            (r#"{"id":7,"method":"sampling/createMessage","params":{"#, Partial::NoResponse),
            (r#"{"id":7"#, Partial::Unclear),
            (r#"{"id":7,"params":{"#, Partial::Unclear),
            (r#"{"result":{"content":[{"#, Partial::Unclear),
            (r#"{"params":{"id":7,"result":1"#, Partial::Unclear),
            ("[7", Partial::Unclear),
            ("", Partial::Unclear),
        ] {
            assert_eq!(Partial::of(beginning.as_bytes()), expected, "{beginning}");
        }
        assert_eq!(Partial::of(b"{\"id\":7,\"result\":\"\xff"), Partial::Response(7));
    }

    proptest! {
        #[test]
        fn a_message_that_is_cut_anywhere_names_no_other_request(id in 10_u64..1000, at in 0_usize..60) {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":1,"text":"…"}}}}"#);
            let beginning = &message.as_bytes()[..at.min(message.len())];
            let read = Partial::of(beginning);
            prop_assert!(matches!(read, Partial::Unclear) || read == Partial::Response(id));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            Partial::of(&bytes);
            responses(&bytes, |_| ());
            responses(&[b"[", &*bytes].concat(), |_| ());
        }
    }
}
