//! Proofs of possession that several servers remember in one store (RFC 9449, section 11.1), and a store that fails.

use std::{net::IpAddr, time::Duration};

use gudgeon::{
    auth::server::{
        authenticator::{
            AuthInput, AuthOutput, AuthRefusal, AuthTicket, Checked, Dpop, Jwt, Method,
        },
        dpop_check::MAX_SKEW,
        keys::Keys,
    },
    store::{Expect, StoreOperation, StoreReply, memory::Memory},
};
use serde_json::json;

use crate::support::{
    authenticator::{Fixture, accepted, fixed, introspection, invalid, jwt, refused},
    issuer::{Signer, UNIX, key_set},
};

/// An issuer, and the holder of a token that is bound to its key.
struct Parties {
    issuer: Signer,
    holder: Signer,
    token: String,
}

impl Parties {
    fn new() -> Self {
        let (issuer, holder) = (Signer::new("one"), Signer::new("holder"));
        let token = issuer.token(json!({ "cnf": { "jkt": holder.thumbprint() } }));
        Self { issuer, holder, token }
    }

    /// A server that has verified the token before, without a store.
    fn server(&self) -> Fixture {
        let mut fixture = Fixture::from(fixed(&self.issuer));
        fixture.machine = fixture.machine.with_store();
        fixture
    }

    fn check(&self, fixture: &mut Fixture, proof: &str) -> Checked {
        let authorization = format!("DPoP {}", self.token);
        fixture.check(&[("authorization", &authorization), ("dpop", proof)])
    }

    fn proof(&self, id: &str) -> String {
        self.holder.proof(&self.token, json!({ "jti": id }))
    }

    /// Sends a request that waits for the store. Returns what the store is asked.
    fn asks(&self, fixture: &mut Fixture, proof: &str) -> (AuthTicket, StoreOperation) {
        let ticket = match self.check(fixture, proof) {
            Checked::Pending(ticket) => ticket,
            other => panic!("{other:?}"),
        };
        (ticket, operation(fixture, ticket))
    }
}

fn operation(fixture: &mut Fixture, ticket: AuthTicket) -> StoreOperation {
    match fixture.machine.poll() {
        Some(AuthOutput::Store(other, operation)) if other == ticket => operation,
        other => panic!("{other:?}"),
    }
}

fn used_before(refusal: &AuthRefusal) {
    assert_eq!(*refusal, AuthRefusal::InvalidProof("the DPoP proof was used before".into()));
}

#[test]
fn a_proof_that_was_used_at_one_server_is_refused_at_another() {
    let parties = Parties::new();
    let (mut memory, mut one, mut other) = (Memory::default(), parties.server(), parties.server());
    other.now = one.now;
    let mut send = |fixture: &mut Fixture, proof: &str| {
        let (ticket, operation) = parties.asks(fixture, proof);
        let reply = memory.handle(fixture.now, operation);
        fixture.handle(AuthInput::Stored(ticket, reply));
        fixture.decided(ticket)
    };
    let proof = parties.proof("1");
    assert_eq!(send(&mut one, &proof).unwrap().subject, "ada");
    used_before(&send(&mut other, &proof).unwrap_err());
    used_before(&send(&mut one, &proof).unwrap_err());
    assert_eq!(send(&mut other, &parties.proof("2")).unwrap().subject, "ada");
    // A server that was started again.
    let mut restarted = parties.server();
    restarted.now = one.now;
    used_before(&send(&mut restarted, &proof).unwrap_err());
    // As long as a server, whose clock may be slow, accepts the proof.
    other.pass(MAX_SKEW);
    used_before(&send(&mut other, &proof).unwrap_err());
}

#[test]
fn the_store_sees_a_digest_for_as_long_as_the_proof_is_accepted() {
    let parties = Parties::new();
    let mut keys = Vec::new();
    for (changes, seconds) in [
        (json!({ "jti": "s3cret" }), MAX_SKEW),
        (json!({ "jti": "s3cret", "iat": UNIX + MAX_SKEW }), 2 * MAX_SKEW),
        (json!({ "jti": "other", "iat": UNIX - MAX_SKEW }), 0),
        (json!({ "jti": "other", "iat": 1_800_000_000.5 }), MAX_SKEW + 1),
        (json!({ "jti": "other", "htu": "https://mcp.example.com:443/mcp" }), MAX_SKEW),
    ] {
        let proof = parties.holder.proof(&parties.token, changes);
        let (_, operation) = parties.asks(&mut parties.server(), &proof);
        let StoreOperation::Put { key, value, ttl, expect } = operation else {
            panic!("{operation:?}")
        };
        assert_eq!((ttl, expect), (Duration::from_secs(seconds + 60), Expect::Absent));
        assert!(key.starts_with("gudgeon:dpop:") && key.len() == 56, "{key}");
        assert!(!key.contains("s3cret") && value == b"1");
        keys.push(key);
    }
    assert!(keys[0] == keys[1] && keys[2] == keys[3], "the id is the same");
    assert!(keys[1] != keys[2] && keys[3] != keys[4], "another id, or another URL");
    let other = Parties { holder: Signer::new("other"), ..parties };
    let token = other.issuer.token(json!({ "cnf": { "jkt": other.holder.thumbprint() } }));
    let other = Parties { token, ..other };
    let (_, operation) = other.asks(&mut other.server(), &other.proof("s3cret"));
    assert!(!format!("{operation:?}").contains(&keys[0]), "another key");
}

