//! HTTP requests and their responses as data, which a state machine of `auth/` returns and a transport carries out.
//!
//! The shell never follows a redirect and never reads more than [`FetchRequest::max_bytes`].

use std::{fmt, time::Duration};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::de::DeserializeOwned;

use super::url::WebUrl;
use crate::{protocol::json, replier::GivenUp};

/// The maximum size of a key set, in bytes.
pub const MAX_KEY_SET: usize = 1024 * 1024;
/// The maximum size of any other document, in bytes.
pub const MAX_DOCUMENT: usize = 256 * 1024;
/// The time after which a request is given up.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// A request. `Debug` shows neither headers nor body, which may contain secrets.
#[derive(Clone, Eq, PartialEq)]
pub struct FetchRequest {
    pub method: Method,
    /// A URL that [`check_url`] has accepted.
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The maximum size of the answer's body, in bytes.
    pub max_bytes: usize,
    pub timeout: Duration,
    pub reach: Reach,
}

/// The addresses that a host may connect to for a request. The name in a URL does not tell them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reach {
    Anywhere,
    /// For a URL that a server has named: this machine only if a host of one of these URLs, which the program has named, is on
    /// this machine.
    LocalIf(Vec<String>),
    /// For a URL that a peer has named: public addresses only, and directly.
    Public,
}

/// An answer. `Debug` shows the status and the URL only.
#[derive(Clone, Eq, PartialEq)]
pub struct FetchResponse {
    /// The URL of the request.
    pub url: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// The outcome of a request.
pub type Fetched = Result<FetchResponse, FetchError>;

/// The reason why there is no answer, or none of use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FetchError {
    /// The URL may not be used; the text says why.
    Url(String),
    /// The connection failed.
    Connection(String),
    TimedOut(Duration),
    /// The answer is longer than this many bytes.
    TooLarge(usize),
    /// The server redirects to this URL, which is not followed.
    Redirect(String),
    Status(StatusCode),
    /// The body is not the expected JSON.
    Json(String),
}

impl GivenUp for Fetched {
    fn given_up() -> Self {
        Err(FetchError::Connection("the request was given up".into()))
    }
}

impl FetchRequest {
    /// Creates a request for a JSON document.
    pub fn get(url: &str, max_bytes: usize) -> Result<Self, FetchError> {
        check_url(url)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let (url, body) = (url.to_owned(), Vec::new());
        Ok(Self {
            method: Method::GET,
            url,
            headers,
            body,
            max_bytes,
            timeout: TIMEOUT,
            reach: Reach::Anywhere,
        })
    }

    /// Creates a request with a form as its body.
    pub fn post_form(url: &str, fields: &[(&str, &str)]) -> Result<Self, FetchError> {
        Self::post(url, "application/x-www-form-urlencoded", encode_form(fields).into_bytes())
    }

    /// Creates a request with a body of JSON.
    pub fn post_json(url: &str, body: &serde_json::Value) -> Result<Self, FetchError> {
        Self::post(url, "application/json", body.to_string().into_bytes())
    }

    fn post(url: &str, kind: &'static str, body: Vec<u8>) -> Result<Self, FetchError> {
        let mut request = Self::get(url, MAX_DOCUMENT)?;
        request.method = Method::POST;
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        request.body = body;
        Ok(request)
    }

    /// Sets an `Authorization` header that identifies the client (RFC 6749, section 2.3.1).
    #[must_use]
    pub fn with_basic(mut self, client_id: &str, secret: &str) -> Self {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let pair = format!("{}:{}", encode(client_id), encode(secret));
        let value = format!("Basic {}", STANDARD.encode(pair));
        if let Ok(mut value) = HeaderValue::try_from(value) {
            value.set_sensitive(true);
            self.headers.insert(header::AUTHORIZATION, value);
        }
        self
    }
}

impl FetchResponse {
    /// Reads a document. A redirect is refused, as is any status but 200.
    pub fn document<T: DeserializeOwned>(&self) -> Result<T, FetchError> {
        if self.status.is_redirection() {
            let location = self.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            return Err(FetchError::Redirect(location.unwrap_or_default().to_owned()));
        }
        if self.status != StatusCode::OK {
            return Err(FetchError::Status(self.status));
        }
        self.json()
    }

