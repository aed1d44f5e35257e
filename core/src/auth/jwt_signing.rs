//! JWTs that a client signs: assertions by which it authenticates (RFC 7523), and proofs of possession (RFC 9449).

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
        RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaEncoding,
    },
};
use serde_json::{Value, json};

use crate::error::{Error, ErrorKind};

/// The lifetime of an assertion, in seconds.
const ASSERTION_TIME: u64 = 60;

/// A private key and its algorithm.
pub(super) struct SigningKey {
    algorithm: String,
    pair: Pair,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(rsa::KeyPair, &'static dyn RsaEncoding),
}

impl SigningKey {
    /// Reads a private key in PKCS#8, as PEM, or an RSA key in PKCS#1. Errors if the key does not fit the algorithm:
    /// `ES256`, `ES384`, `RS256`, `RS384`, `RS512`, `PS256` or `EdDSA`.
    pub(super) fn from_pem(pem: &str, algorithm: &str) -> Result<Self, Error> {
        let (label, der) = read_pem(pem)?;
        match label.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&der, algorithm),
            "RSA PRIVATE KEY" => match encoding(algorithm) {
                Some(encoding) => {
                    let pair = rsa::KeyPair::from_der(&der)
                        .map_err(|error| unusable_key(algorithm, &error))?;
                    Ok(Self { algorithm: algorithm.to_owned(), pair: Pair::Rsa(pair, encoding) })
                }
                None => Err(unusable_key(algorithm, &"it is an RSA key")),
            },
            other => Err(Error::misuse(format!(
                "private_key: the PEM block is {other:?}; convert the key to PKCS#8: openssl pkcs8 -topk8 -nocrypt"
            ))),
        }
    }

    /// Reads a private key in PKCS#8, as DER.
    pub(super) fn from_pkcs8(der: &[u8], algorithm: &str) -> Result<Self, Error> {
        let ecdsa = |curve: &'static EcdsaSigningAlgorithm| {
            EcdsaKeyPair::from_pkcs8(curve, der, &SystemRandom::new()).map(Pair::Ecdsa)
        };
        let pair = match (algorithm, encoding(algorithm)) {
            ("ES256", _) => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            ("ES384", _) => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ("EdDSA", _) => Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Pair::Ed25519),
            (_, Some(encoding)) => {
                rsa::KeyPair::from_pkcs8(der).map(|pair| Pair::Rsa(pair, encoding))
            }
            _ => {
                return Err(Error::misuse(format!(
                    "algorithm: {algorithm:?} is not supported; use ES256, ES384, RS256, RS384, RS512, PS256 or EdDSA"
                )));
            }
        };
        let pair = pair.map_err(|error| unusable_key(algorithm, &error))?;
        Ok(Self { algorithm: algorithm.to_owned(), pair })
    }

    /// Signs a JWT with these additional members of its header.
    ///
    /// The signatures of ECDSA and PSS contain random bytes, which the library takes from the system.
    pub(super) fn sign(&self, header: &Value, claims: &Value) -> Result<String, Error> {
        let mut full = json!({ "alg": self.algorithm });
        if let (Some(full), Some(header)) = (full.as_object_mut(), header.as_object()) {
            full.extend(header.clone());
        }
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&full), encode(claims));
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Ecdsa(pair) => {
                pair.sign(&random, message.as_bytes()).map(|signature| signature.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Ok(pair.sign(message.as_bytes()).as_ref().to_vec()),
            Pair::Rsa(pair, encoding) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*encoding, &random, message.as_bytes(), &mut signature)
                    .map(|()| signature)
            }
        };
        let signature =
            signature.map_err(|_| Error::new(ErrorKind::Auth, "the key could not sign"))?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the public point of a P-256 key, its coordinates encoded for a JWK.
    pub(super) fn point(&self) -> Option<(String, String)> {
        let Pair::Ecdsa(pair) = &self.pair else { return None };
        let point = pair.public_key().as_ref().strip_prefix(&[4])?;
        let (x, y) = point.split_at_checked(32).filter(|(_, y)| y.len() == 32)?;
        Some((URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y)))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.algorithm)
    }
}

/// Creates a private key for ES256, in PKCS#8. Its random bytes are the system's, because the library takes no others.
pub(super) fn generate_key() -> Result<Vec<u8>, Error> {
    EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map(|key| key.as_ref().to_vec())
        .map_err(|_| Error::new(ErrorKind::Auth, "the system has no random bytes for a key"))
}

