//! The requests of client programs: registration, tokens, and metadata documents.

use serde_json::{Value, json};

use crate::{
    auth::{
        authorization_server::{generate_key, key_pair},
        jwt_signing::{SigningKey, client_assertion},
        registered_names::CLIENT_ASSERTION,
    },
    store::Expect,
};

use super::{
    super::{super::test_server::AuthFaults, *},
    world::{BACK, ISSUER, SECRET, VERIFIER, World, provider},
};

#[test]
fn an_id_of_a_client_outlives_the_process_and_is_bound_to_the_keys() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    // In the middle of a sign-in the process is replaced by another one.
    let back = world.go_to_callback(&id, "");
    world.restart(&[b"key".to_vec()]);
    let (_, query) = back.split_once('?').unwrap();
    let ended = world.get(OAuthEndpoint::Callback, query);
    let code = super::field(&ended, "code");
    world.restart(&[b"new".to_vec(), b"key".to_vec()]);
    assert_eq!(world.redeem(&id, &code).0, 200);
    let access = tokens["access_token"].as_str().unwrap();
    assert!(world.proxy.verify(ISSUER, access, world.unix).is_some());
    let (status, next) = world.refresh(&id, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(status, 200);
    world.restart(&[b"other".to_vec()]);
    assert!(world.proxy.verify(ISSUER, access, world.unix).is_none());
    let (status, refused) = world.refresh(&id, next["refresh_token"].as_str().unwrap());
    assert_eq!((status, &refused["error"]), (401, &json!("invalid_client")));
    // Without keys, the secret of the proxy takes their place, unless it can be guessed: everyone can register.
    for (secret, status) in [(SECRET, 200), ("s3cret", 400)] {
        world.settings.client_secret = Some(secret.into());
        world.restart(&[]);
        let id = world.register();
        world.restart(&[]);
        assert_eq!(world.authorize(&id, "").status, status, "{secret}");
    }
}

#[test]
fn a_registration_has_bounds() {
    let mut world = World::new(&json!({}));
    for (metadata, code) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["http://evil.example/"] }), "invalid_redirect_uri"),
        (json!({ "redirect_uris": ["javascript:alert(1)"] }), "invalid_redirect_uri"),
        (
            json!({ "redirect_uris": [BACK], "client_name": "x".repeat(2_000) }),
            "invalid_client_metadata",
        ),
        (json!([]), "invalid_client_metadata"),
    ] {
        let (status, refused) = world.register_with(&metadata);
        assert_eq!((status, &refused["error"]), (400, &json!(code)), "{metadata}");
    }
    let (status, client) = world.register_with(&json!({ "redirect_uris": [BACK] }));
    assert_eq!(
        (status, &client["token_endpoint_auth_method"]),
        (201, &json!("client_secret_basic"))
    );
    // A client with a secret has to use it.
    let (_, client) = world.register_with(&json!({
        "redirect_uris": [BACK], "token_endpoint_auth_method": "client_secret_post",
    }));
    let id = client["client_id"].as_str().unwrap().to_owned();
    let code = world.sign_in(&id);
    assert_eq!(world.redeem(&id, &code).0, 401);
    let code = world.sign_in(&id);
    world.secret = Some(client["client_secret"].as_str().unwrap().to_owned());
    assert_eq!(world.redeem(&id, &code).0, 200);
    world.secret = Some("wrong".into());
    let code = world.sign_in(&id);
    assert_eq!(world.redeem(&id, &code).0, 401);
}

