//! JSON-RPC 2.0 frames, parsed in one pass. Payloads stay raw JSON until a layer that knows the method parses them.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{json, partial::PartialMessage};

/// A piece of JSON that passes through the core unchanged.
pub type Raw = Box<RawValue>;

/// The bytes that some programs, mostly of Windows, write before a text in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The maximum number of messages in a batch.
pub const MAX_BATCH: usize = 1_000;

/// A request id, a string or an integer, kept as its raw JSON text so that it is returned exactly as received. Clones
/// share the text.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Id(Arc<str>);

/// A parsed frame: a single message or a batch.
#[derive(Debug)]
pub enum Frame<'a> {
    One(Result<Message<'a>, Malformed>),
    /// At most one message more than [`MAX_BATCH`]; those after it are left out.
    Batch(Vec<Result<Message<'a>, Malformed>>),
}

/// One JSON-RPC message, borrowed from the read buffer.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: Id,
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Response {
        id: Option<Id>,
        outcome: Result<&'a RawValue, ErrorObject>,
        /// True if the message has the member of the other outcome as well, as `null`.
        has_both: bool,
    },
}

/// The reason that a frame is not a message, with the id if it could be read.
#[derive(Clone, Debug)]
pub struct Malformed {
    pub id: Option<Id>,
    /// True if the frame is not JSON (-32700), false if it is JSON but not a JSON-RPC message (-32600).
    pub unreadable: bool,
    pub message: String,
    /// True for a malformed response, which gets no error response.
    pub is_response: bool,
    /// True if it has no method, so that it is not a request, whatever else it is. Beside a result or an error, a method that is
    /// not a string counts as none.
    pub lacks_method: bool,
}

/// The params of a message: an object whose member values are still raw JSON.
#[derive(Debug, Default)]
pub enum Params<'a> {
    #[default]
    Absent,
    Object(Vec<(Cow<'a, str>, &'a RawValue)>),
    /// Any other JSON value; no method of MCP accepts it.
    Other,
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl Id {
    /// Creates an id from a number.
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// Parses a JSON text as an id; returns `None` unless it is a string or an integer.
    pub fn parse(json: &str) -> Option<Self> {
        let digits = json.strip_prefix('-').unwrap_or(json);
        let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (integer || json.starts_with('"')).then(|| Self(json.into()))
    }

    /// Returns the id's raw JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ErrorObject {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl<'a> Params<'a> {
    /// Returns the raw value of a member; the last one if several have this name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        match self {
            Self::Object(members) => {
                members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
            }
            Self::Absent | Self::Other => None,
        }
    }

    /// Returns the total size of all members in bytes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Object(members) => {
                members.iter().map(|(key, value)| key.len() + value.get().len()).sum()
            }
            Self::Absent | Self::Other => 0,
        }
    }

    /// Returns all members except `_meta` as a JSON object.
    pub fn without_meta(&self) -> Raw {
        let mut text = String::from("{");
        if let Self::Object(members) = self {
            for (key, value) in members.iter().filter(|(key, _)| key != "_meta") {
                if text.len() > 1 {
                    text.push(',');
                }
                json::push_string(&mut text, key);
                text.push(':');
                text.push_str(value.get());
            }
        }
        text.push('}');
        json::raw(text)
    }
}

impl<'a> Frame<'a> {
    /// Parses a frame. Errors are part of the result: a message or what is wrong, for each message. A byte order mark before
    /// the frame is skipped.
    pub fn parse(bytes: &'a [u8]) -> Self {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                return Self::One(Err(Malformed::unreadable(format!(
                    "invalid UTF-8 at byte {}",
                    error.valid_up_to()
                ))));
            }
        };
        if !text.trim_ascii_start().starts_with('[') {
            return Self::One(parse_message(text));
        }
        match serde_json::from_str::<BatchMembers<'_>>(text) {
            Ok(BatchMembers(members)) => {
                Self::Batch(members.into_iter().map(|member| parse_message(member.get())).collect())
            }
            Err(error) => Self::One(Err(Malformed::unreadable(error.to_string()))),
        }
    }

    /// Returns the id under which a single request is answered, also one that is malformed.
    pub fn request_id(&self) -> Option<&Id> {
        match self {
            Self::One(Ok(Message::Request { id, .. })) => Some(id),
            Self::One(Err(malformed)) if !malformed.is_response => malformed.id.as_ref(),
            Self::One(_) | Self::Batch(_) => None,
        }
    }
}

impl Malformed {
    fn unreadable(message: String) -> Self {
        Self { id: None, unreadable: true, message, is_response: false, lacks_method: false }
    }

    fn invalid(id: Option<Id>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { id, unreadable: false, message, is_response: false, lacks_method: false }
    }
}

/// Returns the problem of a message that could not be parsed. A number that no member can hold is JSON nevertheless, so that the
/// request is answered under its id.
fn unreadable_or_too_large(text: &str, error: &serde_json::Error) -> Malformed {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return Malformed::unreadable(error.to_string());
    }
    let read = PartialMessage::from_beginning(text.as_bytes());
    Malformed {
        is_response: read.has_outcome && !read.has_method,
        lacks_method: !read.has_method,
        ..Malformed::invalid(read.id, error.to_string())
    }
}

