//! Handler failures as JSON, in which bindings describe them.

use serde::Deserialize;
use serde_json::{Number, value::RawValue};

use super::Failure;
use crate::protocol::{
    Raw, code,
    json::{self, ObjectWriter},
};

/// An error raised or thrown by a handler.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    kind: &'a str,
    message: Option<String>,
    code: Option<Number>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
    #[serde(default)]
    uri: String,
    #[serde(default, rename = "type")]
    class: String,
    #[serde(default)]
    traceback: String,
}

impl Failure {
    /// Reads `{"kind", …}`. An unknown kind is read as an exception. Never fails: unreadable JSON is reported as an
    /// exception that describes the problem.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn described(json: &[u8]) -> Self {
        let it: Described<'_> = match json::from_bytes(json) {
            Ok(it) => it,
            Err(error) => {
                return Self::Exception {
                    kind: "internal".into(),
                    message: format!("the description of a failure can't be read: {error}"),
                    traceback: String::new(),
                };
            }
        };
        let owned = |raw: Option<&RawValue>| raw.map(|value| -> Raw { value.to_owned() });
        let message = || it.message.clone().unwrap_or_default();
        match it.kind {
            "tool" => Self::Tool { message: message(), meta: owned(it.meta) },
            "protocol" => Self::Protocol {
                code: integer(it.code.as_ref()),
                message: message(),
                data: owned(it.data),
            },
            "notFound" => Self::NotFound { uri: it.uri, message: it.message },
            "exposed" => Self::Exposed(message()),
            "declined" => Self::Declined(message()),
            "dismissed" => Self::Dismissed(message()),
            "invalid" => Self::Invalid(message()),
            "missingCapability" => {
                Self::MissingCapability { message: message(), data: owned(it.data) }
            }
            "cancelled" => Self::Cancelled,
            _ => Self::Exception { message: message(), kind: it.class, traceback: it.traceback },
        }
    }

    /// Writes the failure as [`Self::described`] reads it. Those that only the core makes become exposed messages.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn describe(&self) -> String {
        let about = |kind: &str, message: &str| {
            let mut out = ObjectWriter::with_capacity(message.len() + 64);
            out.member("kind", kind).member("message", message);
            out
        };
        let with = |mut out: ObjectWriter, name: &str, value: Option<&Raw>| {
            if let Some(value) = value {
                out.raw(name, value.get());
            }
            out
        };
        let described = match self {
            Self::Tool { message, meta } => with(about("tool", message), "meta", meta.as_ref()),
            Self::Protocol { code, message, data } => {
                let mut out = with(about("protocol", message), "data", data.as_ref());
                out.member("code", code);
                out
            }
            Self::NotFound { uri, message } => {
                let mut out = ObjectWriter::with_capacity(uri.len() + 64);
                out.member("kind", "notFound").member("uri", uri);
                if let Some(message) = message {
                    out.member("message", message);
                }
                out
            }
            Self::Invalid(message) => about("invalid", message),
            Self::Exposed(message) | Self::NotSupported(message) => about("exposed", message),
            Self::Declined(message) => about("declined", message),
            Self::Dismissed(message) => about("dismissed", message),
            Self::MissingCapability { message, data } => {
                with(about("missingCapability", message), "data", data.as_ref())
            }
            Self::Cancelled => about("cancelled", "the call was cancelled"),
            Self::TimedOut(seconds) => {
                about("exposed", &format!("the handler took longer than {seconds} s"))
            }
            Self::Unanswered(seconds) => {
                about("exposed", &format!("the client did not answer within {seconds} s"))
            }
            Self::Exception { kind, message, traceback } => {
                let mut out = about("exception", message);
                out.member("type", kind).member("traceback", traceback);
                out
            }
        };
        described.finish()
    }
}

/// Reads an error code; a non-integer code is `None`.
#[allow(clippy::cast_possible_truncation, reason = "see above")]
fn integer(given: Option<&Number>) -> i64 {
    let read =
        |number: &Number| number.as_i64().or_else(|| number.as_f64().map(|float| float as i64));
    given.and_then(read).unwrap_or(code::INTERNAL_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::ResultBuilder;

    #[test]
    fn failures_keep_what_they_say() {
        let read = |json: &str| Failure::described(json.as_bytes());
        let protocol = r#"{"kind":"protocol","code":-32001,"message":"no","data":{"a":1.0}}"#;
        let Failure::Protocol { code: -32001, data: Some(data), .. } = read(protocol) else {
            panic!("{:?}", read(protocol))
        };
        assert_eq!(data.get(), r#"{"a":1.0}"#);
        assert!(matches!(
            read(r#"{"kind":"tool","message":"m"}"#),
            Failure::Tool { message, meta: None } if message == "m"
        ));
        assert!(matches!(
            read(r#"{"kind":"notFound","uri":"a://b"}"#),
            Failure::NotFound { uri, message: None } if uri == "a://b"
        ));
        assert!(matches!(
            read(r#"{"kind":"exception","type":"E","message":"m","traceback":"t"}"#),
            Failure::Exception { kind, .. } if kind == "E"
        ));
        assert!(matches!(
            read("nonsense"),
            Failure::Exception { kind, .. } if kind == "internal"
        ));
    }

    #[test]
    fn a_failure_that_is_described_is_read_as_the_same() {
        let raw = |text: &str| json::raw(text.into());
        for failure in [
            Failure::Tool { message: "m\n".into(), meta: Some(raw(r#"{"a":1.0}"#)) },
            Failure::Tool { message: String::new(), meta: None },
            Failure::Protocol { code: -32_042, message: "m".into(), data: Some(raw("[1.0]")) },
            Failure::NotFound { uri: "a://\"b".into(), message: None },
            Failure::NotFound { uri: "a://b".into(), message: Some("m".into()) },
            Failure::Invalid("m".into()),
            Failure::Exposed("m".into()),
            Failure::Declined("Sure?".into()),
            Failure::Dismissed("Sure?".into()),
            Failure::MissingCapability { message: "m".into(), data: Some(raw("{}")) },
            Failure::Cancelled,
            Failure::Exception { kind: "E".into(), message: "m".into(), traceback: "t".into() },
        ] {
            let read = Failure::described(failure.describe().as_bytes());
            assert_eq!(format!("{read:?}"), format!("{failure:?}"));
        }
        let exposed = Failure::described(Failure::TimedOut(2.5).describe().as_bytes());
        assert!(matches!(exposed, Failure::Exposed(message) if message.contains("2.5 s")));
    }

    #[test]
    fn a_no_names_its_question_where_there_is_one() {
        let message = |question: &str| {
            ResultBuilder::Completion
                .fault(Failure::Declined(question.to_owned()), false, "r")
                .0
                .message
        };
        assert_eq!(message("Sure?"), "The user declined: Sure?");
        assert_eq!(message(""), "The user declined");
        let dismissed = |question: &str| {
            let failure = Failure::described(
                format!(r#"{{"kind":"dismissed","message":{question:?}}}"#).as_bytes(),
            );
            ResultBuilder::Completion.fault(failure, false, "r").0.message
        };
        assert_eq!(dismissed("Sure?"), "The user dismissed: Sure?");
        assert_eq!(dismissed(""), "The user dismissed the question");
    }
}