/// A request that waits for metadata comes a second time, and an assertion counts once.
#[test]
fn an_assertion_counts_once_although_metadata_have_to_be_fetched() {
    let pkcs8 = generate_key().unwrap();
    let (_, public) = key_pair(&pkcs8).unwrap();
    let key = SigningKey::from_pkcs8(&pkcs8, "ES256").unwrap();
    let url = "https://app.example.com/client.json";
    let mut world = World::new(&json!({}));
    world.document = Ok(json!({ "client_id": url, "redirect_uris": [BACK],
        "token_endpoint_auth_method": "private_key_jwt", "jwks": { "keys": [public] } }));
    let code = world.sign_in(url);
    let fields = |world: &World, id: &str, more: [(&'static str, &str); 3]| {
        let assertion = client_assertion(&key, url, ISSUER, world.unix, id).unwrap();
        let mut fields: Vec<_> = more.map(|(name, value)| (name, value.to_owned())).to_vec();
        fields.push(("client_assertion_type", CLIENT_ASSERTION.to_owned()));
        fields.push(("client_assertion", assertion));
        fields
    };
    let redeem =
        [("grant_type", "authorization_code"), ("code", &*code), ("code_verifier", VERIFIER)];
    let asked = fields(&world, "one", redeem);
    let (status, tokens) = world.post(OAuthEndpoint::Token, &asked);
    assert_eq!(status, 200, "{tokens}");
    world.unix += 3_601;
    let token = tokens["refresh_token"].as_str().unwrap();
    let refresh = [("grant_type", "refresh_token"), ("refresh_token", token), ("scope", "")];
    let asked = fields(&world, "two", refresh);
    let (status, next) = world.post(OAuthEndpoint::Token, &asked);
    assert_eq!(status, 200, "{next}");
    let (status, refused) = world.post(OAuthEndpoint::Token, &asked);
    assert_eq!((status, &refused["error"]), (401, &json!("invalid_client")));
}

#[test]
fn redirects_can_be_restricted() {
    let allowed =
        ["https://app.example.com/*", "http://127.0.0.1/callback", "http://127.0.0.1/below/*"];
    let allowed = allowed.map(ToOwned::to_owned).to_vec();
    let proxy = OAuthProxy::new(provider(), Some(allowed), &[b"key"], b"");
    for (uri, is_allowed) in [
        (BACK, true),
        ("https://app.example.com.evil.example/", false),
        ("https://other.example/", false),
        ("http://127.0.0.1/callback", true),
        ("http://127.0.0.1/other", false),
        ("http://127.0.0.1:4711/callback", true),
        ("http://127.0.0.1:4711/below/x", true),
        ("https://app.example.com/../x", false),
        ("https://app.example.com/a/%2E%2e/x", false),
        ("https://app.example.com/a\\x", false),
    ] {
        assert_eq!(proxy.allows_redirect(uri), is_allowed, "{uri}");
    }
}

#[test]
fn a_code_is_for_its_client_and_used_once() {
    let mut world = World::new(&json!({}));
    let (id, other) = (world.register(), world.register());
    let code = world.sign_in(&id);
    let fields = |changes: &[(&'static str, &str)]| {
        let mut fields = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("client_id", id.clone()),
            ("code", code.clone()),
            ("redirect_uri", BACK.to_owned()),
            ("code_verifier", VERIFIER.to_owned()),
        ];
        for (name, value) in changes {
            fields.retain(|(key, _)| key != name);
            fields.push((name, (*value).to_owned()));
        }
        fields
    };
    for (changes, error) in [
        (&[("client_id", &*other)][..], "invalid_grant"),
        (&[("code", "wrong")], "invalid_grant"),
        (&[("grant_type", "password")], "unsupported_grant_type"),
        (&[("resource", "https://other.example/mcp")], "invalid_target"),
        (&[("code_verifier", "")], "invalid_request"),
    ] {
        let (status, refused) = world.post(OAuthEndpoint::Token, &fields(changes));
        assert_eq!((status, &refused["error"]), (400, &json!(error)), "{changes:?}");
    }
    let (status, tokens) = world.post(OAuthEndpoint::Token, &fields(&[]));
    assert_eq!(status, 200, "{tokens}");
    let (status, refused) = world.post(OAuthEndpoint::Token, &fields(&[]));
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    // The code may have been stolen, so its tokens are revoked (RFC 6749, section 4.1.2).
    let token = tokens["access_token"].as_str().unwrap();
    assert!(world.proxy.verify(ISSUER, token, world.unix).is_none());
    for change in [("code_verifier", "x"), ("redirect_uri", "https://app.example.com/other")] {
        let code = world.sign_in(&id);
        let changes = [("code", &*code), change];
        let (status, refused) = world.post(OAuthEndpoint::Token, &fields(&changes));
        assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")), "{change:?}");
    }
    let code = world.sign_in(&id);
    world.unix += 60;
    let (status, _) = world.post(OAuthEndpoint::Token, &fields(&[("code", &code)]));
    assert_eq!(status, 400);
}

/// RFC 9700, section 4.14.2: a refresh token that is used again after its successor was used may have been stolen.
#[test]
fn a_response_is_not_repeated_once_its_refresh_token_was_used() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    let first = tokens["refresh_token"].as_str().unwrap();
    let (_, second) = world.refresh(&id, first);
    assert_eq!(world.refresh(&id, first), (200, second.clone()), "it may have been lost");
    let (status, third) = world.refresh(&id, second["refresh_token"].as_str().unwrap());
    assert_eq!(status, 200);
    let (status, refused) = world.refresh(&id, first);
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    assert_eq!(world.refresh(&id, third["refresh_token"].as_str().unwrap()).0, 400, "all ended");
}

