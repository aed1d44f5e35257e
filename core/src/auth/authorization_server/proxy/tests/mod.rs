//! The proxy in front of the authorization server for tests.

mod programs;
mod shared;
mod world;

use serde_json::json;

use self::world::{BACK, ISSUER, PROVIDER, World, field, page_field, provider};
use super::{super::test_server::AuthFaults, *};

/// The origin of the proxy's pages.
const OWN: Option<&str> = Some("https://mcp.example.com");

#[test]
fn a_user_signs_in_and_the_tokens_are_those_of_the_proxy() {
    let mut world = World::new(&json!({ "subject": "ada" }));
    let id = world.register();
    let code = world.sign_in(&id);
    let tokens = world.redeem(&id, &code).1;
    assert_eq!((&tokens["token_type"], &tokens["expires_in"]), (&json!("Bearer"), &json!(3_600)));
    assert_eq!(tokens["scope"], "email openid profile");
    let token = tokens["access_token"].as_str().unwrap();
    let (principal, expires) = world.proxy.verify(ISSUER, token, world.unix).unwrap();
    assert_eq!((&*principal.subject, expires), ("ada", world.unix + 3_600));
    assert_eq!(principal.claims["iss"], PROVIDER);
    assert!(principal.scopes.contains("email"));
    assert_eq!(principal.client_id, Some(clients::short_id(&id)));
    // The token is for this resource, until it expires.
    assert!(world.proxy.verify("https://other.example/mcp", token, world.unix).is_none());
    assert!(world.proxy.verify(ISSUER, token, expires).is_none());
    assert!(world.proxy.verify(ISSUER, tokens["refresh_token"].as_str().unwrap(), 0).is_none());
}

#[test]
fn the_metadata_name_what_the_proxy_offers() {
    let mut world = World::new(&json!({}));
    let (status, document) = world.read(OAuthEndpoint::Metadata, "");
    assert_eq!((status, &document["issuer"]), (200, &json!(ISSUER)));
    for (name, path) in [
        ("authorization_endpoint", "authorize"),
        ("token_endpoint", "token"),
        ("registration_endpoint", "register"),
        ("revocation_endpoint", "revoke"),
    ] {
        assert_eq!(document[name], format!("{ISSUER}/oauth/{path}"));
    }
    assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(document["client_id_metadata_document_supported"], true);
    assert_eq!(document["scopes_supported"], json!(["openid", "profile", "email"]));
}

#[test]
fn only_the_browser_that_was_asked_decides() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let page = world.authorize(&id, "");
    let sealed = page_field(&page);
    let deny = [("request", &*sealed), ("decision", "deny")];
    let allow = [("request", &*sealed), ("decision", "allow")];
    // A page of another site has the sealed request of its own sign-in, and not the cookie of the user's browser.
    let cookie = world.cookie.clone();
    for (cookie, origin) in [
        ("", OWN),
        ("__Host-gudgeon_sign_in_xxxxxxxx=1", OWN),
        (&*cookie, Some("https://evil.example")),
        (&*cookie, Some("null")),
        (&*cookie, None),
    ] {
        let refused = world.decide(&allow, cookie, origin);
        assert_eq!(refused.status, 400, "{cookie} {origin:?}");
        assert!(!refused.headers.contains_key(header::LOCATION));
    }
    let changed = format!("A{}", &sealed[1..]);
    let refused = world.decide(&[("request", &changed), ("decision", "allow")], &cookie, OWN);
    assert_eq!(refused.status, 400);
    let named = world.decide(&allow, &cookie, Some("https://MCP.example.com:443"));
    assert_eq!(named.status, 303);
    let twice = world.decide(
        &allow,
        named.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap(),
        OWN,
    );
    assert_eq!(twice.status, 303, "a button may be pressed twice");
    world.allow(BACK);
    let denied = world.decide(&deny, &cookie, OWN);
    assert_eq!(field(&denied, "error"), "access_denied");
    assert_eq!((field(&denied, "state"), field(&denied, "iss")), ("st&te".into(), ISSUER.into()));
    world.unix += 601;
    assert_eq!(world.decide(&allow, &cookie, OWN).status, 400);
}

