//! Requests to a token endpoint, and their responses (RFC 6749, sections 4 to 6).

use std::fmt;

use http::{HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;

use super::{
    Moment,
    dpop::Prover,
    failure,
    records::{ClientRecord, Tokens},
    settings::{ClientKey, RegisteredClient},
    shown,
};
use crate::{
    auth::{
        Secret,
        fetch::{FetchError, FetchRequest, FetchResponse},
        jwt_signing::client_assertion,
        metadata::ServerMetadata,
        registered_names::CLIENT_ASSERTION,
        scopes::{self, Scopes},
    },
    error::{Error, option_name},
};

/// The header with a proof of possession, and the one with a nonce for it (RFC 9449).
const DPOP: HeaderName = HeaderName::from_static("dpop");
pub(super) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The error code of a server that wants a nonce in the proof.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";

/// The maximum time before its end at which a token is renewed, in seconds; at most a tenth of its life.
const LEEWAY: u64 = 60;
/// The maximum length of a token.
const MAX_TOKEN: usize = 64 * 1024;

/// A client at a token endpoint.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) id: Option<String>,
    method: ClientMethod,
}

/// The way in which a client authenticates at a token endpoint (`token_endpoint_auth_method`).
#[derive(Clone, Debug)]
enum ClientMethod {
    None,
    Basic(Secret),
    Post(Secret),
    Assertion(ClientKey),
}

impl Identity {
    /// Returns a client without credentials.
    pub(super) fn public(id: Option<String>) -> Self {
        Self { id, method: ClientMethod::None }
    }

    /// Returns a client that was registered beforehand.
    pub(super) fn given(client: &RegisteredClient, server: &ServerMetadata) -> Self {
        let method = match &client.key {
            Some(key) => ClientMethod::Assertion(key.clone()),
            None => method(client.secret.as_ref(), None, server),
        };
        Self { id: Some(client.id.clone()), method }
    }

    /// Returns a client that registered itself.
    pub(super) fn registered(client: &ClientRecord, server: &ServerMetadata) -> Self {
        let method = method(client.secret.as_ref(), client.method.as_deref(), server);
        Self { id: Some(client.id.clone()), method }
    }
}

fn method(
    secret: Option<&Secret>,
    registered: Option<&str>,
    server: &ServerMetadata,
) -> ClientMethod {
    let Some(secret) = secret else { return ClientMethod::None };
    let supports = |method: &str| match &server.token_endpoint_auth_methods_supported {
        Some(supported) => supported.iter().any(|known| known == method),
        // The default of RFC 8414, section 2.
        None => method == "client_secret_basic",
    };
    match registered {
        Some("none") => ClientMethod::None,
        Some("client_secret_post") => ClientMethod::Post(secret.clone()),
        Some("client_secret_basic") => ClientMethod::Basic(secret.clone()),
        _ if supports("client_secret_basic") => ClientMethod::Basic(secret.clone()),
        _ if supports("client_secret_post") => ClientMethod::Post(secret.clone()),
        _ if supports("none") => ClientMethod::None,
        _ => ClientMethod::Basic(secret.clone()),
    }
}

/// A request to a token endpoint. It can be sent again with fresh proofs. `Debug` shows the endpoint only.
#[derive(Clone)]
pub(super) struct TokenRequest {
    pub(super) issuer: String,
    endpoint: String,
    client: Identity,
    fields: Vec<(&'static str, String)>,
    /// The scopes that the token is for.
    pub(super) requested: Scopes,
}

impl TokenRequest {
    pub(super) fn new(
        server: &ServerMetadata,
        client: Identity,
        grant_type: &str,
        requested: Scopes,
    ) -> Result<Self, Error> {
        let issuer = server.issuer.clone();
        let endpoint = server.token_endpoint.clone().ok_or_else(|| {
            failure(format!("the authorization server {issuer} has no token_endpoint"))
        })?;
        let fields = vec![("grant_type", grant_type.to_owned())];
        Ok(Self { issuer, endpoint, client, fields, requested })
    }

    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Adds the requested scopes, if there are any.
    #[must_use]
    pub(super) fn with_scope(self) -> Self {
        match scopes::join(&self.requested) {
            scope if scope.is_empty() => self,
            scope => self.with("scope", scope),
        }
    }

