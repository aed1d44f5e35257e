//! The HTTP headers that repeat the body: encoding, and comparison with the body (Streamable HTTP, "Request Metadata").

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header::AsHeaderName};
use serde_json::value::RawValue;

use crate::{
    error::{Fault, FaultKind},
    protocol::{Method, Params},
};

pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
pub const SESSION_ID: &str = "mcp-session-id";

const ENCODED_PREFIX: &str = "=?base64?";
const ENCODED_SUFFIX: &str = "?=";

/// The MCP headers of an HTTP request, as received.
#[derive(Clone, Debug, Default)]
pub struct McpHeaders {
    pub protocol_version: Option<HeaderValue>,
    pub method: Option<HeaderValue>,
    pub name: Option<HeaderValue>,
    pub session: Option<HeaderValue>,
}

impl McpHeaders {
    /// Reads the headers. A repeated header must have equal values, since readers differ in which one they use.
    pub fn read(headers: &HeaderMap) -> Result<Self, Fault> {
        // A name that is a string is parsed for each look-up.
        let protocol_version = const { HeaderName::from_static(PROTOCOL_VERSION) };
        let method = const { HeaderName::from_static(METHOD) };
        let name = const { HeaderName::from_static(NAME) };
        let session = const { HeaderName::from_static(SESSION_ID) };
        Ok(Self {
            protocol_version: only(headers, protocol_version, "MCP-Protocol-Version")?,
            method: only(headers, method, "Mcp-Method")?,
            name: only(headers, name, "Mcp-Name")?,
            session: only(headers, session, "Mcp-Session-Id")?,
        })
    }

    /// Returns the value; `Some("")` if it is not plain text.
    pub fn protocol_version(&self) -> Option<&str> {
        self.protocol_version.as_ref().map(plain)
    }

    /// Returns whether `Mcp-Method` names this method.
    pub fn is_for(&self, method: Method) -> bool {
        self.method.as_ref().is_some_and(|value| value == method.as_str())
    }

    /// Returns the value; `Some("")` if it is not plain text.
    pub fn session(&self) -> Option<&str> {
        self.session.as_ref().map(plain)
    }
}

/// Checks that `Mcp-Method` and `Mcp-Name` match the body.
pub fn check_standard(
    mcp_headers: &McpHeaders,
    method: &str,
    params: &Params<'_>,
) -> Result<(), Fault> {
    check_method(mcp_headers, method)?;
    let Some(source) = name_source(method) else { return Ok(()) };
    match (&mcp_headers.name, standard(method, |name| params.get(name).map(RawValue::get))) {
        // The missing param is reported when the params are parsed.
        (None, None) => Ok(()),
        (None, Some(name)) => Err(mismatch(format!(
            "Mcp-Name is missing: {method} needs the value of params.{source}, {name:?}"
        ))),
        (Some(value), name) => compare("Mcp-Name", value, |said| match &name {
            Some(name) if *name == said => Ok(()),
            Some(name) => Err(format!("params.{source} is {name:?}")),
            None => Err(format!("params.{source} is not a string")),
        }),
    }
}

pub(super) fn check_method(mcp_headers: &McpHeaders, method: &str) -> Result<(), Fault> {
    match &mcp_headers.method {
        // `Mcp-Method` is not base64-encoded: the specification does not allow it for this header.
        Some(value) if plain(value) == method => Ok(()),
        Some(value) => Err(mismatch(format!(
            "Mcp-Method header value {:?} does not match the body's method {method:?}",
            shown(value)
        ))),
        None => Err(mismatch(format!("Mcp-Method is missing: send {method:?}, the body's method"))),
    }
}

/// Returns the value repeated in `Mcp-Name`, for methods that require the header.
pub fn standard<'a>(
    method: &str,
    param: impl FnOnce(&str) -> Option<&'a str>,
) -> Option<Cow<'a, str>> {
    let raw = param(name_source(method)?)?;
    serde_json::from_str::<&str>(raw)
        .map(Cow::Borrowed)
        .or_else(|_| serde_json::from_str(raw).map(Cow::Owned))
        .ok()
}

