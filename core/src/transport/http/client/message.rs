//! An outgoing message and the properties that HTTP depends on.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Mirror, Spoken};
use crate::{
    protocol::{Frame, Message as Rpc, Method, Params},
    wire::headers,
};

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
    pub(super) fn read(frame: Vec<u8>, spoken: Spoken, mirror: &Mirror) -> Self {
        let (id, method, params) = match Frame::parse(&frame) {
            Frame::One(Ok(Rpc::Request { id, method, params })) => {
                (id.as_json().parse().ok(), method.into_owned(), params)
            }
            Frame::One(Ok(Rpc::Notification { method, params })) => {
                (None, method.into_owned(), params)
            }
            _ => (None, String::new(), Params::Absent),
        };
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
            repeat(&mut headers, &method, &params, mirror);
        }
        let kind = match id {
            Some(id) if !method.is_empty() => Kind::Request { id, method },
            None if !method.is_empty() => Kind::Notification {
                cancels: (method == Method::Cancelled.as_str())
                    .then(|| params.get("requestId")?.get().parse().ok())
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
        Method::parse(method).is_some_and(|it| it != Method::CallTool)
    }
}

fn repeat(out: &mut HeaderMap, method: &str, params: &Params<'_>, mirror: &Mirror) {
    let mut set = |name: &str, value: &str| {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            out.insert(name, value);
        }
    };
    set(headers::METHOD, method);
    let Some(name) = headers::standard(method, params) else { return };
    set(headers::NAME, &headers::encode_value(&name));
    if method == Method::CallTool.as_str() {
        let arguments = params.get("arguments").map_or("{}", RawValue::get);
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
        self.method.is_none() && self.id.is_some_and(|id| id.get().parse() == Ok(request))
    }
}

/// Returns whether a frame is the response to this request, or a batch that contains it.
pub(super) fn answers(frame: &[u8], request: u64) -> bool {
    if frame.trim_ascii_start().starts_with(b"[") {
        let members = serde_json::from_slice::<Vec<Fields<'_>>>(frame);
        return members.is_ok_and(|it| it.iter().any(|member| member.answer(request)));
    }
    serde_json::from_slice::<Fields<'_>>(frame).is_ok_and(|it| it.answer(request))
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
        ] {
            assert!(answers(answer.as_bytes(), 7), "{answer}");
        }
        for other in
            [r#"{"id":"7","result":{}}"#, r#"[{"id":7,"method":"x"},{"id":8}]"#, "[]", "[", "7", ""]
        {
            assert!(!answers(other.as_bytes(), 7), "{other}");
        }
    }
}
