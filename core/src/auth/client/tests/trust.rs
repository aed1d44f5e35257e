//! Credentials of the program go to one authorization server only, and stored tokens are used by their own client only.

use super::*;

/// It begins like the URL of the first one, `https://as.example.com`.
const OTHER: &str = "https://as.example.com.evil.example";

fn interactive_of(id: &str, issuer: Option<&str>) -> Grant {
    let client = RegisteredClient {
        issuer: issuer.map(Into::into),
        ..RegisteredClient::with_secret(id, "s3cret")
    };
    Grant::AuthorizationCode { client: Some(client), metadata_url: None, port: 0 }
}

/// Returns all grants with credentials of the program's own.
fn grants(issuer: Option<&str>) -> [Grant; 4] {
    let issuer = issuer.map(ToOwned::to_owned);
    let client = || RegisteredClient {
        issuer: issuer.clone(),
        ..RegisteredClient::with_secret("me", "s3cret")
    };
    [
        Grant::AuthorizationCode { client: Some(client()), metadata_url: None, port: 0 },
        Grant::ClientCredentials(client()),
        Grant::EnterpriseManaged {
            client: client(),
            idp: "https://idp.example.com".into(),
            idp_client: RegisteredClient::public("me-at-idp"),
        },
        Grant::WorkloadIdentity { client_id: Some("me".into()), issuer: issuer.clone() },
    ]
}

/// A world in which the identity provider of the grants answers as well.
fn world(grant: Grant) -> World {
    let is_exchanged = matches!(grant, Grant::EnterpriseManaged { .. });
    let mut world = World::new(settings(grant));
    let idp = json!({ "issuer": "https://idp.example.com", "token_endpoint": TOKEN });
    world.documents.insert("https://idp.example.com/.well-known/openid-configuration".into(), idp);
    if is_exchanged {
        let issued = "urn:ietf:params:oauth:token-type:id-jag";
        let exchanged =
            json!({ "access_token": "jag", "token_type": "N_A", "issued_token_type": issued });
        world.tokens.insert(0, (200, exchanged));
    }
    world
}

/// Lets the MCP server name another authorization server.
fn turn_away(world: &mut World) {
    let metadata = json!({
        "issuer": OTHER,
        "authorization_endpoint": format!("{OTHER}/authorize"),
        "token_endpoint": format!("{OTHER}/token"),
        "code_challenge_methods_supported": ["S256"],
    });
    let resource = json!({ "resource": MCP, "authorization_servers": [OTHER] });
    world.documents.insert(RESOURCE.into(), resource);
    world.documents.insert(format!("{OTHER}/.well-known/oauth-authorization-server"), metadata);
}

/// Asserts that the other authorization server got requests for its metadata only.
fn assert_nothing_was_sent(world: &World) {
    let sent = world.asked.iter().find(|(url, body)| url.starts_with(OTHER) && !body.is_empty());
    assert_eq!(sent, None);
    assert!(world.opened.iter().all(|url| !url.starts_with(OTHER)));
}

#[test]
fn credentials_stay_with_the_authorization_server_that_got_them_first() {
    for grant in grants(None) {
        let mut first = world(grant.clone());
        first.sign_in().unwrap();
        let mut later = world(grant);
        later.store = first.store.clone();
        for mut world in [first, later] {
            turn_away(&mut world);
            let error = world.sign_in().unwrap_err();
            let expected = format!("changed from https://as.example.com to {OTHER}");
            assert!(error.contains(&expected), "{error}");
            assert_nothing_was_sent(&world);
        }
    }
}

#[test]
fn another_program_does_not_change_who_gets_the_credentials() {
    let mut own = world(interactive_of("me", None));
    own.sign_in().unwrap();
    // The client registers itself, and shares the store.
    let mut other = World::new(interactive());
    other.store = own.store.clone();
    turn_away(&mut other);
    let metadata = format!("{OTHER}/.well-known/oauth-authorization-server");
    let metadata = other.documents.get_mut(&metadata).unwrap();
    metadata["token_endpoint"] = json!(TOKEN);
    metadata["registration_endpoint"] = json!(REGISTER);
    other.sign_in().unwrap();
    let mut later = world(interactive_of("me", None));
    later.store = other.store;
    turn_away(&mut later);
    let error = later.sign_in().unwrap_err();
    assert!(error.contains("changed from https://as.example.com"), "{error}");
    assert_nothing_was_sent(&later);
}

