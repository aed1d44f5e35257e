//! HTTP requests to an authorization server and its responses, as data.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

pub(super) use crate::auth::page::escape;
use crate::auth::{
    fetch::{decode_form, without_query},
    page,
};

/// The maximum number of fields in a query or form.
const MAX_FIELDS: usize = 100;

/// A request. `Debug` shows neither query, headers nor body, which may contain secrets.
#[derive(Clone)]
pub struct Request {
    pub method: Method,
    pub path: String,
    /// The text after `?`, without it.
    pub query: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A response. `Debug` shows the status only.
#[derive(Clone)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// An error response (RFC 6749, section 5.2).
#[derive(Clone, Debug)]
pub(super) struct OAuthError {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) description: String,
    pub(super) header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// The fields of a query or form.
pub(super) struct Form(Vec<(String, String)>);

impl Response {
    /// Creates a response with JSON, which nobody may store (RFC 6749, section 5.1).
    pub(super) fn json(status: StatusCode, body: &Value) -> Self {
        let mut response = Self::empty(status);
        response.set(header::CONTENT_TYPE, "application/json");
        response.body = body.to_string().into_bytes();
        response
    }

    /// Creates a page. Its URL may contain a code, so it is kept from other sites.
    pub(super) fn page(status: StatusCode, title: &str, content: &str) -> Self {
        let mut response = Self::empty(status);
        response.set(header::CONTENT_TYPE, "text/html; charset=utf-8");
        response.set(header::CONTENT_SECURITY_POLICY, page::POLICY);
        // With `no-referrer`, browsers would send the form of the page without its origin (`Origin: null`).
        response.set(header::REFERRER_POLICY, "same-origin");
        response.body = page::html(title, content).into_bytes();
        response
    }

    /// Creates a redirect of the user's browser.
    pub(super) fn redirect(url: &str) -> Self {
        let mut response = Self::empty(StatusCode::FOUND);
        response.set(header::LOCATION, url);
        response
    }

    /// Creates the response to a request that may be sent again later.
    pub(crate) fn unavailable(reason: &str) -> Self {
        let body = json!({ "error": "temporarily_unavailable", "error_description": reason });
        let mut response = Self::json(StatusCode::SERVICE_UNAVAILABLE, &body);
        response.set(header::RETRY_AFTER, "1");
        response.set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        response
    }

    pub(super) fn empty(status: StatusCode) -> Self {
        let mut response = Self { status, headers: HeaderMap::new(), body: Vec::new() };
        response.set(header::CACHE_CONTROL, "no-store");
        response.set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        response
    }

    pub(super) fn set(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
    }
}

impl OAuthError {
    pub(super) fn new(code: &'static str, description: impl Into<String>) -> Self {
        let description = description.into();
        Self { status: StatusCode::BAD_REQUEST, code, description, header: None }
    }

    /// Creates the error for a client that did not authenticate, after it sent an `Authorization` header if `is_basic`.
    pub(super) fn client(description: impl Into<String>, is_basic: bool) -> Self {
        let challenge = HeaderValue::from_static("Basic realm=\"clients\"");
        Self {
            status: StatusCode::UNAUTHORIZED,
            header: is_basic.then(|| Box::new((header::WWW_AUTHENTICATE, challenge))),
            ..Self::new("invalid_client", description)
        }
    }

    pub(super) fn response(&self) -> Response {
        let body = json!({ "error": self.code, "error_description": self.description });
        let mut response = Response::json(self.status, &body);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.set(header::RETRY_AFTER, "1");
        }
        if let Some(header) = self.header.as_deref() {
            let (name, value) = header.clone();
            response.headers.insert(name, value);
        }
        response
    }
}

impl Form {
    pub(super) fn of_query(request: &Request) -> Result<Self, OAuthError> {
        Self::read(&request.query)
    }

    /// Reads the body. Errors if it is not a form.
    pub(super) fn of_body(request: &Request) -> Result<Self, OAuthError> {
        let kind = request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let reason = "the body must be application/x-www-form-urlencoded";
            return Err(OAuthError::new("invalid_request", reason));
        }
        Self::read(&String::from_utf8_lossy(&request.body))
    }

    fn read(text: &str) -> Result<Self, OAuthError> {
        if text.split('&').count() > MAX_FIELDS {
            let reason = format!("there are more than {MAX_FIELDS} fields");
            return Err(OAuthError::new("invalid_request", reason));
        }
        Ok(Self(decode_form(text)))
    }

    /// Returns a field. An empty one counts as absent, and a repeated one is an error (RFC 6749, section 3.1).
    pub(super) fn get(&self, name: &str) -> Result<Option<&str>, OAuthError> {
        let mut found = self.all(name);
        match (found.next(), found.next()) {
            (value, None) => Ok(value),
            _ => Err(OAuthError::new("invalid_request", format!("{name} occurs twice"))),
        }
    }

    pub(super) fn require(&self, name: &str) -> Result<&str, OAuthError> {
        let missing = || OAuthError::new("invalid_request", format!("{name} is missing"));
        self.get(name)?.ok_or_else(missing)
    }

    /// Returns the values of a field that may be repeated.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let fields = self.0.iter().filter(move |(key, value)| key == name && !value.is_empty());
        fields.map(|(_, value)| value.as_str())
    }

    pub(super) fn into_fields(self) -> Vec<(String, String)> {
        self.0
    }
}

/// Returns the resource that a request names (RFC 8707). Errors for more than one, and for one that is not an absolute URL.
pub(super) fn resource(form: &Form) -> Result<Option<&str>, OAuthError> {
    let mut all = form.all("resource");
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(it), None) if it.contains("://") && !it.contains('#') => Ok(Some(it)),
        (Some(_), None) => Err(OAuthError::new(
            "invalid_target",
            "resource must be an absolute URL without fragment",
        )),
        _ => Err(OAuthError::new("invalid_target", "a token is for one resource")),
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, without_query(&self.path))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response({})", self.status.as_u16())
    }
}