#[test]
fn a_refresh_token_rotates_and_a_lost_response_is_repeated() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, first) = world.redeem(&id, &code);
    let old = first["refresh_token"].as_str().unwrap();
    world.unix += 3_000;
    let (status, second) = world.refresh(&id, old);
    assert_eq!(status, 200, "{second}");
    assert_ne!(second["refresh_token"], first["refresh_token"]);
    // The response may have been lost.
    world.unix += 60;
    assert_eq!(world.refresh(&id, old), (200, second.clone()));
    let access = second["access_token"].as_str().unwrap();
    assert!(world.proxy.verify(ISSUER, access, world.unix).is_some());
    // Later it is a sign of theft: everything of this sign-in ends.
    world.unix += 1;
    let (status, refused) = world.refresh(&id, old);
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    assert!(world.proxy.verify(ISSUER, access, world.unix).is_none());
    assert_eq!(world.refresh(&id, second["refresh_token"].as_str().unwrap()).0, 400);
}

#[test]
fn simultaneous_refreshes_ask_the_provider_once() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    let fields = [
        ("grant_type", "refresh_token".to_owned()),
        ("client_id", id.clone()),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap().to_owned()),
    ];
    let ProxyStep::Fetch(fetch, flow) = world.begin_post(OAuthEndpoint::Token, &fields) else {
        panic!("the provider is not asked")
    };
    let digest = flow.refreshes().unwrap();
    let ProxyStep::Wait(same) = world.begin_post(OAuthEndpoint::Token, &fields) else {
        panic!("the provider is asked twice")
    };
    assert_eq!(digest, same);
    let first = world.end(fetch, flow);
    let ProxyStep::Respond(second) = world.begin_post(OAuthEndpoint::Token, &fields) else {
        panic!("it waits")
    };
    assert_eq!((first.status, first.body), (second.status, second.body));
}

#[test]
fn a_refresh_fails_for_good_only_if_the_provider_says_so() {
    let mut world = World::new(&json!({ "faults": { "errors": { "token": 0 } } }));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let faults = AuthFaults { errors: [("token".to_owned(), 1)].into(), ..AuthFaults::default() };
    world.provider.set_faults(faults).unwrap();
    let (status, refused) = world.refresh(&id, refresh);
    assert_eq!((status, &refused["error"]), (503, &json!("temporarily_unavailable")));
    let other = world.register();
    let (status, refused) = world.refresh(&other, refresh);
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")), "of another client");
    let (status, next) = world.refresh(&id, refresh);
    assert_eq!(status, 200);
    world.provider.revoke_all();
    let (status, refused) = world.refresh(&id, next["refresh_token"].as_str().unwrap());
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    assert_eq!(world.refresh(&id, "wrong").0, 400);
    world.unix += 31 * 86_400;
    assert_eq!(world.refresh(&id, next["refresh_token"].as_str().unwrap()).0, 400);
}

