mod programs;
mod world;

use std::time::Duration;

use http::header;

use self::world::{
    BACK, ISSUER, MCP, VERIFIER, World, assert_refused, authorization, field, get, options, parsed,
    post, post_json, read, redemption, redirected, refreshing,
};
use super::{super::generate_key, *};
use crate::auth::{fetch::encode_form, pkce};

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
    assert!(client["client_secret"].as_str().is_some_and(|secret| secret.len() >= 32));
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
    // Otherwise browsers leave the origin out of the form.
    assert_eq!(page.headers[header::REFERRER_POLICY], "same-origin");
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
fn keys_are_rotated() {
    let mut world = World::new(&options());
    let at = world.moment();
    let order = json!({
        "clientId": "app", "subject": "ada", "scopes": ["a b"], "audience": MCP, "claims": { "groups": ["x"] },
    });
    let token = world.server.token(&at, parsed(&order).unwrap()).unwrap();
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
        world.server.set_faults(parsed(faults).unwrap()).unwrap();
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
    world.server.set_faults(parsed(&faults).unwrap()).unwrap();
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
    let text = format!("{:?}", world.server.requests());
    for secret in [VERIFIER, &code, "s3cret", tokens["refresh_token"].as_str().unwrap()] {
        assert!(!text.contains(secret), "{text}");
    }
    let requests = world.server.requests();
    assert_eq!(requests[0].form["scope"], "books");
    assert_eq!((requests[1].path.as_str(), requests[1].status), ("/token", 200));
    assert_eq!(requests[1].form["code"], "…");
    for _ in 0..10_001 {
        world.get("/jwks");
    }
    assert_eq!(world.server.requests().len(), 10_000);
}

#[test]
fn options_that_can_not_work_are_refused() {
    let new = |options: Value| {
        let key = generate_key().unwrap();
        let made = parsed(&options).and_then(|config| TestServer::new(ISSUER, config, &key));
        made.unwrap_err().to_string()
    };
    for (options, reason) in [
        (json!({ "subject": "" }), "subject: "),
        (json!({ "expiresIn": u64::MAX }), "expires_in: "),
        (json!({ "trustedIssuers": ["http://idp.example.com"] }), "trusted_issuers: "),
        (json!({ "clientDocuments": { "http://app.example.com/": null } }), "client_documents: "),
        (json!({ "clientDocuments": { "https://a.example/": {} } }), "client_documents: "),
        (json!({ "clients": [{ "client_id": "" }] }), "clients: "),
        (json!({ "clients": [{ "client_id": "a", "redirect_uris": ["x"] }] }), "clients: "),
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
        let opaque = TokenForm { is_jwt: false, expires: u64::MAX, claims: serde_json::Map::new() };
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
