//! Access tokens: which are accepted, and every reason to refuse one (RFC 7519, RFC 8725, RFC 9068).

use gudgeon::auth::server::{
    jwk::{Algorithm, Jwks},
    jwt::{JwtError, JwtRules, MAX_TOKEN, ParsedJwt, VerifiedToken},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::issuer::{ISSUER, RESOURCE, Signer, UNIX, claims, key_set, text};

fn rules() -> JwtRules {
    JwtRules {
        issuer: ISSUER.into(),
        audiences: vec![RESOURCE.into()],
        algorithms: Algorithm::all(),
        leeway: 60,
    }
}

fn verify(token: &str, keys: &Jwks) -> Result<VerifiedToken, String> {
    let parsed = ParsedJwt::parse(token).map_err(ToOwned::to_owned)?;
    parsed.verify(keys, &rules(), UNIX).map_err(|error| match error {
        JwtError::UnknownKey => "unknown key".to_owned(),
        JwtError::Invalid(reason) => reason.to_owned(),
    })
}

fn refused(token: &str, keys: &Jwks, reason: &str) {
    let error = verify(token, keys).expect_err(reason);
    assert!(error.contains(reason), "{error}, not {reason}");
}

fn signer() -> (Signer, Jwks) {
    let signer = Signer::new("one");
    let keys = Jwks::read(&key_set(&[&signer])).unwrap();
    (signer, keys)
}

#[test]
fn a_valid_token_names_its_owner() {
    let (signer, keys) = signer();
    let token = verify(&signer.token(json!({})), &keys).unwrap();
    assert_eq!(token.principal.subject, "ada");
    assert_eq!(token.principal.client_id.as_deref(), Some("editor"));
    assert_eq!(token.principal.scopes.iter().collect::<Vec<_>>(), ["books:read"]);
    assert_eq!(token.principal.claims["jti"], "t");
    assert_eq!((token.expires, token.key), (Some(UNIX + 360), None));
    for typ in [json!("JWT"), json!("AT+jwt"), json!("application/at+jwt"), Value::Null] {
        let header = json!({ "alg": "ES256", "typ": typ, "kid": "one" });
        verify(&signer.sign(&header, &claims(json!({}))), &keys).unwrap();
    }
    let without_kid = signer.sign(&json!({ "alg": "ES256" }), &claims(json!({})));
    verify(&without_kid, &keys).unwrap();
}

#[test]
fn the_claims_come_in_several_forms() {
    let (signer, keys) = signer();
    for (changes, scopes) in [
        (json!({ "scope": "a b" }), vec!["a", "b"]),
        (json!({ "scope": ["a", "b c"] }), vec!["a", "b", "c"]),
        (json!({ "scope": null, "scp": ["a"] }), vec!["a"]),
        (json!({ "scope": null, "scp": "a b" }), vec!["a", "b"]),
        (json!({ "scope": 7 }), vec![]),
        (json!({ "scope": null }), vec![]),
    ] {
        let token = verify(&signer.token(changes), &keys).unwrap();
        assert_eq!(token.principal.scopes.iter().collect::<Vec<_>>(), scopes);
    }
    let azp = verify(&signer.token(json!({ "client_id": null, "azp": "app" })), &keys).unwrap();
    assert_eq!(azp.principal.client_id.as_deref(), Some("app"));
    let client = verify(&signer.token(json!({ "sub": null })), &keys).unwrap();
    assert_eq!(client.principal.subject, "editor");
    let several = json!({ "aud": ["https://other.example", RESOURCE], "exp": 1_800_000_000.5 });
    verify(&signer.token(several), &keys).unwrap();
    let bound = verify(&signer.token(json!({ "cnf": { "jkt": "x" } })), &keys).unwrap();
    assert_eq!(bound.key.as_deref(), Some("x"));
}

#[test]
fn a_token_with_wrong_claims_is_refused() {
    let (signer, keys) = signer();
    for (changes, reason) in [
        (json!({ "aud": "https://other.example" }), "another audience"),
        (json!({ "aud": ["https://other.example"] }), "another audience"),
        (json!({ "aud": "https://mcp.example.com/mcp/" }), "another audience"),
        (json!({ "aud": "https://mcp.example.com" }), "another audience"),
        (json!({ "aud": null }), "another audience"),
        (json!({ "aud": { "a": RESOURCE } }), "another audience"),
        (json!({ "iss": "https://evil.example" }), "another issuer"),
        (json!({ "iss": "https://as.example.com/a" }), "another issuer"),
        (json!({ "iss": null }), "another issuer"),
        (json!({ "exp": UNIX - 60 }), "expired"),
        (json!({ "exp": 0 }), "expired"),
        (json!({ "exp": -1 }), "expired"),
        (json!({ "exp": null }), "never expires"),
        (json!({ "exp": "2030" }), "not a number"),
        (json!({ "nbf": UNIX + 61 }), "not valid yet"),
        (json!({ "nbf": [] }), "not a number"),
        (json!({ "iat": UNIX + 61 }), "in the future"),
        (json!({ "sub": null, "client_id": null }), "no subject"),
        (json!({ "sub": "", "client_id": null }), "no subject"),
        (json!({ "cnf": { "x5t#S256": "x" } }), "bound"),
        (json!({ "cnf": { "jkt": "x", "x5t#S256": "x" } }), "bound"),
        (json!({ "cnf": { "jkt": 1 } }), "bound"),
        (json!({ "cnf": "x" }), "bound"),
    ] {
        refused(&signer.token(changes), &keys, reason);
    }
    for within_leeway in [json!({ "exp": UNIX - 59 }), json!({ "nbf": UNIX + 60 })] {
        verify(&signer.token(within_leeway), &keys).unwrap();
    }
}

#[test]
fn a_token_with_a_wrong_head_or_signature_is_refused() {
    let (signer, keys) = signer();
    let other = Signer::new("one");
    refused(&other.token(json!({})), &keys, "signature");
    refused(&Signer::new("two").token(json!({})), &keys, "unknown key");
    let good = signer.token(json!({}));
    assert!(verify(&good[..good.len() - 4], &keys).is_err(), "the signature is cut");
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let forged = text(claims(json!({ "sub": "root" })).to_string());
    refused(&format!("{header}.{forged}.{signature}"), &keys, "signature");
    refused(&format!("{message}."), &keys, "signature");
    for (header, reason) in [
        (json!({ "alg": "none" }), "algorithm"),
        (json!({ "alg": "None", "kid": "one" }), "algorithm"),
        (json!({ "alg": "HS256", "kid": "one" }), "algorithm"),
        (json!({ "alg": "RS256", "kid": "one" }), "unknown key"),
        (json!({ "alg": "EdDSA", "kid": "one" }), "unknown key"),
        (json!({ "alg": "ES256", "kid": "one", "typ": "dpop+jwt" }), "not an access token"),
        (json!({ "alg": "ES256", "kid": "one", "typ": "logout+jwt" }), "not an access token"),
        (json!({ "alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false }), "extension"),
        (json!({ "kid": "one" }), "malformed"),
        (json!([]), "malformed"),
    ] {
        refused(&signer.sign(&header, &claims(json!({}))), &keys, reason);
    }
}

/// A public key is not a secret: an HMAC made with its text must not count (RFC 8725, section 2.1).
#[test]
fn an_hmac_with_the_public_key_is_refused() {
    let (signer, keys) = signer();
    let message = format!(
        "{}.{}",
        text(json!({ "alg": "HS256", "kid": "one" }).to_string()),
        text(claims(json!({})).to_string())
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, signer.jwk().to_string().as_bytes());
    let tag = ring::hmac::sign(&key, message.as_bytes());
    refused(&format!("{message}.{}", text(tag)), &keys, "algorithm");
    // Neither does the key itself in the head of the token.
    let header = json!({ "alg": "ES256", "jwk": Signer::new("x").public(), "kid": "two" });
    refused(&Signer::new("x").sign(&header, &claims(json!({}))), &keys, "unknown key");
}

#[test]
fn an_algorithm_that_is_not_listed_is_refused() {
    let (signer, keys) = signer();
    let token = signer.token(json!({}));
    let rules = JwtRules { algorithms: vec![Algorithm::Rs256], ..rules() };
    let result = ParsedJwt::parse(&token).unwrap().verify(&keys, &rules, UNIX);
    assert!(matches!(result, Err(JwtError::Invalid(reason)) if reason.contains("algorithm")));
}

#[test]
fn text_that_is_no_token_is_refused() {
    let (signer, keys) = signer();
    let good = signer.token(json!({}));
    for token in ["", ".", "..", "...", "a.b.c", "eyJ.eyJ.x", &good.replace('.', "..")] {
        refused(token, &keys, "malformed");
    }
    let padded = signer.token(json!({ "pad": "x".repeat(MAX_TOKEN) }));
    refused(&padded, &keys, "too long");
    refused(&"x".repeat(1024 * 1024), &keys, "too long");
}

proptest! {
    /// No change of a single character leaves a token valid, and none panics.
    #[test]
    fn a_changed_token_is_refused(place in 0..400_usize, to in "[A-Za-z0-9_.=-]") {
        let (signer, keys) = signer();
        let good = signer.token(json!({}));
        let place = place % good.len();
        prop_assume!(good[place..=place] != to);
        // The last character of a signature has bits that mean nothing; base64 requires them to be zero.
        let changed = format!("{}{to}{}", &good[..place], &good[place + 1..]);
        prop_assert!(verify(&changed, &keys).is_err(), "{}", changed);
    }

    #[test]
    fn any_text_is_read_without_a_panic(header in ".{0,40}", claims in ".{0,40}") {
        let (_, keys) = signer();
        let token = format!("{}.{}.{}", text(header), text(claims), text("x"));
        prop_assert!(verify(&token, &keys).is_err());
    }
}
