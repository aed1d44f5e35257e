//! A server with its host, and the requests of its clients.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, header};

use super::super::{super::generate_key, *};
use crate::auth::{
    fetch::{decode_form, encode_form},
    pkce,
    server::{
        jwk::{Algorithm, Jwks},
        jwt::{JwtRules, ParsedJwt, VerifiedToken},
    },
};

pub(super) const ISSUER: &str = "http://127.0.0.1:9000";
pub(super) const MCP: &str = "https://mcp.example.com/mcp";
pub(super) const BACK: &str = "http://127.0.0.1:4711/callback";
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A server, its clock and its host's random bytes.
pub(super) struct World {
    pub(super) server: TestServer,
    start: Instant,
    pub(super) unix: u64,
    steps: u64,
}

/// Reads options or faults, as bindings do.
pub(super) fn parsed<T: Parse>(given: &Value) -> Result<T, Error> {
    T::parse(given.to_string().as_bytes())
}

pub(super) trait Parse: Sized {
    fn parse(json: &[u8]) -> Result<Self, Error>;
}

impl Parse for AuthorizationServerOptions {
    fn parse(json: &[u8]) -> Result<Self, Error> {
        Self::parse(json)
    }
}

impl Parse for AuthFaults {
    fn parse(json: &[u8]) -> Result<Self, Error> {
        Self::parse(json)
    }
}

impl Parse for TokenOptions {
    fn parse(json: &[u8]) -> Result<Self, Error> {
        Self::parse(json)
    }
}

impl World {
    pub(super) fn new(options: &Value) -> Self {
        Self::at(ISSUER, options)
    }

    pub(super) fn at(issuer: &str, options: &Value) -> Self {
        let key = generate_key().unwrap();
        let server = TestServer::new(issuer, parsed(options).unwrap(), &key).unwrap();
        Self { server, start: Instant::now(), unix: 1_000_000, steps: 0 }
    }

    pub(super) fn moment(&mut self) -> Moment {
        self.steps += 1;
        let mut random = [7; 32];
        random[..8].copy_from_slice(&self.steps.to_le_bytes());
        let now = self.start + Duration::from_secs(self.unix - 1_000_000);
        Moment { now, unix: self.unix, random }
    }

    pub(super) fn step(&mut self, request: &Request) -> TestServerStep {
        let moment = self.moment();
        self.server.handle(&moment, request)
    }

    pub(super) fn send(&mut self, request: &Request) -> Response {
        match self.step(request) {
            TestServerStep::Respond(response) => response,
            TestServerStep::Fetch(fetch) => panic!("{fetch:?}"),
        }
    }

    pub(super) fn get(&mut self, path: &str) -> (u16, Value) {
        read(&self.send(&get(path)))
    }

    pub(super) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
        read(&self.send(&post(path, fields)))
    }

    pub(super) fn token(&mut self, fields: &[(&str, &str)]) -> (u16, Value) {
        self.post("/token", fields)
    }

    /// Returns the fields of the redirect with which an authorization request ends.
    pub(super) fn authorize(&mut self, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let response = self.send(&get(&format!("/authorize?{}", encode_form(fields))));
        redirected(&response)
    }

    pub(super) fn code(&mut self, scope: &str) -> String {
        let challenge = pkce::challenge(VERIFIER);
        let fields = authorization(&challenge, scope);
        field(&self.authorize(&fields), "code")
    }

    pub(super) fn redeem(&mut self, code: &str) -> (u16, Value) {
        self.token(&redemption(code))
    }

    /// Verifies a token as a server for [`MCP`] does.
    pub(super) fn verify(&mut self, token: &str) -> VerifiedToken {
        let keys = self.get("/jwks").1;
        let keys = Jwks::read(keys.to_string().as_bytes()).unwrap();
        let rules = JwtRules {
            issuer: ISSUER.into(),
            audiences: vec![MCP.into()],
            algorithms: vec![Algorithm::Es256],
            leeway: 0,
        };
        ParsedJwt::parse(token).unwrap().verify(&keys, &rules, self.unix).unwrap()
    }

    pub(super) fn is_active(&mut self, token: &Value) -> bool {
        let fields = [
            ("client_id", "robot"),
            ("client_secret", "s3cret"),
            ("token", token.as_str().unwrap()),
        ];
        self.post("/introspect", &fields).1["active"] == true
    }
}

pub(super) fn options() -> Value {
    json!({ "clients": [
        { "client_id": "app" },
        { "client_id": "robot", "client_secret": "s3cret" },
    ] })
}

pub(super) fn get(target: &str) -> Request {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Request {
        method: Method::GET,
        path: path.into(),
        query: query.into(),
        headers: HeaderMap::new(),
        body: Vec::new(),
    }
}

pub(super) fn post(path: &str, fields: &[(&str, &str)]) -> Request {
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    Request {
        method: Method::POST,
        headers: [(header::CONTENT_TYPE, kind)].into_iter().collect(),
        body: encode_form(fields).into_bytes(),
        ..get(path)
    }
}

pub(super) fn post_json(path: &str, body: &Value) -> Request {
    let kind = HeaderValue::from_static("application/json");
    let headers = [(header::CONTENT_TYPE, kind)].into_iter().collect();
    Request { headers, body: body.to_string().into_bytes(), ..post(path, &[]) }
}

pub(super) fn read(response: &Response) -> (u16, Value) {
    (response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default())
}

pub(super) fn redirected(response: &Response) -> Vec<(String, String)> {
    let url = response.headers[header::LOCATION].to_str().unwrap();
    let (place, query) = url.split_once('?').unwrap();
    assert_eq!(place, BACK);
    decode_form(query)
}

pub(super) fn field(fields: &[(String, String)], name: &str) -> String {
    let found = fields.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

pub(super) fn authorization<'a>(challenge: &'a str, scope: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", BACK),
        ("state", "st&te"),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
        ("resource", MCP),
        ("scope", scope),
    ]
}

pub(super) fn redemption(code: &str) -> [(&str, &str); 6] {
    [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("redirect_uri", BACK),
        ("resource", MCP),
        ("code_verifier", VERIFIER),
        ("code", code),
    ]
}

pub(super) fn refreshing(token: &Value) -> [(&str, &str); 3] {
    let token = token.as_str().unwrap();
    [("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)]
}

#[track_caller]
pub(super) fn assert_refused((status, body): &(u16, Value), code: &str) {
    assert_eq!((*status / 100, &body["error"]), (4, &code.into()), "{body}");
}
