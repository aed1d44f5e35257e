use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header};

use super::{
    super::{generate_key, key_pair},
    *,
};
use crate::auth::{
    fetch::{decode_form, encode_form},
    jwt_signing::{SigningKey, client_assertion},
    pkce,
    registered_names::{CLIENT_ASSERTION, ID_JAG, ID_TOKEN, JWT_BEARER, TOKEN_EXCHANGE},
    server::{
        jwk::{Algorithm, Jwks},
        jwt::{JwtRules, ParsedJwt, VerifiedToken},
    },
};

const ISSUER: &str = "http://127.0.0.1:9000";
const MCP: &str = "https://mcp.example.com/mcp";
const BACK: &str = "http://127.0.0.1:4711/callback";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A server, its clock and its host's random bytes.
struct World {
    server: TestServer,
    start: Instant,
    unix: u64,
    steps: u64,
}

impl World {
    fn new(options: &Value) -> Self {
        Self::at(ISSUER, options)
    }

    fn at(issuer: &str, options: &Value) -> Self {
        let key = generate_key().unwrap();
        let server = TestServer::new(issuer, options.to_string().as_bytes(), &key).unwrap();
        Self { server, start: Instant::now(), unix: 1_000_000, steps: 0 }
    }

    fn moment(&mut self) -> Moment {
        self.steps += 1;
        let mut random = [7; 32];
        random[..8].copy_from_slice(&self.steps.to_le_bytes());
        let now = self.start + Duration::from_secs(self.unix - 1_000_000);
        Moment { now, unix: self.unix, random }
    }

    fn step(&mut self, request: &Request) -> Step {
        let moment = self.moment();
        self.server.handle(&moment, request)
    }

    fn send(&mut self, request: &Request) -> Response {
        match self.step(request) {
            Step::Respond(response) => response,
            Step::Fetch(fetch) => panic!("{fetch:?}"),
        }
    }

    fn get(&mut self, path: &str) -> (u16, Value) {
        read(&self.send(&get(path)))
    }

    fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
        read(&self.send(&post(path, fields)))
    }

    fn token(&mut self, fields: &[(&str, &str)]) -> (u16, Value) {
        self.post("/token", fields)
    }

    /// Returns the fields of the redirect with which an authorization request ends.
    fn authorize(&mut self, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let response = self.send(&get(&format!("/authorize?{}", encode_form(fields))));
        redirected(&response)
    }

    fn code(&mut self, scope: &str) -> String {
        let challenge = pkce::challenge(VERIFIER);
        let fields = authorization(&challenge, scope);
        field(&self.authorize(&fields), "code")
    }

    fn redeem(&mut self, code: &str) -> (u16, Value) {
        self.token(&redemption(code))
    }

    /// Verifies a token as a server for [`MCP`] does.
    fn verify(&mut self, token: &str) -> VerifiedToken {
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

    fn is_active(&mut self, token: &Value) -> bool {
        let fields = [
            ("client_id", "robot"),
            ("client_secret", "s3cret"),
            ("token", token.as_str().unwrap()),
        ];
        self.post("/introspect", &fields).1["active"] == true
    }
}

fn options() -> Value {
    json!({ "clients": [
        { "client_id": "app" },
        { "client_id": "robot", "client_secret": "s3cret" },
    ] })
}

fn get(target: &str) -> Request {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Request {
        method: Method::GET,
        path: path.into(),
        query: query.into(),
        headers: HeaderMap::new(),
        body: Vec::new(),
    }
}

fn post(path: &str, fields: &[(&str, &str)]) -> Request {
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    Request {
        method: Method::POST,
        headers: [(header::CONTENT_TYPE, kind)].into_iter().collect(),
        body: encode_form(fields).into_bytes(),
        ..get(path)
    }
}

fn post_json(path: &str, body: &Value) -> Request {
    let kind = HeaderValue::from_static("application/json");
    let headers = [(header::CONTENT_TYPE, kind)].into_iter().collect();
    Request { headers, body: body.to_string().into_bytes(), ..post(path, &[]) }
}

fn read(response: &Response) -> (u16, Value) {
    (response.status.as_u16(), serde_json::from_slice(&response.body).unwrap_or_default())
}

fn redirected(response: &Response) -> Vec<(String, String)> {
    let url = response.headers[header::LOCATION].to_str().unwrap();
    let (place, query) = url.split_once('?').unwrap();
    assert_eq!(place, BACK);
    decode_form(query)
}

