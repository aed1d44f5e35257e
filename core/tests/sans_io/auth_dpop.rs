//! Proofs of possession: every check of RFC 9449, section 4.3.

use gudgeon::auth::server::dpop_check::{Expected, MAX_SKEW, Nonces, ProofError, check};
use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::issuer::{RESOURCE, Signer, UNIX};

const TOKEN: &str = "the-token";

fn headers(proofs: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for proof in proofs {
        headers.append("dpop", HeaderValue::try_from(*proof).unwrap());
    }
    headers
}

fn checked(
    signer: &Signer,
    headers: &HeaderMap,
    nonces: Option<&Nonces>,
) -> Result<(), ProofError> {
    let key = signer.thumbprint();
    let (method, url) = (&Method::POST, RESOURCE);
    check(headers, Expected { method, url, token: TOKEN, key: &key, unix: UNIX }, nonces).map(drop)
}

fn refused(signer: &Signer, proofs: &[&str], reason: &str) {
    match checked(signer, &headers(proofs), None) {
        Err(ProofError::Invalid(error)) => assert!(error.contains(reason), "{error}, not {reason}"),
        other => panic!("{other:?}, not {reason}"),
    }
}

#[test]
fn a_proof_for_the_request_is_accepted() {
    let signer = Signer::new("one");
    for changes in [
        json!({}),
        json!({ "htu": "https://MCP.example.com:443/mcp?a#b" }),
        json!({ "iat": UNIX - MAX_SKEW }),
        json!({ "iat": UNIX + MAX_SKEW }),
        json!({ "more": 1, "nonce": "of somebody else" }),
    ] {
        checked(&signer, &headers(&[&signer.proof(TOKEN, changes)]), None).unwrap();
    }
}

#[test]
fn a_proof_for_another_request_is_refused() {
    let signer = Signer::new("one");
    for (changes, reason) in [
        (json!({ "htm": "GET" }), "another method"),
        (json!({ "htm": "post" }), "another method"),
        (json!({ "htu": "https://mcp.example.com/other" }), "another URL"),
        (json!({ "htu": "http://mcp.example.com/mcp" }), "another URL"),
        (json!({ "htu": "/mcp" }), "another URL"),
        (json!({ "iat": UNIX - MAX_SKEW - 1 }), "too old"),
        (json!({ "iat": UNIX + MAX_SKEW + 1 }), "too old"),
        (json!({ "ath": "x" }), "another token"),
        (json!({ "ath": null }), "another token"),
        (json!({ "jti": "" }), "no usable jti"),
        (json!({ "jti": "x".repeat(513) }), "no usable jti"),
        (json!({ "jti": null }), "malformed"),
        (json!({ "htm": null }), "malformed"),
        (json!({ "iat": "now" }), "malformed"),
    ] {
        refused(&signer, &[&signer.proof(TOKEN, changes)], reason);
    }
    refused(&signer, &[], "no DPoP proof");
    let proof = signer.proof(TOKEN, json!({}));
    refused(&signer, &[&proof, &proof], "more than one");
    refused(&signer, &[&signer.proof("other", json!({}))], "another token");
    for text in ["", "x", "a.b.c", &"x".repeat(20_000)] {
        refused(&signer, &[text], "malformed");
    }
}

#[test]
fn a_proof_by_another_key_is_refused() {
    let (signer, thief) = (Signer::new("one"), Signer::new("two"));
    refused(&signer, &[&thief.proof(TOKEN, json!({}))], "another key");
    let claims = |proof: &str| -> Value {
        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        let claims = URL_SAFE_NO_PAD.decode(proof.split('.').nth(1).unwrap()).unwrap();
        serde_json::from_slice(&claims).unwrap()
    };
    let claims = claims(&signer.proof(TOKEN, json!({})));
    let mut private = signer.public();
    private["d"] = json!("AAAA");
    for (header, reason) in [
        (json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": signer.public() }), "signature"),
        (json!({ "typ": "JWT", "alg": "ES256", "jwk": thief.public() }), "another type"),
        (json!({ "alg": "ES256", "jwk": thief.public() }), "another type"),
        (json!({ "typ": "dpop+jwt", "alg": "none", "jwk": thief.public() }), "algorithm"),
        (json!({ "typ": "dpop+jwt", "alg": "HS256", "jwk": thief.public() }), "algorithm"),
        (json!({ "typ": "dpop+jwt", "alg": "RS256", "jwk": signer.public() }), "signature"),
        (json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": private }), "no public key"),
        (
            json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": { "kty": "oct", "k": "AA" } }),
            "no public",
        ),
        (json!({ "typ": "dpop+jwt", "alg": "ES256" }), "malformed"),
        (
            json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": signer.public(), "crit": ["x"] }),
            "extension",
        ),
    ] {
        refused(&signer, &[&thief.sign(&header, &claims)], reason);
    }
}

#[test]
fn a_proof_without_a_fresh_nonce_is_asked_for_again() {
    let (signer, nonces) = (Signer::new("one"), Nonces::new(["key"]));
    let with = |nonce: Value| headers(&[&signer.proof(TOKEN, json!({ "nonce": nonce }))]);
    let fresh = nonces.make(UNIX - 10).unwrap();
    checked(&signer, &with(json!(fresh)), Some(&nonces)).unwrap();
    let old = nonces.make(UNIX - 400).unwrap();
    let foreign = Nonces::new(["other"]).make(UNIX).unwrap();
    for nonce in [json!(null), json!("x"), json!(old), json!(foreign)] {
        let result = checked(&signer, &with(nonce), Some(&nonces));
        assert_eq!(result, Err(ProofError::NeedsNonce));
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_without_a_panic(proof in "[ -~]{0,200}") {
        let signer = Signer::new("one");
        prop_assert!(checked(&signer, &headers(&[&proof]), None).is_err());
    }
}