/// Returns the name of the param that `Mcp-Name` repeats.
fn name_source(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Decodes a header value, including its base64 form. The error completes the phrase "the value …".
fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|text| text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')))
        .ok_or("has characters that no header may have")?
        .trim_matches([' ', '\t']);
    let encoded =
        text.strip_prefix(ENCODED_PREFIX).and_then(|rest| rest.strip_suffix(ENCODED_SUFFIX));
    let Some(encoded) = encoded else { return Ok(Cow::Borrowed(text)) };
    let bytes = STANDARD.decode(encoded).map_err(|_| "is not valid base64 after =?base64?")?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "is no UTF-8 inside its base64")
}

/// Encodes text as a header value: in base64 if it is not a valid header value, or looks like the base64 form.
pub fn encode_value(text: &str) -> String {
    let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(ENCODED_PREFIX) && text.ends_with(ENCODED_SUFFIX);
    if is_printable && !is_padded && !looks_encoded {
        return text.to_owned();
    }
    format!("{ENCODED_PREFIX}{}{ENCODED_SUFFIX}", STANDARD.encode(text))
}

/// Decodes a header value and compares it; the error of `agrees` describes the value in the body.
pub(super) fn compare(
    header: &str,
    value: &HeaderValue,
    agrees: impl FnOnce(&str) -> Result<(), String>,
) -> Result<(), Fault> {
    let said = decode_value(value.as_bytes())
        .map_err(|why| mismatch(format!("the value of {header}, {:?}, {why}", shown(value))))?;
    agrees(&said).map_err(|body| {
        mismatch(format!("{header} header value {said:?} does not match the body: {body}"))
    })
}

/// Returns the value of a header that must not have two different values.
pub(super) fn only(
    headers: &HeaderMap,
    name: impl AsHeaderName,
    spelled: &str,
) -> Result<Option<HeaderValue>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    match values.all(|value| value == first) {
        true => Ok(Some(first.clone())),
        false => Err(mismatch(format!("{spelled} is sent twice with different values"))),
    }
}

pub(super) fn mismatch(message: impl std::fmt::Display) -> Fault {
    Fault::new(FaultKind::HeaderMismatch, format!("Header mismatch: {message}"))
}

fn plain(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default().trim_ascii()
}

