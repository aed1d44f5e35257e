//! A proxy, the provider behind it, and a browser.

use std::time::{Duration, Instant};

use http::HeaderMap;
use serde_json::{Value, json};

use super::super::{
    super::{
        generate_key,
        test_server::{AuthorizationServerOptions, TestServer, TestServerStep},
    },
    *,
};
use crate::{
    auth::{
        fetch::{Reach, decode_form, encode_form},
        pkce,
    },
    store::memory::Memory,
};

pub(super) const ISSUER: &str = "https://mcp.example.com/mcp";
pub(super) const PROVIDER: &str = "https://as.example.com";
pub(super) const BACK: &str = "https://app.example.com/back";
pub(super) const SECRET: &str = "a secret as long as those of providers";
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

pub(super) struct World {
    pub(super) proxy: OAuthProxy,
    pub(super) provider: TestServer,
    pub(super) unix: u64,
    /// The cookie of the browser.
    pub(super) cookie: String,
    /// The sealed sign-in in the form of the last consent page.
    pub(super) sealed: String,
    /// The secret that the client sends.
    pub(super) secret: Option<String>,
    /// The URLs that the proxy fetched.
    pub(super) fetched: Vec<String>,
    /// The client's document, or a status.
    pub(super) document: Result<Value, u16>,
    /// The answer of the userinfo endpoint, or a status.
    pub(super) user: Result<Value, u16>,
    pub(super) settings: ProviderSettings,
    /// The redirect URLs that the operator allows.
    allowed: Option<Vec<String>>,
    count: u8,
    memory: Memory,
    epoch: Instant,
    pub(super) is_store_away: bool,
    /// `true` while the store can only be read.
    pub(super) are_writes_lost: bool,
}

pub(super) fn provider() -> ProviderSettings {
    ProviderSettings {
        place: ProviderPlace::Issuer(PROVIDER.into()),
        client_id: "proxy".into(),
        client_secret: Some(SECRET.into()),
        scopes: ["openid", "profile", "email"].map(ToOwned::to_owned).to_vec(),
        params: vec![("prompt".into(), "consent".into())],
        subject: "sub".into(),
        scope_names: Vec::new(),
        may_revoke: true,
    }
}

impl World {
    pub(super) fn new(options: &Value) -> Self {
        Self::with(options, provider())
    }

    pub(super) fn with(options: &Value, settings: ProviderSettings) -> Self {
        let mut options = options.clone();
        options["clients"] = json!([{ "client_id": "proxy", "client_secret": SECRET,
            "redirect_uris": [format!("{ISSUER}/oauth/callback")] }]);
        let options = AuthorizationServerOptions::parse(options.to_string().as_bytes()).unwrap();
        let provider = TestServer::new(PROVIDER, options, &generate_key().unwrap());
        Self {
            proxy: OAuthProxy::new(settings.clone(), None, &[b"key"], b""),
            provider: provider.unwrap(),
            unix: 1_000_000,
            cookie: String::new(),
            sealed: String::new(),
            secret: None,
            fetched: Vec::new(),
            document: Err(404),
            user: Err(404),
            settings,
            allowed: None,
            count: 0,
            memory: Memory::default(),
            epoch: Instant::now(),
            is_store_away: false,
            are_writes_lost: false,
        }
    }

    /// Replaces the process by another one.
    pub(super) fn restart(&mut self, keys: &[Vec<u8>]) {
        self.count += 1;
        let (settings, allowed) = (self.settings.clone(), self.allowed.clone());
        self.proxy = OAuthProxy::new(settings, allowed, keys, &[self.count; 32]);
    }

    /// Lists the redirect URL that the operator allows, and no other.
    pub(super) fn allow(&mut self, url: &str) {
        self.allowed = Some(vec![url.to_owned()]);
        self.restart(&[b"key".to_vec()]);
    }

    pub(super) fn moment(&mut self) -> Moment {
        self.count += 1;
        Moment { now: Instant::now(), unix: self.unix, random: [self.count; 32] }
    }