#[test]
fn credentials_go_to_the_issuer_that_the_program_names() {
    for grant in grants(Some("https://as.example.com")) {
        let mut good = world(grant.clone());
        good.sign_in().unwrap();
        assert_eq!(good.token().as_deref(), Some("Bearer t1"));
        let mut bad = world(grant);
        turn_away(&mut bad);
        let error = bad.sign_in().unwrap_err();
        assert!(error.contains("for https://as.example.com, but"), "{error}");
        assert_nothing_was_sent(&bad);
    }
}

#[test]
fn an_issuer_without_a_path_is_the_same_with_a_slash() {
    for named in [None, Some("https://as.example.com"), Some("https://as.example.com/")] {
        for grant in grants(named) {
            let mut world = world(grant);
            let servers = ["https://as.example.com/"];
            let resource = json!({ "resource": MCP, "authorization_servers": servers });
            world.documents.insert(RESOURCE.into(), resource);
            world.sign_in().unwrap();
            assert_eq!(world.token().as_deref(), Some("Bearer t1"), "{named:?}");
        }
    }
}

#[test]
fn another_issuer_than_that_of_the_store_can_be_named() {
    for (before, now) in grants(None).into_iter().zip(grants(Some(OTHER))) {
        let mut first = world(before);
        first.sign_in().unwrap();
        let mut later = world(now);
        later.store = first.store;
        turn_away(&mut later);
        later.want(1);
        later.run();
        assert!(later.headers().is_none(), "the tokens are of another issuer");
        // Nothing but the answer of the other authorization server is missing.
        let error = later.sign_in().unwrap_err();
        assert!(!error.contains("changed from"), "{error}");
    }
}

#[test]
fn tokens_belong_to_one_client() {
    let mut first = world(interactive_of("me", None));
    first.sign_in().unwrap();
    for (id, token) in [("you", None), ("me", Some("Bearer t1"))] {
        let mut later = world(interactive_of(id, None));
        later.store = first.store.clone();
        later.want(1);
        later.run();
        assert_eq!(later.token().as_deref(), token, "{id}");
    }
    // The id may be the URL of a document.
    let with_url = |url: &str| {
        let metadata_url = Some(url.to_owned());
        let grant = Grant::AuthorizationCode { client: None, metadata_url, port: 0 };
        let mut world = world(grant);
        let metadata = world.documents.get_mut(METADATA).unwrap();
        metadata["client_id_metadata_document_supported"] = json!(true);
        world
    };
    let mut first = with_url("https://shelf.example.com/client.json");
    first.sign_in().unwrap();
    let mut later = with_url("https://other.example.com/client.json");
    later.store = first.store.clone();
    later.want(1);
    later.run();
    assert!(later.headers().is_none());
    assert_eq!(later.sign_in(), Ok(()));
    let urls = ["https%3A%2F%2Fshelf", "https%3A%2F%2Fother"];
    for (world, url) in [&first, &later].into_iter().zip(urls) {
        assert!(world.opened[0].contains(&format!("client_id={url}")), "{}", world.opened[0]);
    }
}

#[test]
fn tokens_that_were_not_stored_are_not_replaced_by_older_ones() {
    let mut world = World::new(interactive());
    world.sign_in().unwrap();
    world.is_full = true;
    for (number, token) in [(1, "Bearer t2"), (2, "Bearer t3")] {
        world.unix += 3_600;
        assert!(world.want(number));
        assert_eq!(world.run(), [(Ticket(number), Ok(()))]);
        assert_eq!(world.token().as_deref(), Some(token));
    }
    // Once they are stored, those of another process are newer.
    world.is_full = false;
    world.unix += 3_600;
    world.want(3);
    world.run();
    let mut other = World::new(interactive());
    other.store = world.store.clone();
    other.tokens = vec![granted("other")];
    other.unix = world.unix + 3_600;
    other.want(1);
    other.run();
    world.store = other.store;
    world.unix += 3_601;
    world.want(4);
    world.run();
    assert_eq!(world.token().as_deref(), Some("Bearer other"));
}

#[test]
fn a_stored_token_that_is_not_bound_is_not_sent_if_tokens_must_be() {
    let mut first = World::new(interactive());
    first.sign_in().unwrap();
    let mut later = World::new(SignInSettings { dpop: true, ..interactive() });
    later.store = first.store;
    later.tokens = vec![(200, json!({ "access_token": "t2", "token_type": "DPoP" }))];
    later.want(1);
    later.run();
    assert!(later.headers().is_none());
    assert_eq!(later.sign_in(), Ok(()));
    assert_eq!(later.token().as_deref(), Some("DPoP t2"));
}