/// Returns the assertion by which a client authenticates (RFC 7523, section 2.2).
pub(super) fn client_assertion(
    key: &SigningKey,
    client_id: &str,
    audience: &str,
    unix: u64,
    id: &str,
) -> Result<String, Error> {
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": audience, "jti": id, "iat": unix,
        "exp": unix + ASSERTION_TIME,
    });
    key.sign(&json!({ "typ": "JWT" }), &claims)
}

fn encoding(algorithm: &str) -> Option<&'static dyn RsaEncoding> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_SHA256,
        "RS384" => &RSA_PKCS1_SHA384,
        "RS512" => &RSA_PKCS1_SHA512,
        "PS256" => &RSA_PSS_SHA256,
        _ => return None,
    })
}

fn unusable_key(algorithm: &str, reason: &dyn std::fmt::Display) -> Error {
    Error::misuse(format!("private_key: the key can't be used with {algorithm} ({reason})"))
        .with_hint("pass the algorithm of the key")
}

/// Returns the label and the content of the first PEM block.
fn read_pem(pem: &str) -> Result<(String, Vec<u8>), Error> {
    let invalid = || {
        Error::misuse(
            "private_key: it is not a private key in PEM; it begins with -----BEGIN PRIVATE KEY-----",
        )
    };
    let (_, rest) = pem.split_once("-----BEGIN ").ok_or_else(invalid)?;
    let (label, rest) = rest.split_once("-----").ok_or_else(invalid)?;
    let (body, _) = rest.split_once("-----END ").ok_or_else(invalid)?;
    let body: String = body.split_whitespace().collect();
    Ok((label.to_owned(), STANDARD.decode(body).map_err(|_| invalid())?))
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey};

    use super::*;

    fn pem(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    }

    fn parts(jwt: &str) -> (String, Vec<u8>, Value, Value) {
        let [header, claims, signature] = jwt.split('.').collect::<Vec<_>>()[..] else {
            panic!("{jwt}")
        };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let json = |part: &str| serde_json::from_slice(&decode(part)).unwrap();
        (format!("{header}.{claims}"), decode(signature), json(header), json(claims))
    }

    #[test]
    fn an_assertion_is_signed_with_the_key() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = SigningKey::from_pem(&pem("PRIVATE KEY", der.as_ref()), "ES256").unwrap();
        let jwt = client_assertion(&key, "me", "https://as.example.com", 1_000, "one").unwrap();
        let (message, signature, header, claims) = parts(&jwt);
        let Pair::Ecdsa(pair) = &key.pair else { panic!() };
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key())
            .verify(message.as_bytes(), &signature)
            .unwrap();
        assert_eq!(header, json!({ "alg": "ES256", "typ": "JWT" }));
        let expected = json!({
            "iss": "me", "sub": "me", "aud": "https://as.example.com", "jti": "one", "iat": 1_000, "exp": 1_060,
        });
        assert_eq!(claims, expected);
        assert_eq!(format!("{key:?}"), "SigningKey(ES256)");
        assert!(SigningKey::from_pkcs8(der.as_ref(), "RS256").is_err());
    }

    #[test]
    fn an_edwards_key_signs() {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = SigningKey::from_pkcs8(der.as_ref(), "EdDSA").unwrap();
        let (message, signature, ..) = parts(&key.sign(&json!({}), &json!({})).unwrap());
        let Pair::Ed25519(pair) = &key.pair else { panic!() };
        UnparsedPublicKey::new(&ED25519, pair.public_key())
            .verify(message.as_bytes(), &signature)
            .unwrap();
    }

    #[test]
    fn an_unusable_key_is_an_error_that_says_why() {
        for (text, algorithm, expected) in [
            ("s3cret", "ES256", "PEM"),
            (&pem("PRIVATE KEY", b"s3cret"), "ES256", "ES256"),
            (&pem("PRIVATE KEY", b"s3cret"), "HS256", "not supported"),
            (&pem("PRIVATE KEY", b"s3cret"), "none", "not supported"),
            (&pem("EC PRIVATE KEY", b"s3cret"), "ES256", "pkcs8"),
            (&pem("RSA PRIVATE KEY", b"s3cret"), "ES256", "RSA"),
            (&pem("RSA PRIVATE KEY", b"s3cret"), "RS256", "RS256"),
        ] {
            let error = SigningKey::from_pem(text, algorithm).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