    /// Returns the HTTP request, with fresh proofs.
    pub(super) fn request(
        &self,
        at: &Moment,
        prover: Option<&Prover>,
    ) -> Result<FetchRequest, Error> {
        let mut fields: Vec<_> =
            self.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let id = self.client.id.as_deref().unwrap_or_default();
        let assertion = match &self.client.method {
            ClientMethod::Assertion(key) => {
                client_assertion(&key.0, id, &self.issuer, at.unix, &at.id("assertion"))?
            }
            _ => String::new(),
        };
        match &self.client.method {
            // Beside the header the id is optional (RFC 6749, section 3.2.1), but the official Python SDK's servers
            // require it.
            ClientMethod::None | ClientMethod::Basic(_) if !id.is_empty() => {
                fields.push(("client_id", id));
            }
            ClientMethod::None | ClientMethod::Basic(_) => (),
            ClientMethod::Post(secret) => {
                fields.extend([("client_id", id), ("client_secret", secret.expose())]);
            }
            ClientMethod::Assertion(_) => fields.extend([
                ("client_assertion_type", CLIENT_ASSERTION),
                ("client_assertion", &assertion),
            ]),
        }
        let request = FetchRequest::post_form(&self.endpoint, &fields);
        let mut request = request.map_err(|error| failure(error.to_string()))?;
        if let ClientMethod::Basic(secret) = &self.client.method {
            request = request.with_basic(id, secret.expose());
        }
        if let Some(prover) = prover {
            let proof = prover.proof(at, "POST", &self.endpoint, None)?;
            if let Ok(proof) = HeaderValue::try_from(proof) {
                request.headers.insert(DPOP, proof);
            }
        }
        Ok(request)
    }

    /// Reads a response. `must_bind` is true if a token that is not bound to the client's key is refused.
    pub(super) fn read(
        &self,
        response: Result<FetchResponse, FetchError>,
        unix: u64,
        must_bind: bool,
    ) -> Result<Granted, TokenRefusal> {
        let issuer = &self.issuer;
        let broken = |reason: &str| {
            TokenRefusal::Broken(failure(format!(
                "the token request to the authorization server {issuer} failed: {reason}"
            )))
        };
        let response = response.map_err(|error| broken(&error.to_string()))?;
        if response.status != StatusCode::OK {
            return Err(self.refusal(&response));
        }
        let body: Body = response.json().map_err(|error| broken(&error.to_string()))?;
        let token = body.access_token.expose();
        let is_visible = token.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        if token.is_empty() || token.len() > MAX_TOKEN || !is_visible {
            return Err(broken("the access token is not valid"));
        }
        let is_dpop = body.token_type.eq_ignore_ascii_case("DPoP");
        // An exchange for a grant yields no access token, and so no type of one (RFC 8693, section 2.2.1).
        let is_known = is_dpop
            || ["Bearer", "N_A", ""].iter().any(|kind| kind.eq_ignore_ascii_case(&body.token_type));
        if !is_known {
            let kind = shown(&body.token_type);
            return Err(broken(&format!("the token has the unsupported type {kind:?}")));
        }
        if must_bind && !is_dpop {
            return Err(broken("the token is not bound to this client's key, as dpop requires"));
        }
        let life = body.expires_in.map(Seconds::get);
        Ok(Granted {
            issued_type: body.issued_token_type,
            tokens: Tokens {
                access: body.access_token,
                is_dpop,
                expires_at: life.map(|life| unix.saturating_add(life)),
                renew_at: life.map(|life| unix.saturating_add(life - (life / 10).min(LEEWAY))),
                refresh: body.refresh_token,
                requested: self.requested.clone(),
                granted: match body.scope {
                    Some(scope) => scopes::parse(&scope),
                    // RFC 6749, section 5.1: identical to the requested ones.
                    None => self.requested.clone(),
                },
            },
        })
    }