#[test]
fn the_page_is_not_framed_and_shows_the_names_as_text() {
    let mut world = World::new(&json!({}));
    let (_, client) = world.register_with(&json!({
        "client_name": format!("<script>alert(1)</script>\u{202e}{}", "x".repeat(200)),
        "redirect_uris": [BACK],
        "token_endpoint_auth_method": "none",
    }));
    let page = world.authorize(client["client_id"].as_str().unwrap(), "books");
    let text = String::from_utf8(page.body).unwrap();
    assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains(&"x".repeat(100)), "{text}");
    assert!(text.contains("<b>as.example.com</b>") && text.contains("<b>app.example.com</b>"));
    assert!(text.contains("books"));
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"));
    assert_eq!(page.headers[header::CACHE_CONTROL], "no-store");
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-"), "another host could set it: {cookie}");
    for part in ["; Path=/;", "HttpOnly", "SameSite=Lax", "Secure", "Max-Age=600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!page.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[test]
fn a_name_that_shows_nothing_is_said_to_be_none() {
    let mut world = World::new(&json!({}));
    let invisible = ["", " \t", "\u{3000}\u{2003}", "\u{2800}\u{200b}", "\u{3164} \u{ad}\n"];
    let with_long_start = format!("{}evil", "\u{2003}".repeat(200));
    for name in invisible.into_iter().chain([&*with_long_start]) {
        let metadata = json!({ "client_name": name, "redirect_uris": [BACK] });
        let (_, client) = world.register_with(&metadata);
        let page = world.authorize(client["client_id"].as_str().unwrap(), "");
        let text = String::from_utf8(page.body).unwrap();
        assert!(text.contains("<b>A program without a name</b> wants"), "{name:?}: {text}");
    }
}

#[test]
fn a_browser_that_did_not_begin_a_sign_in_can_not_end_it() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let back = world.go_to_callback(&id, "");
    let (_, query) = back.split_once('?').unwrap();
    let own = std::mem::take(&mut world.cookie);
    assert_eq!(world.get(OAuthEndpoint::Callback, query).status, 400);
    // The value in the page is not a consent, even as the browser's cookie.
    let name = own.split('=').next().unwrap();
    world.cookie = format!("{name}={}", world.sealed);
    assert_eq!(world.get(OAuthEndpoint::Callback, query).status, 400);
    // The cookie of another sign-in in the same browser has another name.
    let other = own.replacen("sign_in_", "sign_in_x", 1);
    world.cookie = other;
    assert_eq!(world.get(OAuthEndpoint::Callback, query).status, 400);
    world.cookie = own;
    let ended = world.get(OAuthEndpoint::Callback, query);
    assert!(!field(&ended, "code").is_empty());
    assert!(ended.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
}

#[test]
fn a_mistake_of_the_client_is_shown_or_sent_back() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    for (change, reason) in [
        (("client_id", "unknown"), "unknown"),
        (("client_id", ""), "client_id is missing"),
        (("redirect_uri", "https://evil.example/"), "redirect_uri"),
    ] {
        let page = world.authorize_with(&id, &[change]);
        assert_eq!(page.status, 400);
        let text = String::from_utf8(page.body).unwrap();
        assert!(text.contains(reason) && text.contains("<h1>"), "{text}");
    }
    world.allow(BACK);
    for (change, code) in [
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("response_type", "token"), "unsupported_response_type"),
        (("resource", "https://other.example/mcp"), "invalid_target"),
        (("scope", &*"a".repeat(4_000)), "invalid_request"),
    ] {
        let back = world.authorize_with(&id, &[change]);
        assert_eq!(field(&back, "error"), code, "{change:?}");
    }
}