#[test]
fn a_refresh_may_ask_for_fewer_scopes_and_not_for_more() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    let fields = |scope: &str| {
        [
            ("grant_type", "refresh_token".to_owned()),
            ("client_id", id.clone()),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap().to_owned()),
            ("scope", scope.to_owned()),
        ]
    };
    for more in ["admin", "email admin"] {
        let (status, refused) = world.post(OAuthEndpoint::Token, &fields(more));
        assert_eq!((status, &refused["error"]), (400, &json!("invalid_scope")), "{more}");
    }
    let (status, fewer) = world.post(OAuthEndpoint::Token, &fields("email offline_access"));
    assert_eq!((status, &fewer["scope"]), (200, &json!("email")));
    // The new refresh token has all of them again (RFC 6749, section 6).
    let (status, all) = world.refresh(&id, fewer["refresh_token"].as_str().unwrap());
    assert_eq!((status, &all["scope"]), (200, &json!("email openid profile")));
}

#[test]
fn a_revoked_token_ends_its_sign_in_here_and_at_the_provider() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    let fields =
        |id: &str, token: &str| [("client_id", id.to_owned()), ("token", token.to_owned())];
    let other = world.register();
    for (client, token) in [(&other, refresh), (&id, "unknown")] {
        world.post(OAuthEndpoint::Revoke, &fields(client, token));
        assert!(world.proxy.verify(ISSUER, access, world.unix).is_some());
    }
    world.post(OAuthEndpoint::Revoke, &fields(&id, refresh));
    assert!(world.fetched.iter().any(|url| url.ends_with("/revoke")));
    assert!(world.proxy.verify(ISSUER, access, world.unix).is_none());
    assert_eq!(world.refresh(&id, refresh).0, 400);
}

#[test]
fn a_client_is_described_by_a_document_at_its_id() {
    let url = "https://app.example.com/client.json";
    let mut world = World::new(&json!({}));
    world.document =
        Ok(json!({ "client_id": url, "client_name": "Shelf", "redirect_uris": [BACK] }));
    let code = world.sign_in(url);
    let (status, tokens) = world.redeem(url, &code);
    assert_eq!(status, 200, "{tokens}");
    let token = tokens["access_token"].as_str().unwrap();
    let (principal, _) = world.proxy.verify(ISSUER, token, world.unix).unwrap();
    assert_eq!(principal.client_id.as_deref(), Some(url));
    let fetches = |world: &World| world.fetched.iter().filter(|fetched| *fetched == url).count();
    assert_eq!(fetches(&world), 1, "it is kept");
    world.unix += 61;
    assert_eq!(world.authorize(url, "").status, 200);
    assert_eq!(fetches(&world), 2);
    for (document, reason) in [
        (Ok(json!({ "client_id": "https://evil.example/x", "redirect_uris": [BACK] })), "its URL"),
        (
            Ok(json!({ "client_id": url, "client_secret": "x", "redirect_uris": [BACK] })),
            "no client_secret",
        ),
        (Ok(json!([])), "its URL"),
        (Err(404), "status 404"),
        (Err(302), "redirects are not followed"),
    ] {
        world.unix += 61;
        world.document = document;
        let page = world.authorize(url, "");
        let text = String::from_utf8(page.body).unwrap();
        assert!(page.status == 400 && text.contains(reason), "{reason}: {text}");
    }
    // While its server is away, the last document counts.
    world.unix += 61;
    world.document = Ok(json!({ "client_id": url, "redirect_uris": [BACK] }));
    assert_eq!(world.authorize(url, "").status, 200);
    world.unix += 61;
    world.document = Err(503);
    assert_eq!(world.authorize(url, "").status, 200);
    let elsewhere = "https://other.example.com/client.json";
    assert_eq!(world.authorize(elsewhere, "").status, 503);
    // A failure is kept for a short time, so that nobody makes the proxy fetch without end.
    let before = fetches(&world);
    world.authorize(url, "");
    assert_eq!(fetches(&world), before);
    for bad in [
        "https://app.example.com",
        "https://app.example.com/../x",
        "https://a@b.example/x",
        "https://app.example.com/x#y",
    ] {
        assert_eq!(world.authorize(bad, "").status, 400, "{bad}");
        assert!(!world.fetched.iter().any(|url| url == bad));
    }
}