fn field(fields: &[(String, String)], name: &str) -> String {
    let found = fields.iter().find(|(it, _)| it == name);
    found.map(|(_, it)| it.clone()).unwrap_or_default()
}

fn authorization<'a>(challenge: &'a str, scope: &'a str) -> Vec<(&'a str, &'a str)> {
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

fn redemption(code: &str) -> [(&str, &str); 6] {
    [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("redirect_uri", BACK),
        ("resource", MCP),
        ("code_verifier", VERIFIER),
        ("code", code),
    ]
}

fn refreshing(token: &Value) -> [(&str, &str); 3] {
    let token = token.as_str().unwrap();
    [("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)]
}

#[track_caller]
fn assert_refused((status, body): &(u16, Value), code: &str) {
    assert_eq!((*status / 100, &body["error"]), (4, &code.into()), "{body}");
}

#[test]
fn the_metadata_name_the_endpoints_at_both_places() {
    let mut world = World::new(&json!({ "scopes": ["books"], "registration": false }));
    let (status, document) = world.get("/.well-known/oauth-authorization-server");
    assert_eq!(status, 200);
    assert_eq!(document, world.get("/.well-known/openid-configuration").1);
    assert_eq!(document["issuer"], ISSUER);
    assert_eq!(document["token_endpoint"], format!("{ISSUER}/token"));
    assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(document["scopes_supported"], json!(["books"]));
    assert_eq!(document["client_id_metadata_document_supported"], false);
    assert_eq!(document["registration_endpoint"], Value::Null);
    assert_eq!(world.get("/register").0, 405);
    assert_eq!(world.send(&post_json("/register", &json!({}))).status, 405);
    assert_eq!((world.get("/other").0, world.get("/token").0), (404, 405));
}

#[test]
fn a_client_registers_itself() {
    let mut world = World::new(&json!({}));
    let asked = json!({
        "client_name": "shelf", "redirect_uris": [BACK], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"], "other": 1,
    });
    let (status, client) = read(&world.send(&post_json("/register", &asked)));
    assert_eq!((status, &client["client_secret"]), (201, &Value::Null));
    assert_eq!(client["redirect_uris"], json!([BACK]));
    let id = client["client_id"].as_str().unwrap().to_owned();
    let challenge = pkce::challenge(VERIFIER);
    let mut fields = authorization(&challenge, "");
    fields[1] = ("client_id", &id);
    let code = field(&world.authorize(&fields), "code");
    let mut fields = redemption(&code);
    fields[1] = ("client_id", &id);
    assert_eq!(world.token(&fields).0, 200);

    let confidential = json!({ "redirect_uris": [BACK] });
    let (_, client) = read(&world.send(&post_json("/register", &confidential)));
    assert_eq!(client["token_endpoint_auth_method"], "client_secret_basic");
    assert_eq!(client["client_secret_expires_at"], 0);
    assert!(client["client_secret"].as_str().is_some_and(|it| it.len() >= 32));
    for (body, code) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["http://evil.example/"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": 7 }), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
    ] {
        assert_refused(&read(&world.send(&post_json("/register", &body))), code);
    }
}

#[test]
fn a_user_approves_and_the_code_is_exchanged_once() {
    let mut world = World::new(&options());
    let challenge = pkce::challenge(VERIFIER);
    let answer = world.authorize(&authorization(&challenge, "books openid"));
    assert_eq!((field(&answer, "state"), field(&answer, "iss")), ("st&te".into(), ISSUER.into()));
    let code = field(&answer, "code");
    let response = world.send(&post("/token", &redemption(&code)));
    assert_eq!(response.headers[header::CACHE_CONTROL], "no-store");
    let (status, tokens) = read(&response);
    assert_eq!((status, &tokens["token_type"]), (200, &"Bearer".into()), "{tokens}");
    assert_eq!((&tokens["expires_in"], &tokens["scope"]), (&3_600.into(), &"books openid".into()));
    let verified = world.verify(tokens["access_token"].as_str().unwrap());
    assert_eq!(verified.principal.subject, "user");
    assert_eq!(verified.principal.client_id.as_deref(), Some("app"));
    assert!(verified.principal.scopes.contains("books"));
    assert!(tokens["id_token"].is_string());

    assert!(world.is_active(&tokens["access_token"]));
    assert_refused(&world.redeem(&code), "invalid_grant");
    assert!(!world.is_active(&tokens["access_token"]), "a stolen code ends its tokens");
    assert_refused(&world.token(&refreshing(&tokens["refresh_token"])), "invalid_grant");
}

#[test]
fn a_code_is_for_its_client_redirect_resource_and_verifier_and_for_a_minute() {
    let mut options = options();
    options["resources"] = json!([MCP]);
    let mut world = World::new(&options);
    let wrong = [
        (1, ("client_id", "robot"), "invalid_client"),
        (2, ("redirect_uri", "http://127.0.0.1:1/callback"), "invalid_grant"),
        (3, ("resource", "https://evil.example"), "invalid_target"),
        (4, ("code_verifier", "wrong"), "invalid_grant"),
        (4, ("code_verifier", ""), "invalid_request"),
        (5, ("code", "wrong"), "invalid_grant"),
    ];
    for (place, pair, error) in wrong {
        let code = world.code("");
        let mut fields = redemption(&code);
        fields[place] = pair;
        assert_refused(&world.token(&fields), error);
    }
    let code = world.code("");
    world.unix += 61;
    assert_refused(&world.redeem(&code), "invalid_grant");
}

#[test]
fn a_wrong_authorization_request_goes_back_to_its_client_only() {
    let mut world = World::new(&json!({
        "clients": [{ "client_id": "app" }], "scopes": ["books"], "resources": [MCP],
    }));
    let challenge = pkce::challenge(VERIFIER);
    let right = authorization(&challenge, "books");
    assert!(!field(&world.authorize(&right), "code").is_empty());
    for (place, pair, error) in [
        (0, ("response_type", "token"), "unsupported_response_type"),
        (4, ("code_challenge", ""), "invalid_request"),
        (5, ("code_challenge_method", "plain"), "invalid_request"),
        (6, ("resource", "https://other.example"), "invalid_target"),
        (6, ("resource", "x"), "invalid_target"),
        (7, ("scope", "films"), "invalid_scope"),
    ] {
        let mut fields = right.clone();
        fields[place] = pair;
        let answer = world.authorize(&fields);
        assert_eq!((field(&answer, "error"), field(&answer, "iss")), (error.into(), ISSUER.into()));
        assert_eq!(
            (field(&answer, "state"), field(&answer, "code")),
            ("st&te".into(), String::new())
        );
    }
    for (place, pair) in [
        (1, ("client_id", "unknown")),
        (2, ("redirect_uri", "https://evil.example/")),
        (2, ("redirect_uri", "")),
        (3, ("redirect_uri", BACK)),
    ] {
        let mut fields = right.clone();
        fields[place] = pair;
        let response = world.send(&get(&format!("/authorize?{}", encode_form(&fields))));
        assert_eq!(response.status, 400);
        assert!(!response.headers.contains_key(header::LOCATION));
    }
}

#[test]
fn a_user_may_decline_and_decide_on_a_page() {
    let challenge = pkce::challenge(VERIFIER);
    let fields = authorization(&challenge, "<b>");
    let mut world = World::new(&json!({ "clients": [{ "client_id": "app" }], "consent": "deny" }));
    assert_eq!(field(&world.authorize(&fields), "error"), "access_denied");

    let client = json!({ "client_id": "app", "client_name": "<script>" });
    let mut world = World::new(&json!({ "clients": [client], "consent": "page" }));
    let page = world.send(&get(&format!("/authorize?{}", encode_form(&fields))));
    let text = String::from_utf8(page.body).unwrap();
    assert!(text.contains("&lt;script&gt;") && !text.contains("<b>"), "{text}");
    let id = text.split("name=id value=\"").nth(1).unwrap().split('"').next().unwrap();
    let decide = |decision| post("/authorize/decision", &[("id", id), ("decision", decision)]);
    let answer = redirected(&world.send(&decide("allow")));
    assert_eq!(world.redeem(&field(&answer, "code")).0, 200);
    assert_refused(&read(&world.send(&decide("allow"))), "invalid_request");
}

#[test]
fn a_refresh_token_is_used_once_and_reuse_ends_all() {
    let mut world = World::new(&options());
    let code = world.code("a b");
    let (_, first) = world.redeem(&code);
    let mut fields = refreshing(&first["refresh_token"]).to_vec();
    fields.push(("scope", "a c"));
    assert_refused(&world.token(&fields), "invalid_scope");
    fields[3] = ("resource", "https://other.example");
    assert_refused(&world.token(&fields), "invalid_target");
    fields.truncate(3);
    fields[1] = ("client_id", "robot");
    fields.push(("client_secret", "s3cret"));
    assert_refused(&world.token(&fields), "invalid_grant");

    let (status, second) = world.token(&refreshing(&first["refresh_token"]));
    assert_eq!((status, &second["scope"]), (200, &"a b".into()), "{second}");
    world.verify(second["access_token"].as_str().unwrap());
    let (_, third) = world.token(&refreshing(&second["refresh_token"]));
    assert!(world.is_active(&third["access_token"]));
    assert_refused(&world.token(&refreshing(&first["refresh_token"])), "invalid_grant");
    assert_refused(&world.token(&refreshing(&third["refresh_token"])), "invalid_grant");
    assert!(!world.is_active(&third["access_token"]));
}

#[test]
fn clients_authenticate_by_secret_or_key() {
    let pkcs8 = generate_key().unwrap();
    let (pem, public) = key_pair(&pkcs8).unwrap();
    let key = SigningKey::from_pem(&pem, "ES256").unwrap();
    let clients = json!([
        { "client_id": "robot", "client_secret": "s3c=ret" },
        { "client_id": "signer", "jwks": { "keys": [public] }, "token_endpoint_auth_method": "private_key_jwt" },
        { "client_id": "app" },
    ]);
    let mut world = World::new(&json!({ "clients": clients }));
    let grant = [("grant_type", "client_credentials"), ("resource", MCP), ("scope", "books")];
    let with = |more: &[(&'static str, &str)]| {
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let all = grant.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        all.chain(more).collect::<Vec<_>>()
    };
    let send = |world: &mut World, fields: Vec<(String, String)>, basic: Option<&str>| {
        let fields: Vec<_> = fields.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let mut request = post("/token", &fields);
        if let Some(pair) = basic {
            let value = format!("Basic {}", STANDARD.encode(pair));
            request.headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        }
        read(&world.send(&request))
    };
    for basic in ["robot:s3c%3Dret", "robot:s3c=ret"] {
        let (status, body) = send(&mut world, with(&[]), Some(basic));
        assert_eq!((status, &body["refresh_token"]), (200, &Value::Null), "{body}");
        let token = world.verify(body["access_token"].as_str().unwrap());
        assert_eq!(token.principal.subject, "robot");
    }
    let posted = [("client_id", "robot"), ("client_secret", "s3c=ret")];
    assert_eq!(send(&mut world, with(&posted), None).0, 200);
    let assertion = |audience: &str, id: &str, unix| {
        client_assertion(&key, "signer", audience, unix, id).unwrap()
    };
    let signed =
        |it: &str| with(&[("client_assertion_type", CLIENT_ASSERTION), ("client_assertion", it)]);
    let good = assertion(ISSUER, "one", world.unix);
    assert_eq!(send(&mut world, signed(&good), None).0, 200);
    for (fields, basic, error) in [
        (with(&[]), None, "invalid_client"),
        (with(&[]), Some("robot:wrong"), "invalid_client"),
        (with(&[("client_id", "robot")]), None, "invalid_client"),
        (with(&[("client_id", "nobody")]), None, "invalid_client"),
        (with(&posted), Some("robot:s3c=ret"), "invalid_request"),
        (with(&[("client_id", "app")]), None, "unauthorized_client"),
        (with(&[("client_id", "signer"), ("client_secret", "x")]), None, "invalid_client"),
        (signed(&good), None, "invalid_client"),
        (signed(&assertion("https://other.example", "two", world.unix)), None, "invalid_client"),
        (signed(&assertion(ISSUER, "three", world.unix - 1_000)), None, "invalid_client"),
        (signed(&format!("{good}A")), None, "invalid_client"),
        (signed("x"), None, "invalid_client"),
    ] {
        assert_refused(&send(&mut world, fields, basic), error);
    }
}

#[test]
fn a_client_metadata_document_is_fetched_if_the_test_lists_it() {
    let (given, listed) = ("https://a.example/c.json", "https://b.example/c.json");
    let document = |id: &str| json!({ "client_id": id, "redirect_uris": [BACK] });
    let options = json!({ "clientDocuments": { given: document(given), listed: null } });
    let mut world = World::new(&options);
    let challenge = pkce::challenge(VERIFIER);
    let request = |id: &str| {
        let mut fields = authorization(&challenge, "");
        fields[1] = ("client_id", id);
        get(&format!("/authorize?{}", encode_form(&fields)))
    };
    assert_eq!(world.send(&request(given)).status, 302);
    assert_eq!(world.send(&request("https://c.example/c.json")).status, 400);
    let answer = |body: &Value| {
        Ok(FetchResponse {
            url: listed.into(),
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: body.to_string().into_bytes(),
        })
    };
    for (answer, status) in [
        (Err(FetchError::TooLarge(1)), 400),
        (answer(&document(given)), 400),
        (answer(&document(listed)), 302),
    ] {
        let request = request(listed);
        let Step::Fetch(fetch) = world.step(&request) else { panic!() };
        assert_eq!(fetch.url, listed);
        let moment = world.moment();
        match world.server.resume(&moment, &request, listed, &answer) {
            Step::Respond(response) => assert_eq!(response.status, status),
            Step::Fetch(fetch) => panic!("{fetch:?}"),
        }
    }
    assert_eq!(world.send(&request(listed)).status, 302, "it is kept");
}

#[test]
fn an_identity_provider_grants_access_at_another_server() {
    let idp_url = "http://127.0.0.1:9001";
    let client = json!({ "client_id": "app", "client_secret": "s3cret" });
    let mut idp = World::at(idp_url, &json!({ "clients": [client] }));
    let mut world = World::new(&json!({ "clients": [client], "trustedIssuers": [idp_url] }));
    let at = idp.moment();
    let identity = idp.server.identity_token(&at, Some("ada"), "app", 60).unwrap();
    let exchange = |identity: &str| {
        post(
            "/token",
            &[
                ("grant_type", TOKEN_EXCHANGE),
                ("client_id", "app"),
                ("client_secret", "s3cret"),
                ("requested_token_type", ID_JAG),
                ("audience", ISSUER),
                ("resource", MCP),
                ("scope", "books"),
                ("subject_token", identity),
                ("subject_token_type", ID_TOKEN),
            ],
        )
    };
    let other = idp.server.identity_token(&at, Some("ada"), "other", 60).unwrap();
    let expired = idp.server.identity_token(&at, Some("ada"), "app", -600).unwrap();
    let access = idp.server.token(&at, br#"{"clientId":"app","audience":"app"}"#).unwrap();
    for wrong in [other.as_str(), &expired, &access, "x"] {
        assert_refused(&read(&idp.send(&exchange(wrong))), "invalid_grant");
    }
    let (status, granted) = read(&idp.send(&exchange(&identity)));
    assert_eq!((status, &granted["issued_token_type"]), (200, &ID_JAG.into()), "{granted}");
    assert_eq!(granted["token_type"], "N_A");

    let request = |assertion: &str, scope: &str| {
        post(
            "/token",
            &[
                ("grant_type", JWT_BEARER),
                ("client_id", "app"),
                ("client_secret", "s3cret"),
                ("assertion", assertion),
                ("scope", scope),
            ],
        )
    };
    let grant = granted["access_token"].as_str().unwrap().to_owned();
    let mut ask = |world: &mut World, request: &Request| {
        let mut step = world.step(request);
        let mut fetched = 0;
        loop {
            match step {
                Step::Respond(response) => return (read(&response), fetched),
                Step::Fetch(fetch) => {
                    fetched += 1;
                    let path = fetch.url.strip_prefix(idp_url).unwrap();
                    let Response { status, headers, body } = idp.send(&get(path));
                    let answer = FetchResponse { url: fetch.url.clone(), status, headers, body };
                    let moment = world.moment();
                    step = world.server.resume(&moment, request, &fetch.url, &Ok(answer));
                }
            }
        }
    };
    let (refused, fetched) = ask(&mut world, &request(&grant, "books films"));
    assert_refused(&refused, "invalid_scope");
    assert_eq!(fetched, 2);
    let ((status, body), fetched) = ask(&mut world, &request(&grant, "books"));
    assert_eq!((status, fetched), (200, 0), "{body}");
    let verified = world.verify(body["access_token"].as_str().unwrap());
    assert_eq!(verified.principal.subject, "ada");
    assert_refused(&ask(&mut world, &request(&grant, "books")).0, "invalid_grant");
    assert_refused(&ask(&mut world, &request(&identity, "")).0, "invalid_grant");
}

#[test]
fn the_token_of_a_platform_is_exchanged_and_its_new_key_is_fetched() {
    let platform_url = "http://127.0.0.1:9002";
    let mut platform = World::at(platform_url, &json!({}));
    let mut world = World::new(&json!({ "trustedIssuers": [platform_url] }));
    let mut fetched = 0;
    for round in 0..2 {
        if round == 1 {
            platform.server.rotate_keys(&generate_key().unwrap(), false).unwrap();
        }
        let at = platform.moment();
        let order = format!(r#"{{"clientId":"w","subject":"workload","audience":"{ISSUER}"}}"#);
        let token = platform.server.token(&at, order.as_bytes()).unwrap();
        let fields = [("grant_type", JWT_BEARER), ("assertion", token.as_str()), ("resource", MCP)];
        let request = post("/token", &fields);
        let mut step = world.step(&request);
        let response = loop {
            match step {
                Step::Respond(response) => break response,
                Step::Fetch(fetch) => {
                    fetched += 1;
                    let path = fetch.url.strip_prefix(platform_url).unwrap();
                    let Response { status, headers, body } = platform.send(&get(path));
                    let answer = FetchResponse { url: fetch.url.clone(), status, headers, body };
                    let moment = world.moment();
                    step = world.server.resume(&moment, &request, &fetch.url, &Ok(answer));
                }
            }
        };
        let (status, body) = read(&response);
        assert_eq!(status, 200, "{body}");
        let token = world.verify(body["access_token"].as_str().unwrap());
        assert_eq!(token.principal.subject, "workload");
    }
    assert_eq!(fetched, 3, "the metadata and two key sets");
    let at = platform.moment();
    let token = platform.server.token(&at, br#"{"clientId":"w"}"#).unwrap();
    assert_refused(
        &world.token(&[("grant_type", JWT_BEARER), ("assertion", &token)]),
        "invalid_grant",
    );
    let mut stranger = World::at("http://127.0.0.1:9003", &json!({}));
    let at = stranger.moment();
    let order = format!(r#"{{"clientId":"w","audience":"{ISSUER}"}}"#);
    let token = stranger.server.token(&at, order.as_bytes()).unwrap();
    assert_refused(
        &world.token(&[("grant_type", JWT_BEARER), ("assertion", &token)]),
        "invalid_grant",
    );
}

#[test]
fn tokens_are_bound_to_the_key_of_a_proof() {
    let key = SigningKey::from_pkcs8(&generate_key().unwrap(), "ES256").unwrap();
    let (x, y) = key.point().unwrap();
    let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
    let thumbprint = Jwk::read(&jwk).unwrap().thumbprint();
    let url = format!("{ISSUER}/token");
    let proof = |unix: u64, id: &str, url: &str, nonce: &str| {
        let claims = json!({ "jti": id, "htm": "POST", "htu": url, "iat": unix, "nonce": nonce });
        key.sign(&json!({ "typ": "dpop+jwt", "jwk": jwk }), &claims).unwrap()
    };
    let send = |world: &mut World, proof: &str| {
        let code = world.code("");
        let mut request = post("/token", &redemption(&code));
        request.headers.insert("dpop", proof.parse().unwrap());
        world.send(&request)
    };
    let mut world = World::new(&options());
    let good = proof(world.unix, "one", &url, "");
    let (status, tokens) = read(&send(&mut world, &good));
    assert_eq!((status, &tokens["token_type"]), (200, &"DPoP".into()), "{tokens}");
    let verified = world.verify(tokens["access_token"].as_str().unwrap());
    assert_eq!(verified.key, Some(thumbprint));
    assert_refused(&world.token(&refreshing(&tokens["refresh_token"])), "invalid_dpop_proof");
    for wrong in [
        good,
        proof(world.unix, "two", "https://evil.example/token", ""),
        proof(world.unix - 1_000, "three", &url, ""),
        "x".into(),
    ] {
        assert_refused(&read(&send(&mut world, &wrong)), "invalid_dpop_proof");
    }

    let nonce = json!({ "clients": [{ "client_id": "app" }], "dpop": "nonce" });
    let mut world = World::new(&nonce);
    let code = world.code("");
    assert_refused(&world.redeem(&code), "invalid_dpop_proof");
    let unix = world.unix;
    for (id, wrong) in [("four", ""), ("five", "wrong")] {
        let response = send(&mut world, &proof(unix, id, &url, wrong));
        assert_refused(&read(&response), "use_dpop_nonce");
    }
    let response = send(&mut world, &proof(unix, "six", &url, ""));
    let nonce = response.headers["dpop-nonce"].to_str().unwrap().to_owned();
    assert_eq!(send(&mut world, &proof(unix, "seven", &url, &nonce)).status, 200);
    world.unix = unix + 601;
    assert_eq!(send(&mut world, &proof(unix + 601, "eight", &url, &nonce)).status, 400);
}

#[test]
fn opaque_tokens_are_introspected_and_revoked() {
    let mut options = options();
    options["tokenFormat"] = "opaque".into();
    let mut world = World::new(&options);
    let code = world.code("books");
    let (_, tokens) = world.redeem(&code);
    let access = tokens["access_token"].as_str().unwrap().to_owned();
    assert!(!access.contains('.'));
    let secret = [("client_id", "robot"), ("client_secret", "s3cret")];
    let mut fields = secret.to_vec();
    fields.push(("token", &access));
    let (status, answer) = world.post("/introspect", &fields);
    assert_eq!((status, &answer["active"], &answer["aud"]), (200, &true.into(), &MCP.into()));
    assert_eq!((&answer["sub"], &answer["scope"]), (&"user".into(), &"books".into()));
    let anonymous = [("client_id", "app"), ("token", access.as_str())];
    assert_refused(&world.post("/introspect", &anonymous), "invalid_client");

    let revoke = |token: &str, client: &[(&'static str, &'static str)]| {
        let mut fields = client.to_vec();
        let token = token.to_owned();
        fields.push(("token", token.leak()));
        post("/revoke", &fields)
    };
    assert_eq!(world.send(&revoke(&access, &secret)).status, 200);
    assert!(world.is_active(&tokens["access_token"]), "it is of another client");
    let refresh = tokens["refresh_token"].as_str().unwrap();
    assert_eq!(world.send(&revoke(refresh, &[("client_id", "app")])).status, 200);
    assert!(!world.is_active(&tokens["access_token"]));
    assert_eq!(world.send(&revoke("unknown", &[("client_id", "app")])).status, 200);

    let code = world.code("");
    let (_, tokens) = world.redeem(&code);
    world.server.revoke_all();
    assert!(!world.is_active(&tokens["access_token"]));
    assert_refused(&world.token(&refreshing(&tokens["refresh_token"])), "invalid_grant");
}

#[test]
fn keys_are_rotated() {
    let mut world = World::new(&options());
    let at = world.moment();
    let order = format!(
        r#"{{"clientId":"app","subject":"ada","scopes":["a b"],"audience":"{MCP}","claims":{{"groups":["x"]}}}}"#
    );
    let token = world.server.token(&at, order.as_bytes()).unwrap();
    assert_eq!(world.verify(&token).principal.claims["groups"], json!(["x"]));
    for count in 2..=7 {
        world.server.rotate_keys(&generate_key().unwrap(), true).unwrap();
        let keys = world.get("/jwks").1;
        assert_eq!(keys["keys"].as_array().unwrap().len(), count.min(5));
        if count <= 5 {
            world.verify(&token);
        }
    }
    world.server.rotate_keys(&generate_key().unwrap(), false).unwrap();
    assert_eq!(world.get("/jwks").1["keys"].as_array().unwrap().len(), 1);
}

#[test]
fn faults_are_on_demand() {
    let mut world = World::new(&options());
    let mut set = |faults: &Value| {
        world.server.set_faults(faults.to_string().as_bytes()).unwrap();
        let metadata = world.send(&get("/.well-known/oauth-authorization-server"));
        let (challenge, size) = (pkce::challenge(VERIFIER), metadata.body.len());
        let fields = authorization(&challenge, "");
        let answer = world.authorize(&fields);
        let (_, tokens) = world.redeem(&field(&answer, "code"));
        let is_active =
            tokens["access_token"].is_string() && world.is_active(&tokens["access_token"]);
        let registered = world.send(&post_json("/register", &json!({ "redirect_uris": [BACK] })));
        let wants_key = world.server.wants_key();
        (read(&metadata).1, size, field(&answer, "iss"), is_active, registered.status, wants_key)
    };
    let (document, size, issuer, is_active, registered, wants_key) = set(&json!({}));
    assert!(size < 4_096 && is_active && registered == 201 && !wants_key);
    assert_eq!((document["issuer"].as_str(), issuer.as_str()), (Some(ISSUER), ISSUER));
    assert_eq!(set(&json!({ "metadataIssuer": "x" })).0["issuer"], "x");
    assert_eq!(set(&json!({ "responseIssuer": "x" })).2, "x");
    let document = set(&json!({ "noPkce": true })).0;
    assert_eq!(document["code_challenge_methods_supported"], Value::Null);
    assert!(set(&json!({ "metadataBytes": 1_000_000 })).1 >= 1_000_000);
    assert!(!set(&json!({ "expiredTokens": true })).3);
    assert_eq!(set(&json!({ "refuseRegistration": true })).4, 400);
    assert!(set(&json!({ "rotateKeys": true })).5);
    let faults = json!({ "errors": { "metadata": 1, "jwks": 2 }, "delay": 1.5 });
    world.server.set_faults(faults.to_string().as_bytes()).unwrap();
    assert_eq!(world.server.delay(), Duration::from_millis(1_500));
    let mut status = |path| world.get(path).0;
    assert_eq!([status("/jwks"), status("/jwks"), status("/jwks")], [500, 500, 200]);
    let path = "/.well-known/openid-configuration";
    assert_eq!([status(path), status(path)], [500, 200]);
}

#[test]
fn requests_are_recorded_without_secrets() {
    let mut world = World::new(&options());
    let code = world.code("books");
    let (_, tokens) = world.redeem(&code);
    world.token(&refreshing(&tokens["refresh_token"]));
    world.is_active(&tokens["access_token"]);
    let text = world.server.requests().to_string();
    for secret in [VERIFIER, &code, "s3cret", tokens["refresh_token"].as_str().unwrap()] {
        assert!(!text.contains(secret), "{text}");
    }
    let requests = world.server.requests();
    assert_eq!(requests[0]["form"]["scope"], "books");
    assert_eq!((&requests[1]["path"], &requests[1]["status"]), (&"/token".into(), &200.into()));
    assert_eq!(requests[1]["form"]["code"], "…");
    for _ in 0..10_001 {
        world.get("/jwks");
    }
    assert_eq!(world.server.requests().as_array().unwrap().len(), 10_000);
}

#[test]
fn options_that_can_not_work_are_refused() {
    let new = |options: Value| {
        let key = generate_key().unwrap();
        TestServer::new(ISSUER, options.to_string().as_bytes(), &key).unwrap_err().to_string()
    };
    for (options, reason) in [
        (json!({ "subject": "" }), "subject="),
        (json!({ "expiresIn": u64::MAX }), "expires_in="),
        (json!({ "trustedIssuers": ["http://idp.example.com"] }), "trusted_issuers="),
        (json!({ "clientDocuments": { "http://app.example.com/": null } }), "client_documents="),
        (json!({ "clientDocuments": { "https://a.example/": {} } }), "client_documents="),
        (json!({ "clients": [{ "client_id": "" }] }), "clients="),
        (json!({ "clients": [{ "client_id": "a", "redirect_uris": ["x"] }] }), "clients="),
        (json!({ "clients": [{ "client_id": "a", "secret": "x" }] }), "client_secret"),
        (json!({ "faults": { "errors": { "tokens": 1 } } }), "no endpoint \"tokens\""),
        (json!({ "faults": { "delay": -1 } }), "delay"),
        (json!({ "consent": "maybe" }), "automatic"),
    ] {
        let error = new(options);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_clients_leave_behind_is_bounded() {
    let mut world = World::new(&options());
    let asked = json!({ "redirect_uris": [BACK] });
    let (_, first) = read(&world.send(&post_json("/register", &asked)));
    let (_, code) = (world.code(""), world.code(""));
    let is_known =
        |world: &World| world.server.clients.get(first["client_id"].as_str().unwrap()).is_some();
    assert!(is_known(&world));
    for _ in 0..1_000 {
        world.send(&post_json("/register", &asked));
    }
    assert!(!is_known(&world), "the oldest made room");
    let (_, tokens) = world.redeem(&code);
    assert!(world.is_active(&tokens["access_token"]));
    let at = world.moment();
    for number in 0..10_000_u64 {
        let mut random = [1; 32];
        random[..8].copy_from_slice(&number.to_le_bytes());
        let at = Moment { random, ..at };
        let opaque = Shape { is_jwt: false, expires: u64::MAX, claims: Map::new() };
        let grant = Grant {
            client_id: "app".into(),
            subject: "user".into(),
            scopes: scopes::Scopes::new(),
            resource: None,
            nonce: None,
            key: None,
        };
        let server = &mut world.server;
        server.tokens.issue(ISSUER, &server.keys, (None, &grant), opaque, &at).unwrap();
        let id = server.grants.next_id();
        server.grants.keep(id, grant, &at.id("refresh token"));
    }
    assert!(!world.is_active(&tokens["access_token"]));
    assert_refused(&world.token(&refreshing(&tokens["refresh_token"])), "invalid_grant");
}