#[test]
fn a_store_that_fails_admits_nobody() {
    let parties = Parties::new();
    for reply in [
        StoreReply::Failed("it is away".into()),
        StoreReply::Found(None),
        StoreReply::Found(Some((b"1".into(), 1))),
        StoreReply::Taken(None),
    ] {
        let mut fixture = parties.server();
        let (ticket, _) = parties.asks(&mut fixture, &parties.proof("1"));
        fixture.handle(AuthInput::Stored(ticket, reply));
        assert_eq!(fixture.decided(ticket).unwrap_err(), AuthRefusal::Unavailable);
        assert_eq!(fixture.machine.deadline(), None);
    }
}

#[test]
fn a_store_that_does_not_answer_is_not_waited_for_for_long() {
    let parties = Parties::new();
    let mut fixture = parties.server();
    let (ticket, _) = parties.asks(&mut fixture, &parties.proof("1"));
    assert_eq!(fixture.machine.deadline(), Some(fixture.now + Duration::from_secs(15)));
    fixture.pass(14);
    fixture.handle(AuthInput::Tick);
    assert!(fixture.machine.poll().is_none());
    fixture.pass(1);
    fixture.handle(AuthInput::Tick);
    assert_eq!(fixture.decided(ticket).unwrap_err(), AuthRefusal::Unavailable);
    for _ in 0..2 {
        fixture.handle(AuthInput::Stored(ticket, StoreReply::Stored(1)));
        assert!(fixture.machine.poll().is_none(), "it was decided already");
    }
}

#[test]
fn a_reply_for_a_request_that_waits_for_something_else_is_ignored() {
    let parties = Parties::new();
    let mut fixture = Fixture::from(jwt(Keys::at("https://as.example.com/keys")));
    fixture.machine = fixture.machine.with_store();
    let ticket = match parties.check(&mut fixture, &parties.proof("1")) {
        Checked::Pending(ticket) => ticket,
        other => panic!("{other:?}"),
    };
    let (id, _) = fixture.fetch();
    fixture.handle(AuthInput::Stored(ticket, StoreReply::Stored(1)));
    assert!(fixture.machine.poll().is_none());
    fixture.answer(id, 200, key_set(&[&parties.issuer]));
    let operation = operation(&mut fixture, ticket);
    assert!(matches!(operation, StoreOperation::Put { .. }));
    fixture.handle(AuthInput::Stored(ticket, StoreReply::Stored(1)));
    assert_eq!(fixture.decided(ticket).unwrap().subject, "ada");
}

#[test]
fn an_introspected_token_waits_for_the_store_as_well() {
    let parties = Parties::new();
    let mut fixture = Fixture::from(vec![introspection()]);
    fixture.machine = fixture.machine.with_store();
    let proofs = [parties.proof("1"), parties.proof("1")];
    let tickets = proofs.map(|proof| match parties.check(&mut fixture, &proof) {
        Checked::Pending(ticket) => ticket,
        other => panic!("{other:?}"),
    });
    let (id, _) = fixture.fetch();
    let jkt = parties.holder.thumbprint();
    let answer = json!({ "active": true, "sub": "ada", "cnf": { "jkt": jkt } });
    fixture.answer(id, 200, answer.to_string());
    let asked = tickets.map(|ticket| operation(&mut fixture, ticket));
    assert_eq!(asked[0], asked[1]);
    fixture.handle(AuthInput::Stored(tickets[1], StoreReply::Stored(1)));
    assert_eq!(fixture.decided(tickets[1]).unwrap().subject, "ada");
    fixture.handle(AuthInput::Stored(tickets[0], StoreReply::Conflict));
    used_before(&fixture.decided(tickets[0]).unwrap_err());
}

#[test]
fn only_proofs_of_accepted_tokens_are_stored() {
    let parties = Parties::new();
    let mut fixture = parties.server();
    accepted(fixture.bearer(&parties.issuer.token(json!({}))));
    invalid(&refused(fixture.bearer(&parties.token)), "send it with the scheme DPoP");
    let foreign = Parties::new();
    let signed_by_another = foreign.holder.proof(&parties.token, json!({}));
    assert!(matches!(
        refused(parties.check(&mut fixture, &signed_by_another)),
        AuthRefusal::InvalidProof(_)
    ));
    invalid(&refused(foreign.check(&mut fixture, &foreign.proof("1"))), "signature");
    let jwt =
        Jwt { scopes: vec!["books:write".into()], dpop: Dpop::Required, ..fixed(&parties.issuer) };
    let mut strict = Fixture::from(vec![Method::Jwt(Box::new(jwt))]);
    strict.machine = strict.machine.with_store();
    let refusal = refused(parties.check(&mut strict, &parties.proof("2")));
    assert!(matches!(refusal, AuthRefusal::InsufficientScope { .. }));
    assert!(fixture.machine.poll().is_none() && strict.machine.poll().is_none());
}

#[test]
fn the_number_of_requests_that_wait_for_the_store_is_bounded() {
    let parties = Parties::new();
    let mut fixture = parties.server();
    let (first, _) = parties.asks(&mut fixture, &parties.proof("0"));
    for number in 1..1_000 {
        parties.asks(&mut fixture, &parties.proof(&number.to_string()));
    }
    let more = parties.proof("more");
    assert_eq!(refused(parties.check(&mut fixture, &more)), AuthRefusal::Unavailable);
    assert!(fixture.machine.poll().is_none(), "the store is not asked about it");
    fixture.remote = Some(IpAddr::from([192, 0, 2, 1]));
    parties.asks(&mut fixture, &more);
    fixture.remote = None;
    fixture.handle(AuthInput::Cancelled(first));
    fixture.handle(AuthInput::Stored(first, StoreReply::Stored(1)));
    assert!(fixture.machine.poll().is_none(), "its sender has left");
}
