//! An outgoing message and the properties that HTTP depends on.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Mirror, NegotiatedProtocol};
use crate::{
    protocol::{
        BYTE_ORDER_MARK, Method, json,
        valid_json::{member, members},
    },
    session::client::{Partial, number_of},
    wire::headers,
};

/// The bytes of a response from which on its beginning shows which request it answers.
const BEGINNING: usize = 512;

/// A message to send by POST.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) body: Bytes,
    pub(super) kind: Kind,
    /// The headers that repeat parts of the body.
    pub(super) headers: HeaderMap,
    pub(super) is_stateless: bool,
    /// True if the message was rejected once because its session was gone.
    pub(super) is_repeated: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Request {
        id: u64,
        method: String,
    },
    Notification {
        method: String,
        /// The id of the request that this notification cancels.
        cancels: Option<u64>,
    },
    Answer,
}

impl Message {
    /// Reads a frame of the session.
    pub(super) fn read(frame: Vec<u8>, spoken: NegotiatedProtocol, mirror: &Mirror) -> Self {
        let (mut id, mut method, mut params) = (None, String::new(), "{}");
        for member in members(std::str::from_utf8(&frame).unwrap_or_default()) {
            match &*member.name {
                "id" => id = member.value.parse().ok(),
                "method" => method = serde_json::from_str(member.value).unwrap_or_default(),
                "params" => params = member.value,
                _ => (),
            }
        }
        let method = match spoken.wire().method(&method) {
            Some(known) => known.as_str().to_owned(),
            None => method,
        };
        let mut headers = HeaderMap::new();
        if spoken.has_version_header() && method != Method::Initialize.as_str() {
            let version = HeaderValue::from_static(spoken.revision.as_str());
            headers.insert(headers::PROTOCOL_VERSION, version);
        }
        if spoken.is_stateless && !method.is_empty() {
            repeat(&mut headers, &method, params, mirror);
        }
        let kind = match id {
            Some(id) if !method.is_empty() => Kind::Request { id, method },
            None if !method.is_empty() => Kind::Notification {
                cancels: (method == Method::Cancelled.as_str())
                    .then(|| member(params, "requestId")?.parse().ok())
                    .flatten(),
                method,
            },
            _ => Kind::Answer,
        };
        let is_stateless = spoken.is_stateless;
        Self { kind, headers, is_stateless, is_repeated: false, body: frame.into() }
    }

    /// Returns the id of a request, `None` for other messages.
    pub(super) fn request(&self) -> Option<u64> {
        match self.kind {
            Kind::Request { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Returns whether the message is the first request of a connection.
    pub(super) fn opens(&self) -> bool {
        self.is(Method::Discover) || self.is(Method::Initialize)
    }

    pub(super) fn is(&self, method: Method) -> bool {
        match &self.kind {
            Kind::Request { method: own, .. } | Kind::Notification { method: own, .. } => {
                own == method.as_str()
            }
            Kind::Answer => false,
        }
    }

    /// Returns whether the message is a request without side effects, which may be repeated.
    pub(super) fn is_read_only(&self) -> bool {
        let Kind::Request { method, .. } = &self.kind else { return false };
        Method::parse(method).is_some_and(|method| method != Method::CallTool)
    }
}

fn repeat(out: &mut HeaderMap, method: &str, params: &str, mirror: &Mirror) {
    let mut set = |name: &str, value: &str| {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            out.insert(name, value);
        }
    };
    set(headers::METHOD, method);
    let Some(name) = headers::standard(method, |name| member(params, name)) else { return };
    set(headers::NAME, &headers::encode_value(&name));
    if method == Method::CallTool.as_str() {
        let arguments = member(params, "arguments").unwrap_or("{}");
        for (name, value) in mirror(&name, arguments) {
            set(&name, &value);
        }
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<serde::de::IgnoredAny>,
}

impl Fields<'_> {
    fn answer(&self, request: u64) -> bool {
        self.method.is_none() && self.id.is_some_and(|id| number_of(id.get()) == Some(request))
    }
}

/// Returns whether a frame is the response to this request, or a batch that contains it. The session reports one that begins like
/// a response and can't be read.
pub(super) fn answers(frame: &[u8], request: u64) -> bool {
    let frame = frame.strip_prefix(BYTE_ORDER_MARK).unwrap_or(frame);
    let beginning = &frame[..frame.len().min(BEGINNING)];
    if Partial::from_beginning(beginning) == Partial::Response(request) {
        return true;
    }
    if frame.trim_ascii_start().starts_with(b"[") {
        let members = json::from_bytes::<Vec<Fields<'_>>>(frame);
        return members.is_ok_and(|members| members.iter().any(|member| member.answer(request)));
    }
    json::from_bytes::<Fields<'_>>(frame).is_ok_and(|fields| fields.answer(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_stand_in_a_batch() {
        for answer in [
            r#"{"id":7,"result":{}}"#,
            r#" [{"method":"x"},{"id":7,"result":{}}]"#,
            r#"[{"id":7,"error":{}}]"#,
            r#"{"id":"7","result":{}}"#,
            "\u{feff}{\"result\":{},\"id\":7}",
        ] {
            assert!(answers(answer.as_bytes(), 7), "{answer}");
        }
        for other in [
            r#"{"id":"x7","result":{}}"#,
            r#"[{"id":7,"method":"x"},{"id":8}]"#,
            "[]",
            "[",
            "7",
            "",
        ] {
            assert!(!answers(other.as_bytes(), 7), "{other}");
        }
    }

    #[test]
    fn a_long_answer_is_recognized_wherever_its_id_is() {
        let text = "x".repeat(2 * BEGINNING);
        for (frame, expected) in [
            (format!(r#"{{"id":7,"result":"{text}"}}"#), true),
            (format!(r#"{{"result":"{text}","id":7}}"#), true),
            (format!(r#"{{"id":8,"result":"{text}"}}"#), false),
            (format!(r#"{{"id":7,"method":"m","params":"{text}"}}"#), false),
        ] {
            assert_eq!(answers(frame.as_bytes(), 7), expected, "{frame}");
        }
    }
}
