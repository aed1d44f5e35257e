//! The authenticator of a server: methods, waiting requests, limits, and failures, which never admit anybody.

use std::{net::IpAddr, sync::Arc, time::Duration};

use gudgeon::{
    auth::{
        fetch::FetchError,
        scopes::ScopeHierarchy,
        server::{
            api_keys::ApiKeys,
            authenticator::{
                AuthInput, AuthOutput, AuthRefusal, Authenticator, Dpop, Jwt, Method, VerifyReply,
            },
            dpop_check::Nonces,
            keys::Keys,
        },
    },
    protocol::Principal,
};
use serde_json::{Value, json};

use crate::support::{
    authenticator::{Fixture, accepted, api_keys, fixed, introspection, invalid, jwt, refused},
    issuer::{ISSUER, RESOURCE, Signer, UNIX, key_set},
};

const KEYS: &str = "https://as.example.com/keys";

#[test]
fn a_token_is_verified_with_keys_that_are_fetched_once() {
    let signer = Signer::new("one");
    let mut fixture = Fixture::from(jwt(Keys::at(KEYS)));
    let (one, two) = (signer.token(json!({})), signer.token(json!({ "sub": "bob" })));
    let (first, second) = (fixture.pending(&one), fixture.pending(&two));
    let (id, url) = fixture.fetch();
    assert_eq!(url, KEYS);
    assert!(fixture.machine.poll().is_none());
    fixture.answer(id, 200, key_set(&[&signer]));
    assert_eq!(fixture.decided(first).unwrap().subject, "ada");
    assert_eq!(fixture.decided(second).unwrap().subject, "bob");
    let principal = accepted(fixture.bearer(&one));
    assert!(Arc::ptr_eq(&principal, &accepted(fixture.bearer(&one))), "a repeated token is known");
    assert_eq!(fixture.machine.deadline(), None);
    // A known token ends when it expires, leeway included.
    fixture.pass(359);
    accepted(fixture.bearer(&one));
    fixture.pass(1);
    invalid(&refused(fixture.bearer(&one)), "expired");
}

#[test]
fn a_new_key_is_fetched_and_an_unknown_one_only_now_and_then() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let mut fixture = Fixture::from(jwt(Keys::at(KEYS)));
    let ticket = fixture.pending(&old.token(json!({})));
    let (id, _) = fixture.fetch();
    fixture.answer(id, 200, key_set(&[&old]));
    fixture.decided(ticket).unwrap();
    fixture.pass(30);
    let ticket = fixture.pending(&new.token(json!({})));
    let (id, _) = fixture.fetch();
    fixture.answer(id, 200, key_set(&[&new]));
    fixture.decided(ticket).unwrap();
    for _ in 0..100 {
        let token = Signer::new("unknown").token(json!({}));
        invalid(&refused(fixture.bearer(&token)), "key of the token is not known");
        assert!(fixture.machine.poll().is_none());
    }
    fixture.pass(30);
    let ticket = fixture.pending(&Signer::new("unknown").token(json!({})));
    let (id, _) = fixture.fetch();
    fixture.answer(id, 200, key_set(&[&new]));
    invalid(&fixture.decided(ticket).unwrap_err(), "not known");
}

