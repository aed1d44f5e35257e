//! Messages of the server that can't be read whole: which request they answer.

use super::tolerance::number_of;
use crate::{framing::TooLong, protocol::PartialMessage};

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
    pub(crate) fn from_beginning(beginning: &[u8]) -> Self {
        PartialMessage::from_beginning(beginning).into()
    }

    /// Reads both ends of a message.
    pub(super) fn from_ends(TooLong { beginning, end, .. }: TooLong<'_>) -> Self {
        PartialMessage::from_ends(beginning, end).into()
    }
}

impl From<PartialMessage> for Partial {
    fn from(read: PartialMessage) -> Self {
        match read {
            PartialMessage { has_method: true, .. } => Self::NoResponse,
            PartialMessage { has_outcome: true, id: Some(id), .. } => {
                number_of(id.as_json()).map_or(Self::NoResponse, Self::Response)
            }
            PartialMessage { .. } => Self::Unclear,
        }
    }
}

/// Calls `found` with the id of each response in a frame that can't be read whole.
pub(super) fn responses(frame: &[u8], mut found: impl FnMut(u64)) {
    let mut read = |message: PartialMessage| {
        if let Partial::Response(id) = message.into() {
            found(id);
        }
    };
    if frame.trim_ascii_start().starts_with(b"[") {
        PartialMessage::read_batch(frame, read);
    } else {
        read(PartialMessage::from_beginning(frame));
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
            assert_eq!(Partial::from_beginning(beginning.as_bytes()), expected, "{beginning}");
        }
        assert_eq!(Partial::from_beginning(b"{\"id\":7,\"result\":\"\xff"), Partial::Response(7));
    }

    proptest! {
        #[test]
        fn a_message_that_is_cut_anywhere_names_no_other_request(id in 10_u64..1000, at in 0_usize..60) {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":1,"text":"…"}}}}"#);
            let beginning = &message.as_bytes()[..at.min(message.len())];
            let read = Partial::from_beginning(beginning);
            prop_assert!(matches!(read, Partial::Unclear) || read == Partial::Response(id));
        }
    }
}