fn parse_message(text: &str) -> Result<Message<'_>, Malformed> {
    let fields: Fields<'_> = match serde_json::from_str(text) {
        Ok(fields) => fields,
        Err(error) if error.is_data() => {
            // serde stops at the first data error, so only a second pass over the whole text shows whether it is
            // JSON.
            return Err(match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => {
                    Malformed::invalid(None, "not a JSON-RPC message: expected one JSON object")
                }
                Err(error) => Malformed::unreadable(error.to_string()),
            });
        }
        Err(error) => return Err(unreadable_or_too_large(text, &error)),
    };
    let has_outcome = fields.result.is_some() || fields.error.is_some();
    let lacks_method = match &fields.method {
        None => true,
        Some(Name::Text(_)) => false,
        // Some programs write absent members as null.
        Some(Name::Other) => has_outcome,
    };
    let is_response = lacks_method && has_outcome;
    let id = fields.id.map(|raw| Id::parse(raw.get()).ok_or(raw));
    let known = match &id {
        Some(Ok(id)) => Some(id.clone()),
        _ => None,
    };
    let invalid = |message: &str| Malformed {
        is_response,
        lacks_method,
        ..Malformed::invalid(known.clone(), message)
    };
    if !fields.jsonrpc {
        return Err(invalid(r#""jsonrpc" must be "2.0""#));
    }
    if let Some(method) = fields.method {
        let Name::Text(Text(method)) = method else {
            return Err(invalid(r#""method" must be a string"#));
        };
        return match id {
            None => Ok(Message::Notification { method, params: fields.params }),
            Some(Ok(id)) => Ok(Message::Request { id, method, params: fields.params }),
            Some(Err(_)) => Err(invalid(r#""id" must be a string or an integer"#)),
        };
    }
    let id = match id {
        Some(Ok(id)) => Some(id),
        Some(Err(raw)) if raw.get() != "null" => {
            return Err(invalid(r#""id" must be a string or an integer"#));
        }
        _ => None,
    };
    let is_null = |value: &RawValue| value.get() == "null";
    let has_both = fields.result.is_some() && fields.error.is_some();
    match (fields.result, fields.error) {
        // JSON-RPC 1.0 has both members, one of them null.
        (Some(result), Some(error)) if is_null(error) => {
            Ok(Message::Response { id, outcome: Ok(result), has_both })
        }
        (Some(result), Some(_)) if !is_null(result) => {
            Err(invalid(r#"an answer has "result" or "error", not both"#))
        }
        (Some(result), None) => Ok(Message::Response { id, outcome: Ok(result), has_both }),
        (_, Some(error)) => match serde_json::from_str(error.get()) {
            Ok(error) => Ok(Message::Response { id, outcome: Err(error), has_both }),
            Err(_) => Err(invalid(r#""error" must be an object with "code" and "message""#)),
        },
        (None, None) => Err(invalid(r#""method" is missing"#)),
    }
}

/// The value of the `method` member.
enum Name<'a> {
    Text(Text<'a>),
    Other,
}

/// The members of a message; `None` stands for an absent member and is distinct from `null`.
#[derive(Default)]
struct Fields<'a> {
    jsonrpc: bool,
    id: Option<&'a RawValue>,
    method: Option<Name<'a>>,
    params: Params<'a>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

/// The members of a batch that are read: one more than a batch may have. A message of a few megabytes can have millions.
struct BatchMembers<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for BatchMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = BatchMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while members.len() <= MAX_BATCH {
                    match seq.next_element()? {
                        Some(member) => members.push(member),
                        None => return Ok(BatchMembers(members)),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(BatchMembers(members))
            }
        }
        deserializer.deserialize_seq(MembersVisitor)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some(Text(key)) = map.next_key()? {
                    match &*key {
                        "jsonrpc" => {
                            fields.jsonrpc = map.next_value::<&RawValue>()?.get() == r#""2.0""#;
                        }
                        "id" => fields.id = Some(map.next_value()?),
                        "method" => {
                            let raw: &RawValue = map.next_value()?;
                            fields.method = Some(match json::plain_text(raw) {
                                Some(method) => Name::Text(Text(Cow::Borrowed(method))),
                                None => {
                                    serde_json::from_str(raw.get()).map_or(Name::Other, Name::Text)
                                }
                            });
                        }
                        "params" => fields.params = map.next_value()?,
                        "result" => fields.result = Some(map.next_value()?),
                        "error" => fields.error = Some(map.next_value()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

impl<'de> Deserialize<'de> for Params<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ParamsVisitor;
        impl<'de> Visitor<'de> for ParamsVisitor {
            type Value = Params<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("params")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some(Text(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Params::Object(members))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<&RawValue>()?.is_some() {}
                Ok(Params::Other)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Params::Other)
            }
        }
        deserializer.deserialize_any(ParamsVisitor)
    }
}

/// A string that borrows from the input unless it contains escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}