#[test]
fn an_issuer_that_fails_admits_nobody() {
    let signer = Signer::new("one");
    for failure in [
        Err(FetchError::TimedOut(Duration::from_secs(10))),
        Err(FetchError::TooLarge(1024 * 1024)),
        Ok((302, "")),
        Ok((500, "")),
        Ok((200, "{}")),
        Ok((200, r#"{"keys":[]}"#)),
    ] {
        let mut fixture = Fixture::from(jwt(Keys::at(KEYS)));
        let ticket = fixture.pending(&signer.token(json!({})));
        let (id, _) = fixture.fetch();
        let is_empty_set = failure == Ok((200, r#"{"keys":[]}"#));
        match failure {
            Err(error) => fixture.handle(AuthInput::Fetched(id, Err(error))),
            Ok((status, body)) => fixture.answer(id, status, body),
        }
        let refusal = fixture.decided(ticket).unwrap_err();
        match is_empty_set {
            true => invalid(&refusal, "not known"),
            false => assert_eq!(refusal, AuthRefusal::Unavailable),
        }
    }
}

#[test]
fn an_issuer_that_does_not_answer_is_not_waited_for_for_long() {
    let mut fixture = Fixture::from(jwt(Keys::at(KEYS)));
    let ticket = fixture.pending(&Signer::new("one").token(json!({})));
    let (id, _) = fixture.fetch();
    let deadline = fixture.machine.deadline().unwrap();
    assert!(deadline - fixture.now <= Duration::from_secs(30));
    fixture.pass(60);
    fixture.handle(AuthInput::Tick);
    assert_eq!(fixture.decided(ticket).unwrap_err(), AuthRefusal::Unavailable);
    fixture.answer(id, 200, "{}");
    assert!(fixture.machine.poll().is_none(), "it was decided already");
}

#[test]
fn the_number_of_waiting_requests_is_bounded() {
    let signer = Signer::new("one");
    let mut fixture = Fixture::from(jwt(Keys::at(KEYS)));
    let token = signer.token(json!({}));
    let tickets: Vec<_> = (0..1_000).map(|_| fixture.pending(&token)).collect();
    assert_eq!(refused(fixture.bearer(&token)), AuthRefusal::Unavailable);
    fixture.remote = Some(IpAddr::from([192, 0, 2, 1]));
    let other = fixture.pending(&token);
    fixture.handle(AuthInput::Cancelled(other));
    fixture.remote = None;
    fixture.handle(AuthInput::Cancelled(tickets[0]));
    let last = fixture.pending(&token);
    let (id, _) = fixture.fetch();
    fixture.answer(id, 200, key_set(&[&signer]));
    for ticket in tickets[1..].iter().chain([&last]) {
        fixture.decided(*ticket).unwrap();
    }
    assert!(fixture.machine.poll().is_none());
}

/// Anyone can make up tokens, each of which costs a request to the issuer.
#[test]
fn the_number_of_introspections_is_bounded() {
    let mut fixture = Fixture::from(vec![introspection()]);
    let tickets: Vec<_> =
        (0..256).map(|number| fixture.pending(&format!("opaque{number}"))).collect();
    let fetches: Vec<_> = tickets.iter().map(|_| fixture.fetch().0).collect();
    assert_eq!(refused(fixture.bearer("one-more")), AuthRefusal::Unavailable);
    assert!(fixture.machine.poll().is_none());
    fixture.remote = Some(IpAddr::from([192, 0, 2, 1]));
    let other = fixture.pending("of-another-client");
    let (asked, _) = fixture.fetch();
    fixture.answer(asked, 200, json!({ "active": false }).to_string());
    fixture.decided(other).unwrap_err();
    fixture.remote = None;
    let same = fixture.pending("opaque0");
    assert!(fixture.machine.poll().is_none());
    fixture.handle(AuthInput::Cancelled(tickets[0]));
    assert_eq!(refused(fixture.bearer("one-more")), AuthRefusal::Unavailable);
    fixture.answer(fetches[0], 200, json!({ "active": true, "sub": "eve" }).to_string());
    assert_eq!(fixture.decided(same).unwrap().subject, "eve");
    fixture.pending("one-more");
    fixture.fetch();
}

#[test]
fn a_token_is_known_at_its_resource_only() {
    const OTHER: &str = "https://mcp.example.com/other";
    let signer = Signer::new("one");
    let mut fixture = Fixture::from(fixed(&signer));
    let token = signer.token(json!({}));
    accepted(fixture.bearer(&token));
    fixture.resource = Some(OTHER);
    invalid(&refused(fixture.bearer(&token)), "audience");

    let mut fixture = Fixture::from(vec![introspection()]);
    let here = fixture.pending("opaque");
    let (first, _) = fixture.fetch();
    fixture.resource = Some(OTHER);
    let there = fixture.pending("opaque");
    let (second, _) = fixture.fetch();
    let answer = json!({ "active": true, "sub": "eve", "aud": RESOURCE }).to_string();
    fixture.answer(first, 200, answer.clone());
    fixture.decided(here).unwrap();
    fixture.answer(second, 200, answer);
    invalid(&fixture.decided(there).unwrap_err(), "audience");
}

/// Only the audience of a token, the metadata and a proof of possession need the URL of the server.
#[test]
fn a_server_without_a_known_url_verifies_what_needs_none() {
    let nowhere = |methods: Vec<Method>| Fixture { resource: None, ..methods.into() };
    let signer = Signer::new("one");
    let token = signer.token(json!({}));

    let mut fixture = nowhere(vec![api_keys("Authorization"), Method::Verify]);
    assert_eq!(accepted(fixture.bearer("k3y")).subject, "robot");
    assert_eq!(refused(fixture.check(&[])), AuthRefusal::Missing);
    fixture.pending("other");

    let own_audience = || Method::Jwt(Box::new(fixed(&signer)));
    let mut fixture = nowhere(vec![own_audience(), api_keys("Authorization")]);
    assert_eq!(accepted(fixture.bearer("k3y")).subject, "robot");
    assert_eq!(refused(fixture.bearer(&token)), AuthRefusal::UnknownUrl);
    assert_eq!(
        refused(fixture.check(&[])),
        AuthRefusal::UnknownUrl,
        "the challenge names the metadata"
    );
    assert_eq!(refused(nowhere(vec![introspection()]).bearer("opaque")), AuthRefusal::UnknownUrl);

    let named = Jwt { audiences: Some(vec![RESOURCE.into()]), ..fixed(&signer) };
    let mut fixture = nowhere(vec![Method::Jwt(Box::new(named))]);
    assert_eq!(accepted(fixture.bearer(&token)).subject, "ada");
    let bound = signer.token(json!({ "cnf": { "jkt": "x" } }));
    let proven = [("authorization", &*format!("DPoP {bound}")), ("dpop", "a.b.c")];
    assert_eq!(refused(fixture.check(&proven)), AuthRefusal::UnknownUrl);
}

#[test]
fn sets_of_keys_share_a_header() {
    let other = [("0ther".to_owned(), Principal::new("eve"))];
    let other = Method::ApiKeys(ApiKeys::new("X-Api-Key", other).unwrap());
    let mut fixture = Fixture::from(vec![api_keys("X-Api-Key"), other]);
    assert_eq!(accepted(fixture.check(&[("x-api-key", "k3y")])).subject, "robot");
    assert_eq!(accepted(fixture.check(&[("x-api-key", "0ther")])).subject, "eve");
    let both = [("x-api-key", "none"), ("authorization", "Bearer none")];
    invalid(&refused(fixture.check(&both)), "key is not known");
}

#[test]
fn credentials_come_once_and_in_a_header() {
    let signer = Signer::new("one");
    let mut fixture = Fixture::from(fixed(&signer));
    let bearer = format!("Bearer {}", signer.token(json!({})));
    accepted(fixture.check(&[("authorization", &bearer)]));
    assert_eq!(refused(fixture.check(&[])), AuthRefusal::Missing);
    assert_eq!(refused(fixture.check(&[("authorization", "Basic YTpi")])), AuthRefusal::Missing);
    for headers in [
        &[("authorization", &*bearer), ("authorization", &*bearer)][..],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer a b")],
    ] {
        assert!(matches!(refused(fixture.check(headers)), AuthRefusal::Malformed(_)));
    }
    invalid(&refused(fixture.bearer(&"x".repeat(20_000))), "too long");
    invalid(&refused(fixture.bearer("opaque")), "not known");
    for issuer in ["https://evil.example".to_owned(), format!("{ISSUER}//"), format!("{ISSUER}/a")]
    {
        let foreign = signer.token(json!({ "iss": issuer }));
        invalid(&refused(fixture.bearer(&foreign)), "another issuer");
    }
    // Some authorization servers have the slash in some places only.
    accepted(fixture.bearer(&signer.token(json!({ "iss": format!("{ISSUER}/") }))));
}

#[test]
fn methods_are_chosen_by_the_looks_of_the_credentials() {
    let signer = Signer::new("one");
    let mut fixture = Fixture::from(vec![
        Method::Jwt(Box::new(fixed(&signer))),
        introspection(),
        api_keys("X-Api-Key"),
        api_keys("Authorization"),
    ]);
    assert_eq!(accepted(fixture.bearer(&signer.token(json!({})))).subject, "ada");
    assert_eq!(accepted(fixture.bearer("k3y")).subject, "robot");
    assert_eq!(accepted(fixture.check(&[("x-api-key", "k3y")])).subject, "robot");
    invalid(&refused(fixture.check(&[("x-api-key", "other")])), "key is not known");
    let twice = refused(fixture.check(&[("x-api-key", "k3y"), ("x-api-key", "k3y")]));
    assert!(matches!(twice, AuthRefusal::Malformed(_)));
    assert!(fixture.machine.poll().is_none());

    let (one, two) = (fixture.pending("opaque"), fixture.pending("opaque"));
    let (id, url) = fixture.fetch();
    assert_eq!(url, "https://as.example.com/introspect");
    assert!(fixture.machine.poll().is_none(), "one question for all requests with a token");
    fixture.answer(id, 200, json!({ "active": true, "sub": "eve", "exp": UNIX + 30 }).to_string());
    assert_eq!(fixture.decided(one).unwrap().subject, "eve");
    assert_eq!(fixture.decided(two).unwrap().subject, "eve");
    assert_eq!(accepted(fixture.bearer("opaque")).subject, "eve");
    fixture.pass(60);
    fixture.pending("opaque");
    let (id, _) = fixture.fetch();
    fixture.answer(id, 200, r#"{"active":false}"#);
    let Some(AuthOutput::Decided(_, Err(refusal))) = fixture.machine.poll() else { panic!() };
    invalid(&refusal, "not active");
}

#[test]
fn an_introspected_token_for_another_resource_is_refused() {
    let mut fixture = Fixture::from(vec![introspection()]);
    for (answer, is_accepted) in [
        (json!({ "active": true, "sub": "eve", "aud": "https://other.example" }), false),
        (json!({ "active": true, "sub": "eve", "aud": RESOURCE }), true),
    ] {
        let ticket = fixture.pending("opaque");
        let (id, _) = fixture.fetch();
        fixture.answer(id, 200, answer.to_string());
        assert_eq!(fixture.decided(ticket).is_ok(), is_accepted);
    }
    let ticket = fixture.pending("other");
    let (id, _) = fixture.fetch();
    fixture.answer(id, 401, "{}");
    assert_eq!(fixture.decided(ticket).unwrap_err(), AuthRefusal::Unavailable);
}

#[test]
fn a_function_of_the_host_that_fails_admits_nobody() {
    let mut fixture = Fixture::from(vec![Method::Verify, Method::Verify]);
    let asked = |fixture: &mut Fixture| match fixture.machine.poll() {
        Some(AuthOutput::Verify { ticket, method, token }) => {
            assert_eq!(token.expose(), "opaque");
            (ticket, method)
        }
        other => panic!("{other:?}"),
    };
    let ticket = fixture.pending("opaque");
    assert_eq!(asked(&mut fixture), (ticket, 0));
    fixture.handle(AuthInput::Verified(ticket, VerifyReply::Unknown));
    assert_eq!(asked(&mut fixture), (ticket, 1));
    let principal = Box::new(Principal::new("ada"));
    fixture.handle(AuthInput::Verified(ticket, VerifyReply::Principal(principal)));
    assert_eq!(fixture.decided(ticket).unwrap().subject, "ada");
    // A late reply changes nothing.
    let principal = Box::new(Principal::new("eve"));
    fixture.handle(AuthInput::Verified(ticket, VerifyReply::Principal(principal)));
    assert!(fixture.machine.poll().is_none());

    let ticket = fixture.pending("opaque");
    asked(&mut fixture);
    fixture.handle(AuthInput::Verified(ticket, VerifyReply::Failed));
    assert_eq!(fixture.decided(ticket).unwrap_err(), AuthRefusal::Failed);

    let ticket = fixture.pending("opaque");
    asked(&mut fixture);
    fixture.handle(AuthInput::Verified(ticket, VerifyReply::Invalid("it is blocked".into())));
    asked(&mut fixture);
    fixture.handle(AuthInput::Verified(ticket, VerifyReply::Unknown));
    invalid(&fixture.decided(ticket).unwrap_err(), "it is blocked");

    let ticket = fixture.pending("opaque");
    asked(&mut fixture);
    fixture.pass(60);
    fixture.handle(AuthInput::Tick);
    assert_eq!(fixture.decided(ticket).unwrap_err(), AuthRefusal::Failed);
}

/// 2026-07-28, "Runtime Insufficient Scope Errors": all scopes of the operation at once.
#[test]
fn every_request_needs_the_scopes() {
    let signer = Signer::new("one");
    let scopes = vec!["books:read".to_owned(), "books:write".to_owned()];
    let methods = || vec![Method::Jwt(Box::new(Jwt { scopes: scopes.clone(), ..fixed(&signer) }))];
    let mut fixture = Fixture::from(methods());
    let refusal = refused(fixture.bearer(&signer.token(json!({}))));
    let AuthRefusal::InsufficientScope { scopes: needed, .. } = refusal else {
        panic!("{refusal:?}")
    };
    assert_eq!(needed, scopes);
    accepted(fixture.bearer(&signer.token(json!({ "scope": "books:write books:read" }))));
    let hierarchy = ScopeHierarchy::new([("books:write", ["books:read"])]);
    fixture.machine = Authenticator::new(methods(), hierarchy);
    accepted(fixture.bearer(&signer.token(json!({ "scope": "books:write" }))));
    assert_eq!(fixture.machine.facts().scopes, scopes);
    assert_eq!(fixture.machine.facts().issuers, [ISSUER]);
}

#[test]
fn a_bound_token_needs_a_proof_that_is_used_once() {
    let (signer, holder) = (Signer::new("one"), Signer::new("holder"));
    let mut fixture = Fixture::from(fixed(&signer));
    let token = signer.token(json!({ "cnf": { "jkt": holder.thumbprint() } }));
    invalid(&refused(fixture.bearer(&token)), "scheme DPoP");
    let with_proof = |fixture: &mut Fixture, token: &str, changes: Value| {
        let proof = holder.proof(token, changes);
        fixture.check(&[("authorization", &format!("DPoP {token}")), ("dpop", &proof)])
    };
    accepted(with_proof(&mut fixture, &token, json!({})));
    for (changes, reason) in [
        (json!({}), "used before"),
        (json!({ "jti": "2", "htm": "GET" }), "another method"),
        (json!({ "jti": "3", "htu": "https://mcp.example.com/x" }), "another URL"),
    ] {
        let refusal = refused(with_proof(&mut fixture, &token, changes));
        assert!(
            matches!(&refusal, AuthRefusal::InvalidProof(message) if message.contains(reason)),
            "{refusal:?}"
        );
    }
    let unbound = signer.token(json!({}));
    invalid(&refused(with_proof(&mut fixture, &unbound, json!({}))), "not bound");
    accepted(fixture.bearer(&unbound));

    let mut fixture = Fixture::from(Jwt { dpop: Dpop::Off, ..fixed(&signer) });
    invalid(&refused(with_proof(&mut fixture, &token, json!({}))), "not accepted here");
    let mut fixture = Fixture::from(Jwt { dpop: Dpop::Required, ..fixed(&signer) });
    invalid(&refused(fixture.bearer(&unbound)), "has to be bound");
    accepted(with_proof(&mut fixture, &token, json!({})));
    assert!(fixture.machine.needs_dpop() && fixture.machine.facts().needs_dpop);

    let mut fixture = Fixture::from(Jwt { dpop: Dpop::WithNonce, ..fixed(&signer) });
    let machine = Authenticator::new(
        vec![Method::Jwt(Box::new(Jwt { dpop: Dpop::WithNonce, ..fixed(&signer) }))],
        ScopeHierarchy::default(),
    );
    fixture.machine = machine.with_nonces(Nonces::new(["key"]));
    let AuthRefusal::NeedsNonce(nonce) = refused(with_proof(&mut fixture, &token, json!({})))
    else {
        panic!("a nonce is needed")
    };
    accepted(with_proof(&mut fixture, &token, json!({ "nonce": nonce })));
}