fn shown(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::{Frame, Message};

    fn mcp_headers(lines: &[(&'static str, &'static str)]) -> Result<McpHeaders, Fault> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        McpHeaders::read(&headers)
    }

    fn check(
        method: &str,
        params: &str,
        lines: &[(&'static str, &'static str)],
    ) -> Result<(), String> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let Frame::One(Ok(Message::Request { params, .. })) = Frame::parse(body.as_bytes()) else {
            panic!("no request: {body}");
        };
        let checked =
            mcp_headers(lines).and_then(|headers| check_standard(&headers, method, &params));
        checked.map_err(|fault| {
            assert_eq!(fault.kind, FaultKind::HeaderMismatch);
            fault.message
        })
    }

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        let rows = [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            (" before", "=?base64?IGJlZm9yZQ==?="),
            ("after ", "=?base64?YWZ0ZXIg?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (text, value) in rows {
            assert_eq!(encode_value(text), value);
            assert_eq!(decode_value(value.as_bytes()).as_deref(), Ok(text));
        }
        assert!(encode_value("\tindented").starts_with(ENCODED_PREFIX));
        assert!(encode_value("=?base64?=").starts_with(ENCODED_PREFIX));
    }

    #[test]
    fn base64_is_read_strictly_and_only_between_its_marks() {
        let read = |text: &'static str| decode_value(text.as_bytes()).map(Cow::into_owned);
        assert_eq!(read("=?base64?SGVsbG8=?=").as_deref(), Ok("Hello"));
        assert_eq!(read("  =?base64?SGVsbG8=?=\t").as_deref(), Ok("Hello"));
        assert_eq!(read("=?base64??=").as_deref(), Ok(""));
        for refused in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?="] {
            assert!(read(refused).is_err(), "{refused}");
        }
        for literal in
            ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?base64?=", "=?BASE64?SGVsbG8=?="]
        {
            assert_eq!(read(literal).as_deref(), Ok(literal));
        }
        for refused in ["caf\u{e9}", "a\nb", "a\u{7f}", "a\0"] {
            assert!(read(refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn server_validation_compares_method_and_name() {
        let call = r#"{"name":"get_weather"}"#;
        let is_refused = |method, params, lines: &[_], part: &str| {
            let message = check(method, params, lines).expect_err(part);
            assert!(message.contains(part), "{message}");
        };
        let method = ("mcp-method", "tools/call");
        assert_eq!(check("tools/call", call, &[method, ("mcp-name", "get_weather")]), Ok(()));
        assert_eq!(check("tools/call", call, &[method, ("mcp-name", "  get_weather  ")]), Ok(()));
        assert_eq!(
            check("tools/call", call, &[method, ("mcp-name", "=?base64?Z2V0X3dlYXRoZXI=?=")]),
            Ok(())
        );
        is_refused(
            "tools/call",
            call,
            &[method, ("mcp-name", "other")],
            r#"params.name is "get_weather""#,
        );
        is_refused("tools/call", call, &[method], "Mcp-Name is missing");
        is_refused("tools/call", call, &[], "Mcp-Method is missing");
        is_refused("tools/list", "{}", &[("mcp-method", "TOOLS/LIST")], "does not match");
        is_refused("tools/list", "{}", &[("mcp-method", "prompts/list")], "does not match");
        is_refused("tools/call", call, &[method, ("mcp-name", "=?base64?Z2V0?!?=")], "base64");
        is_refused(
            "tools/call",
            call,
            &[method, ("mcp-name", "get_weather"), ("mcp-name", "x")],
            "twice",
        );
        assert_eq!(check("tools/list", "{}", &[("mcp-method", "tools/list")]), Ok(()));
    }

    #[test]
    fn each_method_names_what_it_is_about() {
        let params = r#"{"name":"n","uri":"file:///a%20b","taskId":"t\u0031"}"#;
        for (method, name) in [
            ("prompts/get", "n"),
            ("resources/read", "file:///a%20b"),
            ("tasks/get", "t1"),
            ("tasks/update", "t1"),
            ("tasks/cancel", "t1"),
        ] {
            assert_eq!(
                check(method, params, &[("mcp-method", method), ("mcp-name", name)]),
                Ok(())
            );
            assert!(check(method, params, &[("mcp-method", method), ("mcp-name", "no")]).is_err());
        }
        // Missing params are reported when the params are parsed.
        assert_eq!(check("tools/call", "{}", &[("mcp-method", "tools/call")]), Ok(()));
        assert!(
            check("tools/call", "{}", &[("mcp-method", "tools/call"), ("mcp-name", "n")]).is_err()
        );
    }

    #[test]
    fn a_header_may_be_repeated_only_with_the_same_value() {
        let twice =
            mcp_headers(&[("mcp-session-id", "a"), ("mcp-session-id", "a")]).expect("the same");
        assert_eq!(twice.session(), Some("a"));
        assert!(mcp_headers(&[("mcp-session-id", "a"), ("mcp-session-id", "b")]).is_err());
        let odd = mcp_headers(&[("mcp-protocol-version", "2026-07-2é")]).expect("read");
        assert_eq!(odd.protocol_version(), Some(""));
    }

    proptest! {
        #[test]
        fn any_text_survives_a_header(text in any::<String>()) {
            let value = encode_value(&text);
            prop_assert!(HeaderValue::from_str(&value).is_ok());
            prop_assert_eq!(decode_value(value.as_bytes()), Ok(Cow::Borrowed(&*text)));
        }

        #[test]
        fn no_value_breaks_the_reader(value in any::<Vec<u8>>(), inner in "[A-Za-z0-9+/=!]{0,12}") {
            if let Ok(text) = decode_value(&value) {
                prop_assert!(value.is_ascii() || text.is_empty());
            }
            let wrapped = format!("{ENCODED_PREFIX}{inner}{ENCODED_SUFFIX}");
            if let Ok(text) = decode_value(wrapped.as_bytes()) {
                prop_assert_eq!(STANDARD.encode(&*text), inner);
            }
        }
    }
}
