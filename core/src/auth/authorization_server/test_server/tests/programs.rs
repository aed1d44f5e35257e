//! Clients with credentials of their own, assertions, proofs of possession, introspection and revocation.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};

use super::{
    super::{
        super::{generate_key, key_pair},
        *,
    },
    world::{
        BACK, ISSUER, MCP, VERIFIER, World, assert_refused, authorization, get, options, parsed,
        post, read, redemption, refreshing,
    },
};
use crate::auth::{
    fetch::encode_form,
    jwt_signing::{SigningKey, client_assertion},
    pkce,
    registered_names::{CLIENT_ASSERTION, ID_JAG, ID_TOKEN, JWT_BEARER, TOKEN_EXCHANGE},
};

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
    let signed = |assertion: &str| {
        with(&[("client_assertion_type", CLIENT_ASSERTION), ("client_assertion", assertion)])
    };
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
        // Its use is not remembered for so long.
        (signed(&assertion(ISSUER, "four", world.unix + 1_000)), None, "invalid_client"),
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
        let TestServerStep::Fetch(fetch) = world.step(&request) else { panic!() };
        assert_eq!(fetch.url, listed);
        let moment = world.moment();
        match world.server.resume(&moment, &request, listed, &answer) {
            TestServerStep::Respond(response) => assert_eq!(response.status, status),
            TestServerStep::Fetch(fetch) => panic!("{fetch:?}"),
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
    let identity = idp.server.identity_token(&at, Some("ada"), "app", 60.0).unwrap();
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
    let other = idp.server.identity_token(&at, Some("ada"), "other", 60.0).unwrap();
    let expired = idp.server.identity_token(&at, Some("ada"), "app", -600.0).unwrap();
    let access = idp
        .server
        .token(&at, parsed(&json!({"clientId":"app","audience":"app"})).unwrap())
        .unwrap();
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
                TestServerStep::Respond(response) => return (read(&response), fetched),
                TestServerStep::Fetch(fetch) => {
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
        let order = json!({ "clientId": "w", "subject": "workload", "audience": ISSUER });
        let token = platform.server.token(&at, parsed(&order).unwrap()).unwrap();
        let fields = [("grant_type", JWT_BEARER), ("assertion", token.as_str()), ("resource", MCP)];
        let request = post("/token", &fields);
        let mut step = world.step(&request);
        let response = loop {
            match step {
                TestServerStep::Respond(response) => break response,
                TestServerStep::Fetch(fetch) => {
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
    let token = platform.server.token(&at, parsed(&json!({"clientId":"w"})).unwrap()).unwrap();
    assert_refused(
        &world.token(&[("grant_type", JWT_BEARER), ("assertion", &token)]),
        "invalid_grant",
    );
    let mut stranger = World::at("http://127.0.0.1:9003", &json!({}));
    let at = stranger.moment();
    let order = json!({ "clientId": "w", "audience": ISSUER });
    let token = stranger.server.token(&at, parsed(&order).unwrap()).unwrap();
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