    /// Reads the body as JSON, whatever the status.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, FetchError> {
        // The text of serde's error may quote a value, and the value may be a token.
        json::from_bytes(&self.body).map_err(|error| {
            FetchError::Json(format!("line {}, column {}", error.line(), error.column()))
        })
    }
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchRequest({} {})", self.method, without_query(&self.url))
    }
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchResponse({} of {})", self.status.as_u16(), without_query(&self.url))
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(reason) | Self::Connection(reason) => f.write_str(reason),
            Self::TimedOut(limit) => write!(f, "no answer within {} s", limit.as_secs_f32()),
            Self::TooLarge(limit) => write!(f, "the answer is longer than {limit} bytes"),
            Self::Redirect(target) => {
                write!(f, "it redirects to {:?}; redirects are not followed", without_query(target))
            }
            Self::Status(status) => write!(f, "it answered with status {}", status.as_u16()),
            Self::Json(place) => write!(f, "its answer is not the expected JSON ({place})"),
        }
    }
}

impl std::error::Error for FetchError {}

/// Parses a URL of an authorization server: `https`, or `http` on this machine. Errors with what is wrong.
pub fn check_url(url: &str) -> Result<WebUrl, FetchError> {
    let parsed = WebUrl::parse(url)?;
    let invalid = |reason: &str| FetchError::Url(format!("{:?}: {reason}", without_query(url)));
    match parsed.scheme() {
        "https" => Ok(parsed),
        "http" if parsed.is_loopback() => Ok(parsed),
        "http" => Err(invalid("plain http is allowed for this machine only; use https")),
        _ => Err(invalid("the scheme must be https")),
    }
}

/// Encodes fields as `application/x-www-form-urlencoded`.
pub fn encode_form(fields: &[(&str, &str)]) -> String {
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    fields.join("&")
}

/// Percent-encodes all but the unreserved characters.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
                encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    encoded
}

/// Decodes `application/x-www-form-urlencoded`.
pub fn decode_form(text: &str) -> Vec<(String, String)> {
    let fields = text.split('&').filter(|field| !field.is_empty());
    let fields = fields.map(|field| field.split_once('=').unwrap_or((field, "")));
    fields.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// Decodes a name or value of a form.
pub fn decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        decoded.push(match first {
            b'+' => b' ',
            b'%' => {
                let digits =
                    after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => {
                        rest = &after[2..];
                        byte
                    }
                    None => b'%',
                }
            }
            byte => *byte,
        });
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Removes the query of a URL, which may contain secrets.
pub fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine() {
        for url in [
            "https://as.example.com/token",
            "http://localhost:8080/x",
            "http://127.0.0.9/",
            "http://[::1]:1/x",
            "http://as.localhost/",
        ] {
            check_url(url).unwrap();
        }
        for (url, reason) in [
            ("http://as.example.com/?key=s3cret", "use https"),
            ("http://127.0.0.1.example.com/", "use https"),
            ("http://10.0.0.1/", "use https"),
            ("ftp://as.example.com/", "must be https"),
            ("as.example.com", "absolute"),
            ("/token", "absolute"),
            ("https://a b", "not a URL"),
            ("https://user:s3cret@as.example.com/", "user name"),
            ("https://as.example.com/#x", "fragment"),
        ] {
            let error = check_url(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_document_is_an_answer_with_status_200() {
        let answer = |status: u16, body: &str| FetchResponse {
            url: "https://as.example.com/x?key=s3cret".into(),
            status: StatusCode::from_u16(status).unwrap(),
            headers: [(header::LOCATION, HeaderValue::from_static("https://evil.example/?s3cret"))]
                .into_iter()
                .collect(),
            body: body.into(),
        };
        assert_eq!(answer(200, "[1]").document::<Vec<u8>>(), Ok(vec![1]));
        for (status, body, reason) in [
            (302, "[1]", "redirects to \"https://evil.example/\""),
            (307, "[1]", "not followed"),
            (404, "[1]", "status 404"),
            (201, "[1]", "status 201"),
            (200, "\"s3cret\"", "not the expected JSON"),
        ] {
            let error = answer(status, body).document::<Vec<u8>>().unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("s3cret"), "{error}");
        }
        assert!(!format!("{:?}", answer(200, "s3cret")).contains("s3cret"));
    }

    #[test]
    fn the_credentials_of_a_client_are_encoded_and_not_shown() {
        let request = FetchRequest::post_form("https://as.example.com/x", &[("token", "a b&c")]);
        let request = request.unwrap().with_basic("the client", "s:3cret");
        assert_eq!(request.body, b"token=a%20b%26c");
        let expected = "Basic dGhlJTIwY2xpZW50OnMlM0EzY3JldA==";
        assert_eq!(request.headers[header::AUTHORIZATION], expected);
        assert_eq!(format!("{request:?}"), "FetchRequest(POST https://as.example.com/x)");
    }
}