    fn refusal(&self, response: &FetchResponse) -> TokenRefusal {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Body {
            error: String,
            error_description: String,
        }
        let body: Body = response.json().unwrap_or_default();
        let nonce = response.headers.get(DPOP_NONCE).and_then(|value| value.to_str().ok());
        if let (USE_DPOP_NONCE, Some(nonce)) = (&*body.error, nonce) {
            return TokenRefusal::Nonce(nonce.to_owned());
        }
        let issuer = &self.issuer;
        let is_busy = response.status.is_server_error()
            || response.status == StatusCode::TOO_MANY_REQUESTS
            || matches!(&*body.error, "temporarily_unavailable" | "server_error" | "slow_down");
        if is_busy || body.error.is_empty() {
            let code = shown(&body.error);
            let said = if code.is_empty() { code } else { format!(" ({code})") };
            return TokenRefusal::Broken(failure(format!(
                "the token request to the authorization server {issuer} failed: HTTP {}{said}",
                response.status.as_u16()
            )));
        }
        // A description may repeat the request.
        let is_clean = !self.secrets().any(|secret| body.error_description.contains(secret));
        let description = if is_clean { shown(&body.error_description) } else { String::new() };
        let code = shown(&body.error);
        let words = match description.is_empty() {
            true => code.clone(),
            false => format!("{code}: {description}"),
        };
        let error =
            failure(format!("the authorization server {issuer} refused the token ({words})"));
        match code.as_str() {
            "invalid_client" => TokenRefusal::UnknownClient(error.with_hint(format!(
                "check {} and {}",
                option_name("client_id"),
                option_name("client_secret")
            ))),
            "invalid_scope" => TokenRefusal::Refused(error.with_hint("check the scopes")),
            _ => TokenRefusal::Refused(error),
        }
    }

    /// Returns the values that no error may show.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let names = ["code", "code_verifier", "refresh_token", "assertion", "subject_token"];
        let secret = match &self.client.method {
            ClientMethod::Basic(secret) | ClientMethod::Post(secret) => Some(secret.expose()),
            _ => None,
        };
        let fields = self.fields.iter().filter(move |(name, _)| names.contains(name));
        fields.map(|(_, value)| value.as_str()).chain(secret).filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenRequest({})", self.endpoint)
    }
}

/// A successful response.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) tokens: Tokens,
    /// The type of an exchanged token (RFC 8693).
    pub(super) issued_type: Option<String>,
}

/// The reason why there is no token.
#[derive(Debug)]
pub(super) enum TokenRefusal {
    /// The proof needs this nonce.
    Nonce(String),
    /// The authorization server refuses; the same request would fail again.
    Refused(Error),
    /// The authorization server does not know the client, or not its secret.
    UnknownClient(Error),
    /// There is no usable response.
    Broken(Error),
}

impl TokenRefusal {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Nonce(_) => failure("the authorization server asks for a DPoP nonce"),
            Self::Refused(error) | Self::UnknownClient(error) | Self::Broken(error) => error,
        }
    }
}

#[derive(Deserialize)]
struct Body {
    access_token: Secret,
    #[serde(default)]
    token_type: String,
    expires_in: Option<Seconds>,
    refresh_token: Option<Secret>,
    scope: Option<String>,
    issued_token_type: Option<String>,
}

/// A number of seconds, which some servers write as a string or with a fraction.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "serde_json::Value")]
struct Seconds(u64);

impl Seconds {
    fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<serde_json::Value> for Seconds {
    type Error = &'static str;

    fn try_from(value: serde_json::Value) -> Result<Self, &'static str> {
        let text = match &value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let whole = text.split('.').next().unwrap_or_default();
        whole.parse().map(Self).map_err(|_| "not a number of seconds")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use http::{HeaderMap, header};
    use serde_json::{Value, json};

    use super::*;

    fn server(methods: Option<&[&str]>) -> ServerMetadata {
        let methods =
            methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect());
        ServerMetadata {
            issuer: "https://as.example.com".into(),
            token_endpoint: Some("https://as.example.com/token".into()),
            token_endpoint_auth_methods_supported: methods,
            ..ServerMetadata::default()
        }
    }