    fn request(
        &self,
        method: Method,
        endpoint: OAuthEndpoint,
        query: &str,
        kind: &str,
        body: &[u8],
    ) -> ProxyRequest {
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::COOKIE, &*self.cookie), (header::CONTENT_TYPE, kind)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        let (query, body) = (query.to_owned(), body.to_vec());
        let request = Request { method, path: String::new(), query, headers, body };
        ProxyRequest { endpoint, issuer: ISSUER.into(), request, client: None }
    }

    pub(super) fn send(
        &mut self,
        method: Method,
        endpoint: OAuthEndpoint,
        query: &str,
        kind: &str,
        body: &[u8],
    ) -> Response {
        let request = self.request(method, endpoint, query, kind, body);
        self.finish(request)
    }

    fn finish(&mut self, request: ProxyRequest) -> Response {
        let moment = self.moment();
        let step = self.proxy.handle(&moment, request);
        self.carry_on(step)
    }

    /// Carries out what the proxy fetches until there is a response.
    pub(super) fn end(&mut self, fetch: FetchRequest, flow: Flow) -> Response {
        self.carry_on(ProxyStep::Fetch(fetch, flow))
    }

    /// Carries out steps until there is a response.
    pub(super) fn carry_on(&mut self, mut step: ProxyStep) -> Response {
        loop {
            step = match step {
                ProxyStep::Respond(response) => return response,
                ProxyStep::Wait(_) => panic!("it waits"),
                ProxyStep::Fetch(fetch, flow) => {
                    let answer = self.fetch(&fetch);
                    let moment = self.moment();
                    self.proxy.resume(&moment, flow, &answer)
                }
                ProxyStep::Store(operation, flow) => {
                    let reply = self.store(operation);
                    let moment = self.moment();
                    self.proxy.stored(&moment, flow, reply)
                }
            };
        }
    }

    /// Carries out an operation on the store.
    pub(super) fn store(&mut self, operation: StoreOperation) -> StoreReply {
        let is_away = matches!(operation, StoreOperation::Put { .. }) && self.are_writes_lost;
        match self.is_store_away || is_away {
            true => StoreReply::Failed("it is away".into()),
            false => self.memory.handle(self.epoch + Duration::from_secs(self.unix), operation),
        }
    }

    /// Returns the answer to a request with an access token: `None` if the store has to be there and is not.
    pub(super) fn accepts(&mut self, token: &str) -> Option<bool> {
        if let Some(operation) = self.proxy.revocation_of(ISSUER, token, self.unix) {
            let reply = self.store(operation);
            self.proxy.take_revocation(ISSUER, token, self.unix, reply).ok()?;
            assert!(self.proxy.revocation_of(ISSUER, token, self.unix).is_none());
        }
        Some(self.proxy.verify(ISSUER, token, self.unix).is_some())
    }

    fn fetch(&mut self, fetch: &FetchRequest) -> Result<FetchResponse, FetchError> {
        self.fetched.push(fetch.url.clone());
        let given = |given: &Result<Value, u16>| {
            let (status, body) = match given {
                Ok(body) => (200, body.to_string()),
                Err(status) => (*status, String::new()),
            };
            let status = StatusCode::from_u16(status).unwrap();
            let (url, headers) = (fetch.url.clone(), HeaderMap::new());
            Ok(FetchResponse { url, status, headers, body: body.into() })
        };
        let Some(path) = fetch.url.strip_prefix(PROVIDER) else {
            assert_eq!(fetch.reach, Reach::Public, "a peer has named {}", fetch.url);
            return given(&self.document);
        };
        assert_eq!(fetch.reach, Reach::Anywhere);
        if path == "/user" {
            assert!(fetch.headers.contains_key(header::AUTHORIZATION));
            return given(&self.user);
        }
        let request = Request {
            method: fetch.method.clone(),
            path: path.to_owned(),
            query: String::new(),
            headers: fetch.headers.clone(),
            body: fetch.body.clone(),
        };
        let Response { status, headers, body } = self.provide(&request);
        Ok(FetchResponse { url: fetch.url.clone(), status, headers, body })
    }

    fn provide(&mut self, request: &Request) -> Response {
        let moment = self.moment();
        match self.provider.handle(&moment, request) {
            TestServerStep::Respond(response) => response,
            TestServerStep::Fetch(fetch) => panic!("the provider fetches {}", fetch.url),
        }
    }

    pub(super) fn get(&mut self, endpoint: OAuthEndpoint, query: &str) -> Response {
        self.send(Method::GET, endpoint, query, "", b"")
    }

    pub(super) fn read(&mut self, endpoint: OAuthEndpoint, query: &str) -> (u16, Value) {
        read(&self.get(endpoint, query))
    }

    pub(super) fn begin(&mut self, endpoint: OAuthEndpoint, query: &str) -> ProxyStep {
        let request = self.request(Method::GET, endpoint, query, "", b"");
        let moment = self.moment();
        self.proxy.handle(&moment, request)
    }

    pub(super) fn begin_post(
        &mut self,
        endpoint: OAuthEndpoint,
        fields: &[(&str, String)],
    ) -> ProxyStep {
        let request = self.form(endpoint, fields);
        let moment = self.moment();
        self.proxy.handle(&moment, request)
    }

    fn form(&self, endpoint: OAuthEndpoint, fields: &[(&str, String)]) -> ProxyRequest {
        let mut fields: Vec<_> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
        if let Some(secret) = &self.secret {
            fields.push(("client_secret", secret));
        }
        let kind = "application/x-www-form-urlencoded";
        self.request(Method::POST, endpoint, "", kind, encode_form(&fields).as_bytes())
    }

    pub(super) fn post(
        &mut self,
        endpoint: OAuthEndpoint,
        fields: &[(&str, String)],
    ) -> (u16, Value) {
        let request = self.form(endpoint, fields);
        read(&self.finish(request))
    }

    pub(super) fn register_at(&mut self, endpoint: OAuthEndpoint, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        read(&self.send(Method::POST, endpoint, "", "application/json", body.as_bytes()))
    }

    pub(super) fn register_with(&mut self, metadata: &Value) -> (u16, Value) {
        self.register_at(OAuthEndpoint::Register, metadata)
    }

    /// Registers a client without a secret. Returns its id.
    pub(super) fn register(&mut self) -> String {
        let metadata = json!({ "redirect_uris": [BACK], "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"], "client_name": "Shelf" });
        let (status, client) = self.register_with(&metadata);
        assert_eq!(status, 201, "{client}");
        client["client_id"].as_str().unwrap().to_owned()
    }

    /// Opens the page of the proxy, and keeps its cookie.
    pub(super) fn authorize(&mut self, id: &str, scope: &str) -> Response {
        self.authorize_with(id, &[("scope", scope)])
    }

    pub(super) fn authorize_with(&mut self, id: &str, changes: &[(&str, &str)]) -> Response {
        let challenge = pkce::challenge(VERIFIER);
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", id),
            ("redirect_uri", BACK),
            ("state", "st&te"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", ISSUER),
        ];
        for (name, value) in changes {
            fields.retain(|(key, _)| key != name);
            fields.push((name, value));
        }
        let page = self.get(OAuthEndpoint::Authorize, &encode_form(&fields));
        self.keep_cookie(&page);
        page
    }

    fn keep_cookie(&mut self, response: &Response) {
        if let Some(cookie) = response.headers.get(header::SET_COOKIE) {
            cookie.to_str().unwrap().split(';').next().unwrap().clone_into(&mut self.cookie);
        }
    }

    /// Sends the user's decision with this cookie and origin.
    pub(super) fn decide(
        &mut self,
        fields: &[(&str, &str)],
        cookie: &str,
        origin: Option<&str>,
    ) -> Response {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut request = self.form(OAuthEndpoint::Consent, &fields);
        let headers = &mut request.request.headers;
        headers.remove(header::COOKIE);
        if !cookie.is_empty() {
            headers.insert(header::COOKIE, cookie.parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        self.finish(request)
    }

    /// Goes through the consent and the provider. Returns the URL at which the browser comes back to the proxy.
    pub(super) fn go_to_callback(&mut self, id: &str, scope: &str) -> String {
        let page = self.authorize(id, scope);
        self.sealed = page_field(&page);
        let sealed = self.sealed.clone();
        let fields = [("request", &*sealed), ("decision", "allow")];
        let cookie = self.cookie.clone();
        let sent = self.decide(&fields, &cookie, Some("https://mcp.example.com"));
        assert_eq!(sent.status, 303);
        self.keep_cookie(&sent);
        let url = location(&sent);
        let (_, query) = url.split_once('?').unwrap();
        let request = Request {
            method: Method::GET,
            path: "/authorize".into(),
            query: query.to_owned(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        };
        let back = location(&self.provide(&request));
        assert!(back.starts_with(&format!("{ISSUER}/oauth/callback?")), "{back}");
        back
    }

    /// Signs in. Returns the code for the client.
    pub(super) fn sign_in(&mut self, id: &str) -> String {
        let back = self.go_to_callback(id, "");
        let ended = self.get(OAuthEndpoint::Callback, back.split_once('?').unwrap().1);
        assert!(location(&ended).starts_with(BACK), "{}", location(&ended));
        assert_eq!(field(&ended, "iss"), ISSUER);
        field(&ended, "code")
    }

    pub(super) fn redeem(&mut self, id: &str, code: &str) -> (u16, Value) {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", id),
            ("code", code),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
        ];
        self.post(OAuthEndpoint::Token, &fields.map(|(name, value)| (name, value.to_owned())))
    }

    pub(super) fn refresh(&mut self, id: &str, token: &str) -> (u16, Value) {
        let fields = [("grant_type", "refresh_token"), ("client_id", id), ("refresh_token", token)];
        self.post(OAuthEndpoint::Token, &fields.map(|(name, value)| (name, value.to_owned())))
    }
}

fn read(response: &Response) -> (u16, Value) {
    (response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default())
}

fn location(response: &Response) -> String {
    let location = response.headers.get(header::LOCATION);
    location.map_or("", |value| value.to_str().unwrap()).to_owned()
}

/// Returns a field of the URL in the `Location` header; an empty text if the URL has no such field.
pub(super) fn field(response: &Response, name: &str) -> String {
    let url = location(response);
    let fields = decode_form(url.split_once('?').map_or("", |(_, query)| query));
    fields.into_iter().find(|(key, _)| key == name).map(|(_, value)| value).unwrap_or_default()
}

/// Returns the request that the page sends with the user's decision.
pub(super) fn page_field(page: &Response) -> String {
    let text = String::from_utf8(page.body.clone()).unwrap();
    let (_, rest) = text.split_once("name=request value=\"").unwrap_or_else(|| panic!("{text}"));
    rest.split('"').next().unwrap().to_owned()
}