#[test]
fn requests_of_the_wrong_kind_are_refused() {
    let mut world = World::new(&json!({}));
    for endpoint in [OAuthEndpoint::Token, OAuthEndpoint::Register, OAuthEndpoint::Consent] {
        let response = world.get(endpoint, "");
        assert_eq!(
            (response.status.as_u16(), &response.headers[header::ALLOW]),
            (405, &HeaderValue::from_static("POST"))
        );
    }
    for endpoint in [OAuthEndpoint::Token, OAuthEndpoint::Revoke] {
        let (status, refused) = world.register_at(endpoint, &json!({}));
        assert_eq!((status, &refused["error"]), (400, &json!("invalid_request")));
        let (status, refused) = world.post(endpoint, &[("grant_type", "refresh_token".to_owned())]);
        assert_eq!((status, &refused["error"]), (401, &json!("invalid_client")));
    }
    let response = world.send(Method::OPTIONS, OAuthEndpoint::Token, "", "", b"");
    assert_eq!(response.status, 204);
    assert_eq!(response.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
}

#[test]
fn a_code_is_used_once_by_all_servers_that_share_a_store() {
    let mut world = World::new(&json!({}));
    world.proxy.use_store();
    let id = world.register();
    let claim = |world: &mut World, code: &str| {
        let fields = [
            ("grant_type", "authorization_code".to_owned()),
            ("client_id", id.clone()),
            ("code", code.to_owned()),
            ("redirect_uri", BACK.to_owned()),
            ("code_verifier", VERIFIER.to_owned()),
        ];
        match world.begin_post(OAuthEndpoint::Token, &fields) {
            ProxyStep::Store(operation, flow) => (operation, flow),
            other => panic!("the store is not asked: {other:?}"),
        }
    };
    let stored = |world: &mut World, flow, reply| {
        let moment = world.moment();
        let mut step = world.proxy.stored(&moment, flow, reply);
        // The sign-in of a code that was used twice is revoked.
        if let ProxyStep::Store(operation, flow) = step {
            let (reply, moment) = (world.store(operation), world.moment());
            step = world.proxy.stored(&moment, flow, reply);
        }
        match step {
            ProxyStep::Respond(response) => {
                let body: Value = serde_json::from_slice(&response.body).unwrap();
                (response.status.as_u16(), body)
            }
            other => panic!("no response: {other:?}"),
        }
    };
    let code = world.sign_in(&id);
    let (first, flow) = claim(&mut world, &code);
    let StoreOperation::Put { key, ttl, expect: Expect::Absent, .. } = &first else {
        panic!("nobody wins: {first:?}")
    };
    assert!(key.starts_with("oauth-code:") && !key.contains(&code), "{key}");
    assert!(ttl.as_secs() > 60, "a code is accepted for a minute");
    // The store is away: the client tries again, perhaps at another server.
    let (status, refused) = stored(&mut world, flow, StoreReply::Failed("it is away".into()));
    assert_eq!((status, &refused["error"]), (503, &json!("temporarily_unavailable")));
    let (again, flow) = claim(&mut world, &code);
    assert_eq!(again, first);
    let (status, refused) = stored(&mut world, flow, StoreReply::Conflict);
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    let code = world.sign_in(&id);
    let (_, flow) = claim(&mut world, &code);
    let (status, tokens) = stored(&mut world, flow, StoreReply::Stored(1));
    assert_eq!(status, 200, "{tokens}");
    let token = tokens["access_token"].as_str().unwrap();
    assert!(world.proxy.verify(ISSUER, token, world.unix).is_some());
}