    fn request(client: Identity) -> TokenRequest {
        let request = TokenRequest::new(&server(None), client, "refresh_token", scopes::parse("a"));
        request
            .unwrap()
            .with("refresh_token", "r3fresh")
            .with("resource", "https://mcp.example.com")
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is an answer to a request")]
    fn answer(status: u16, body: &Value) -> Result<FetchResponse, FetchError> {
        let (url, headers) = (String::new(), HeaderMap::new());
        let status = StatusCode::from_u16(status).unwrap();
        Ok(FetchResponse { url, status, headers, body: body.to_string().into() })
    }

    fn body(request: &FetchRequest) -> String {
        String::from_utf8(request.body.clone()).unwrap()
    }

    #[test]
    fn a_client_authenticates_as_the_server_supports() {
        let moment = Moment { now: Instant::now(), unix: 1_000, random: [1; 32] };
        let client = RegisteredClient::with_secret("me", "s3cret");
        let request_by = |methods: Option<&[&str]>| {
            let client = Identity::given(&client, &server(methods));
            request(client).request(&moment, None).unwrap()
        };
        for methods in
            [None, Some(&["client_secret_post", "client_secret_basic"][..]), Some(&["odd"])]
        {
            let sent = request_by(methods);
            assert_eq!(sent.headers[header::AUTHORIZATION], "Basic bWU6czNjcmV0");
            assert!(body(&sent).ends_with("&client_id=me"), "{}", body(&sent));
        }
        let sent = request_by(Some(&["client_secret_post"]));
        assert!(!sent.headers.contains_key(header::AUTHORIZATION));
        assert!(body(&sent).ends_with("&client_id=me&client_secret=s3cret"));
        let sent = request_by(Some(&["none"]));
        assert!(!sent.headers.contains_key(header::AUTHORIZATION));
        assert!(body(&sent).ends_with("&client_id=me"));
        assert!(!format!("{:?}{:?}", request(Identity::public(None)), client).contains('3'));
    }

    #[test]
    fn the_registered_method_is_used() {
        let record = |method: &str| ClientRecord {
            id: "me".into(),
            secret: Some("s3cret".into()),
            secret_expires_at: None,
            method: Some(method.into()),
            redirect_uri: String::new(),
        };
        let method = |method: &str| {
            let client = Identity::registered(&record(method), &server(Some(&["none"])));
            format!("{:?}", client.method)
        };
        assert_eq!(method("client_secret_post"), "Post(…)");
        assert_eq!(method("client_secret_basic"), "Basic(…)");
        assert_eq!(method("none"), "None");
        assert_eq!(method("unknown"), "None");
    }

    #[test]
    fn a_token_is_renewed_before_it_expires() {
        let read =
            |body: Value| request(Identity::public(None)).read(answer(200, &body), 1_000, false);
        let times = |life: Value| {
            let granted =
                read(json!({ "access_token": "t", "token_type": "bearer", "expires_in": life }));
            let tokens = granted.unwrap().tokens;
            (tokens.expires_at.unwrap() - 1_000, tokens.renew_at.unwrap() - 1_000)
        };
        assert_eq!(times(json!(3600)), (3600, 3540));
        assert_eq!(times(json!("3600")), (3600, 3540));
        assert_eq!(times(json!(10.5)), (10, 9));
        assert_eq!(times(json!(0)), (0, 0));
        let tokens = read(json!({ "access_token": "t", "scope": "a b" })).unwrap().tokens;
        assert_eq!((tokens.expires_at, scopes::join(&tokens.granted)), (None, "a b".into()));
        assert_eq!(scopes::join(&tokens.requested), "a");
        assert!(!format!("{tokens:?}").contains("\"t\""));
    }

    #[test]
    fn a_response_that_grants_nothing_is_an_error_without_secrets() {
        let read = |status: u16, body: Value| {
            let read = request(Identity::public(None)).read(answer(status, &body), 0, true);
            read.unwrap_err().into_error().to_string()
        };
        for (status, body, expected) in [
            (200, json!({ "token_type": "Bearer" }), "not the expected JSON"),
            (200, json!({ "access_token": "t0ken\n" }), "not valid"),
            (200, json!({ "access_token": "" }), "not valid"),
            (
                200,
                json!({ "access_token": "t0ken", "token_type": "mac" }),
                "unsupported type \"mac\"",
            ),
            (200, json!({ "access_token": "t0ken", "token_type": "Bearer" }), "not bound"),
            (200, json!({ "access_token": 7, "token_type": "t0ken" }), "not the expected JSON"),
            (302, json!({}), "HTTP 302"),
            (500, json!("t0ken"), "HTTP 500"),
            (400, json!({ "error": "invalid_client" }), "client_secret"),
            (
                400,
                json!({ "error": "invalid_grant", "error_description": "no r3fresh!" }),
                "(invalid_grant)",
            ),
            (
                400,
                json!({ "error": "invalid_grant", "error_description": "gone\u{7}" }),
                "(invalid_grant: gone)",
            ),
        ] {
            let error = read(status, body);
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("t0ken") && !error.contains("r3fresh"), "{error}");
        }
    }
}