#[test]
fn a_browser_is_only_sent_to_the_host_of_a_registered_url() {
    let mut world = World::new(&json!({}));
    let (_, client) = world.register_with(&json!({
        "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    }));
    let id = client["client_id"].as_str().unwrap();
    let at = |uri| [("redirect_uri", uri), ("response_type", "none")];
    let back = world.authorize_with(id, &at("http://127.0.0.1:4711/callback"));
    assert_eq!(field(&back, "error"), "unsupported_response_type");
    for uri in [
        "http://127.0.0.1:1@evil.example/callback",
        "http://127.0.0.1:x@evil.example/callback",
        "http://127.0.0.1:99999/callback",
        "http://127.0.0.1:x/callback",
        "http://127.0.0.1:1\t/callback",
        "http://127.0.0.1:1\r\nx: y/callback",
        "http://127.0.0.1\\evil.example/callback",
    ] {
        for response_type in ["none", "code"] {
            let changes = [("redirect_uri", uri), ("response_type", response_type)];
            let page = world.authorize_with(id, &changes);
            assert_eq!(page.status, 400, "{uri:?}");
            assert!(!page.headers.contains_key(header::LOCATION), "{uri:?}");
            let text = String::from_utf8(page.body).unwrap();
            assert!(text.contains("has not registered"), "{text}");
        }
    }
}

/// RFC 9700, section 4.11.2: a link to the server would lead to a site that anyone registered.
#[test]
fn a_browser_is_not_sent_on_without_the_users_consent() {
    let mut world = World::new(&json!({}));
    for (uri, place) in [(BACK, "app.example.com"), ("com.example.app:/back?a=\"", "the program")] {
        let (_, client) = world.register_with(&json!({
            "redirect_uris": [uri], "token_endpoint_auth_method": "none",
        }));
        let id = client["client_id"].as_str().unwrap();
        let page = world.authorize_with(id, &[("redirect_uri", uri)]);
        let sealed = page_field(&page);
        let cookie = world.cookie.clone();
        let pages = [
            world.authorize_with(id, &[("redirect_uri", uri), ("response_type", "none")]),
            world.authorize_with(id, &[("redirect_uri", uri), ("scope", &"a".repeat(4_000))]),
            world.decide(&[("request", &sealed), ("decision", "deny")], &cookie, OWN),
        ];
        for page in pages {
            assert_eq!(page.status, 400, "{uri}");
            assert!(!page.headers.contains_key(header::LOCATION), "{uri}");
            let text = String::from_utf8(page.body).unwrap();
            let link = format!("<a href=\"{}", uri.replace('"', "&quot;"));
            assert!(text.contains(&link) && text.contains("error="), "{text}");
            assert!(text.contains(&format!("Return to <b>{place}</b>")), "{text}");
        }
    }
}

#[test]
fn a_page_does_not_outlive_the_permission_of_its_redirect_url() {
    let mut world = World::new(&json!({}));
    world.restart(&[b"key".to_vec()]);
    let id = world.register();
    let code = world.sign_in(&id);
    let page = world.authorize(&id, "");
    let sealed = page_field(&page);
    let cookie = world.cookie.clone();
    let back = world.go_to_callback(&id, "");
    world.allow("https://other.example/*");
    for decision in ["allow", "deny"] {
        let fields = [("request", &*sealed), ("decision", decision)];
        assert_is_not_allowed(&world.decide(&fields, &cookie, OWN));
    }
    let (_, query) = back.split_once('?').unwrap();
    assert_is_not_allowed(&world.get(OAuthEndpoint::Callback, query));
    let (status, refused) = world.redeem(&id, &code);
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")), "{refused}");
}

fn assert_is_not_allowed(page: &Response) {
    assert_eq!(page.status, 400);
    assert!(!page.headers.contains_key(header::LOCATION));
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(text.contains("does not allow the client's redirect URL"), "{text}");
}

#[test]
fn a_url_that_starts_a_program_of_the_system_is_not_registered() {
    let mut world = World::new(&json!({}));
    for uri in ["ms-msdt:/id", "smb://evil.example/x", "mailto:a@b.example", "shell:x"] {
        let (status, refused) = world.register_with(&json!({ "redirect_uris": [uri] }));
        assert_eq!((status, &refused["error"]), (400, &json!("invalid_redirect_uri")), "{uri}");
    }
}

#[test]
fn what_the_provider_refuses_reaches_the_client_as_an_error() {
    for (options, query, code) in [
        (json!({ "consent": "deny" }), "", "access_denied"),
        (json!({ "faults": { "responseIssuer": "https://evil.example" } }), "", "access_denied"),
        (json!({ "faults": { "errors": { "token": 1 } } }), "", "server_error"),
        (json!({ "scopes": ["openid", "profile", "email"] }), "more", "invalid_scope"),
    ] {
        let mut world = World::new(&options);
        let id = world.register();
        let back = world.go_to_callback(&id, query);
        let (_, query) = back.split_once('?').unwrap();
        let ended = world.get(OAuthEndpoint::Callback, query);
        assert_eq!(field(&ended, "error"), code, "{options}");
        assert_eq!(field(&ended, "state"), "st&te");
    }
    // RFC 9207: the provider says that it names itself, so a response without its name is another one's.
    let mut world = World::new(&json!({}));
    let id = world.register();
    let back = world.go_to_callback(&id, "");
    let query =
        back.split_once('?').unwrap().1.split('&').filter(|field| !field.starts_with("iss="));
    let query = query.collect::<Vec<_>>().join("&");
    assert_eq!(field(&world.get(OAuthEndpoint::Callback, &query), "error"), "access_denied");
}

#[test]
fn a_provider_without_metadata_is_asked_again_later() {
    let mut world = World::new(&json!({ "faults": { "errors": { "metadata": 2 } } }));
    let id = world.register();
    let page = world.authorize(&id, "");
    let sealed = page_field(&page);
    let allow = [("request", &*sealed), ("decision", "allow")];
    let cookie = world.cookie.clone();
    assert_eq!(world.decide(&allow, &cookie, OWN).status, 503);
    assert_eq!(world.decide(&allow, &cookie, OWN).status, 303);
    assert_eq!(world.fetched.iter().filter(|url| url.contains(".well-known")).count(), 3);
    // Later, when they are old and the provider is away, they still count.
    let faults = AuthFaults::parse(br#"{"errors":{"metadata":2}}"#).unwrap();
    world.provider.set_faults(faults).unwrap();
    world.unix += 3_601;
    let page = world.authorize(&id, "");
    let sealed = page_field(&page);
    let cookie = world.cookie.clone();
    let allow = [("request", &*sealed), ("decision", "allow")];
    assert_eq!(world.decide(&allow, &cookie, OWN).status, 303);
    assert_eq!(world.fetched.iter().filter(|url| url.contains(".well-known")).count(), 5);
}

#[test]
fn the_user_of_a_provider_without_identity_tokens_comes_from_its_userinfo_endpoint() {
    let mut settings = provider();
    settings.place = ProviderPlace::Fixed(Endpoints {
        authorization_endpoint: format!("{PROVIDER}/authorize"),
        token_endpoint: format!("{PROVIDER}/token"),
        userinfo_endpoint: Some(format!("{PROVIDER}/user")),
        ..Endpoints::default()
    });
    settings.scopes = vec!["read:user".into()];
    settings.subject = "id".into();
    let mut world = World::with(&json!({ "refreshTokens": false }), settings);
    world.user = Ok(json!({ "id": 7, "login": "ada", "bio": "x".repeat(5_000), "email": null }));
    let id = world.register();
    let code = world.sign_in(&id);
    let (_, tokens) = world.redeem(&id, &code);
    let token = tokens["access_token"].as_str().unwrap();
    let (principal, _) = world.proxy.verify(ISSUER, token, world.unix).unwrap();
    assert_eq!((&*principal.subject, &principal.claims["login"]), ("7", &json!("ada")));
    assert_eq!(principal.claims["iss"], "https://as.example.com");
    assert!(!principal.claims.contains_key("bio"), "long claims are left out");
    // Without refresh tokens of the provider, its access token tells whether the user still has access.
    let (status, next) = world.refresh(&id, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(status, 200);
    world.user = Err(401);
    let (status, refused) = world.refresh(&id, next["refresh_token"].as_str().unwrap());
    assert_eq!((status, &refused["error"]), (400, &json!("invalid_grant")));
    let token = next["access_token"].as_str().unwrap();
    assert!(world.proxy.verify(ISSUER, token, world.unix).is_none(), "the grant was revoked");
}

#[test]
fn no_secret_is_shown() {
    let mut world = World::new(&json!({}));
    let id = world.register();
    let back = world.go_to_callback(&id, "");
    let (_, query) = back.split_once('?').unwrap();
    let step = world.begin(OAuthEndpoint::Callback, query);
    let text = format!("{step:?} {:?}", world.proxy);
    let code = back.split_once("code=").unwrap().1.split('&').next().unwrap();
    assert!(!text.contains("s3cret") && !text.contains(code), "{text}");
}
