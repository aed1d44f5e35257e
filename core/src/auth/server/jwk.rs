//! Public keys as JSON (RFC 7517), sets of them, and signatures (RFC 7518, RFC 8037).

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{auth::fetch::MAX_KEY_SET, protocol::json};

/// The maximum number of keys in a set.
const MAX_KEYS: usize = 10_000;
/// The maximum number of keys that are tried for one token: those with its `kid`, or all if neither has one.
const MAX_TRIED: usize = 8;
/// The sizes of RSA keys, in bytes.
const RSA_SIZES: std::ops::RangeInclusive<usize> = 256..=1024;

/// An asymmetric signature algorithm. `none` and the algorithms with a shared secret do not exist here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::Rs256),
    ("RS384", Algorithm::Rs384),
    ("RS512", Algorithm::Rs512),
    ("PS256", Algorithm::Ps256),
    ("PS384", Algorithm::Ps384),
    ("PS512", Algorithm::Ps512),
    ("ES256", Algorithm::Es256),
    ("ES384", Algorithm::Es384),
    ("EdDSA", Algorithm::EdDsa),
];

impl Algorithm {
    /// Returns all algorithms.
    pub fn all() -> Vec<Self> {
        ALGORITHMS.map(|(_, algorithm)| algorithm).to_vec()
    }

    /// Returns the algorithm with this name; `Ed25519` is another name of `EdDSA` (RFC 9864).
    pub fn named(name: &str) -> Option<Self> {
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        ALGORITHMS.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
    }

    pub fn name(self) -> &'static str {
        ALGORITHMS.iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }
}

/// A public key. It verifies signatures with one algorithm, or for RSA with a family of algorithms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Jwk {
    kid: Option<String>,
    /// The algorithm that the key names as its only one.
    algorithm: Option<Algorithm>,
    key: PublicKey,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum PublicKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A set of keys, indexed by `kid`.
#[derive(Clone, Debug, Default)]
pub struct Jwks {
    named: HashMap<String, Vec<Jwk>>,
    unnamed: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Members {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// Present in private keys and shared secrets.
    d: Option<Value>,
    k: Option<Value>,
}

impl Jwk {
    /// Reads a public key. Errors if it is of an unknown kind, too small, not for signatures, or not public.
    pub fn read(key: &Value) -> Result<Self, &'static str> {
        let members = json::from_value::<Members>(key).map_err(|_| "it is not a key")?;
        if members.d.is_some() || members.k.is_some() || members.kty == "oct" {
            return Err("it is not a public key");
        }
        if members.r#use.as_deref().is_some_and(|usage| usage != "sig")
            || members
                .key_ops
                .is_some_and(|operations| !operations.iter().any(|operation| operation == "verify"))
        {
            return Err("it is not for signatures");
        }
        let number = |member: &Option<String>| {
            let bytes = URL_SAFE_NO_PAD.decode(member.as_deref().unwrap_or_default());
            bytes.map_err(|_| "it is not valid base64url")
        };
        let key = match (members.kty.as_str(), members.crv.as_deref()) {
            ("RSA", _) => {
                let stripped = |mut bytes: Vec<u8>| {
                    bytes.drain(..bytes.iter().take_while(|byte| **byte == 0).count());
                    bytes
                };
                let (n, e) = (stripped(number(&members.n)?), stripped(number(&members.e)?));
                // A first byte below 128 makes it up to seven bits shorter.
                if !RSA_SIZES.contains(&n.len()) || n.len() == 256 && n[0] < 128 {
                    return Err("an RSA key needs 2048 to 8192 bits");
                }
                PublicKey::Rsa { n, e }
            }
            ("EC", Some(curve @ ("P-256" | "P-384"))) => {
                let (x, y) = (number(&members.x)?, number(&members.y)?);
                let size = if curve == "P-256" { 32 } else { 48 };
                if x.len() != size || y.len() != size {
                    return Err("its point has the wrong length");
                }
                let point = [&[4], &x[..], &y[..]].concat();
                if size == 32 { PublicKey::P256(point) } else { PublicKey::P384(point) }
            }
            ("OKP", Some("Ed25519")) => {
                let x = number(&members.x)?;
                if x.len() != 32 {
                    return Err("its point has the wrong length");
                }
                PublicKey::Ed25519(x)
            }
            _ => return Err("its kind is not supported"),
        };
        let algorithm = match members.alg.as_deref() {
            None => None,
            Some(name) => Some(Algorithm::named(name).ok_or("its algorithm is not supported")?),
        };
        let key = Self { kid: members.kid, algorithm: None, key };
        match algorithm {
            Some(it) if !key.allows(it) => Err("its algorithm is of another kind of key"),
            algorithm => Ok(Self { algorithm, ..key }),
        }
    }

    /// Returns whether signatures with this algorithm may be verified with the key.
    pub fn allows(&self, algorithm: Algorithm) -> bool {
        use Algorithm::*;
        let fits = match self.key {
            PublicKey::Rsa { .. } => {
                matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512)
            }
            PublicKey::P256(_) => algorithm == Es256,
            PublicKey::P384(_) => algorithm == Es384,
            PublicKey::Ed25519(_) => algorithm == EdDsa,
        };
        fits && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Returns whether the signature of the message is valid.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.allows(algorithm) {
            return false;
        }
        let with = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
        };
        match &self.key {
            PublicKey::Rsa { n, e } => {
                let parameters = match algorithm {
                    Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            PublicKey::P256(point) => with(&signature::ECDSA_P256_SHA256_FIXED, point),
            PublicKey::P384(point) => with(&signature::ECDSA_P384_SHA384_FIXED, point),
            PublicKey::Ed25519(point) => with(&signature::ED25519, point),
        }
    }

    /// Returns the SHA-256 thumbprint in base64url (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        // Members in alphabetical order, as the RFC requires: `preserve_order` keeps it.
        let members = match &self.key {
            PublicKey::Rsa { n, e } => json!({ "e": text(e), "kty": "RSA", "n": text(n) }),
            PublicKey::P256(point) | PublicKey::P384(point) => {
                let (x, y) = point[1..].split_at(point.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({ "crv": curve, "kty": "EC", "x": text(x), "y": text(y) })
            }
            PublicKey::Ed25519(x) => json!({ "crv": "Ed25519", "kty": "OKP", "x": text(x) }),
        };
        text(&Sha256::digest(members.to_string()))
    }
}

impl Jwks {
    /// Reads a set. Keys that can't be used are left out, as RFC 7517, section 5, has it. Errors if the set is too large,
    /// or no set.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        if text.len() > MAX_KEY_SET {
            return Err(format!("the key set is longer than {MAX_KEY_SET} bytes"));
        }
        let set: Set = json::from_bytes(text).map_err(|_| "the answer is not a key set")?;
        if set.keys.len() > MAX_KEYS {
            return Err(format!("the key set has more than {MAX_KEYS} keys"));
        }
        let mut found = Self::default();
        for key in &set.keys {
            match Jwk::read(key) {
                Ok(key) => found.add(key),
                Err(reason) => tracing::debug!(reason, "a key of a key set can't be used"),
            }
        }
        Ok(found)
    }

    fn add(&mut self, key: Jwk) {
        let place = match &key.kid {
            Some(kid) => self.named.entry(kid.clone()).or_default(),
            None => &mut self.unnamed,
        };
        if place.len() < MAX_TRIED {
            place.push(key);
        }
    }

    /// Returns the keys that may have signed a token: those with its `kid`. If the token or a key has none, those that allow
    /// the algorithm.
    pub fn candidates(&self, kid: Option<&str>, algorithm: Algorithm) -> Vec<&Jwk> {
        let keys: Box<dyn Iterator<Item = &Jwk>> = match kid {
            Some(kid) => Box::new(self.named.get(kid).into_iter().flatten().chain(&self.unnamed)),
            None => Box::new(self.unnamed.iter().chain(self.named.values().flatten())),
        };
        // Looks through a limited number, because the sender of a token decides whether it has a `kid`.
        let keys = keys.take(4 * MAX_TRIED).filter(|key| key.allows(algorithm));
        keys.take(MAX_TRIED).collect()
    }

    pub fn len(&self) -> usize {
        self.named.values().map(Vec::len).sum::<usize>() + self.unnamed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    #[test]
    fn the_thumbprint_is_the_one_of_the_rfc() {
        // RFC 7638, section 3.1.
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let key = json!({ "kty": "RSA", "n": n, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29" });
        let key = Jwk::read(&key).unwrap();
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert!(key.allows(Algorithm::Rs256) && !key.allows(Algorithm::Ps256));
        assert!(!key.allows(Algorithm::Es256));
    }

    #[test]
    fn a_signature_of_the_rfc_is_verified() {
        // RFC 8037, appendix A.
        let key = json!({ "kty": "OKP", "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let key = Jwk::read(&key).unwrap();
        assert_eq!(key.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature = URL_SAFE_NO_PAD
            .decode("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
            .unwrap();
        assert!(key.verify(Algorithm::EdDsa, message, &signature));
        assert!(!key.verify(Algorithm::EdDsa, b"other", &signature));
        assert!(!key.verify(Algorithm::EdDsa, message, &signature[..63]));
        assert!(!key.verify(Algorithm::Es256, message, &signature));
    }

    #[test]
    fn signatures_of_other_programs_are_verified() {
        // Made by OpenSSL 3 from the text "message"; PSS with a salt of 32 bytes (RFC 7518, section 3.5).
        let n = "lYD-MzPuwtqYJm_TppCYeG1CeNCI08p3Q8u6CRMyHSAkOiKb3ZBBVrCSoBkCcDnQjhaRghvfG_VRa2vwdf6CJrqt0Lyr5zzsppflvTqKQhIhe43j5GfhUnXgrMOxc3G1BB796sbhDx8juy269mzFNYRWJPr1Esuz1E-SVZg7xtGGX7aUMMtO1oCdevHZq7PeBIDpwduvI2DZ8BfA1G-SnGF7_XjlbIST1x-T2iSMoVZmC7Oky9cHMZ4ADtxbqZiyoRz8IqFdhHs-bFSRhxMM-YxynoAIL42Zvl3XHLLn9vOcUnES8iMAb9fYpAhp1TnXNywx4rwriY9Na6F9YoHZeQ";
        let pkcs1 = "g7U99LU7sTn-9ZPOkbmiB48MxmqQWxy9g1HawNDLW2jLbYyYaOHGJ_nybt1d-oT-mnIi0lAcJjT8q8OapDn_8aJkbqvGBnwu4G2jCJAhJET5V01Y9XJ_y2L_bYo7Jk7-Vta7yfAwMX0Qy0Lzw29Q9plzWvHNV8UnlOgnLFYjEycv1jUNEb7QABaYTgPxxrVx70EaVSCbm1N3Jj9z_cyuS5RCFkfpAMeCsj1Iw0ksZiV1PA0EXZKkY00y6DyI2XWl8U7sAb9Zt1pgSmahhsRoikM0T3cBHhzENPr9cltiSq0bn2BPsh7-t3lLwFzQWMx0zrYRj89yWMNCkSclulmrUw";
        let pss = "DO9g54WsGERmtTX-IiwR6WbTi57o2_stWW3ZdsNelyOtCb7nsuwBULy2sEB5O2cCVgglZq0A__2ltfJo1IqqeyiWHQ1ger6TxDlLBFmTjnP20Zp3NBKp0YexZv5k8WPTRsdrE23s6ycEPbkhrJWX3kEH2HL5WwFHvrR0XP3_G8XzTh-exn0lcm6krNn95B9HgITjnP8TJAbu6PPUjAtsgSPBhsm5yHVXEM-mzjcohbjnhdWd_eTvNVqE-CqoFhQ5vSq42ueVVP-CehqKMwMyoTHIaXZENDNs-Zk7FdonoWUNc-FkK2XMMijlumk9ATmSZkWQL941skT3bgj3NAlXxQ";
        let key = Jwk::read(&json!({ "kty": "RSA", "n": n, "e": "AQAB" })).unwrap();
        let (pkcs1, pss) =
            (URL_SAFE_NO_PAD.decode(pkcs1).unwrap(), URL_SAFE_NO_PAD.decode(pss).unwrap());
        assert!(key.verify(Algorithm::Rs256, b"message", &pkcs1));
        assert!(key.verify(Algorithm::Ps256, b"message", &pss));
        for (algorithm, message, signature) in [
            (Algorithm::Rs256, "message", &pss),
            (Algorithm::Ps256, "message", &pkcs1),
            (Algorithm::Rs512, "message", &pkcs1),
            (Algorithm::Rs256, "messages", &pkcs1),
        ] {
            assert!(!key.verify(algorithm, message.as_bytes(), signature));
        }
    }

    #[test]
    fn keys_that_may_not_be_used_are_refused() {
        let point = URL_SAFE_NO_PAD.encode([1; 32]);
        let small = URL_SAFE_NO_PAD.encode([255; 255]);
        for (key, reason) in [
            (json!({ "kty": "oct", "k": "AAAA" }), "not a public key"),
            (json!({ "kty": "OKP", "crv": "Ed25519", "x": point, "d": point }), "not a public key"),
            (
                json!({ "kty": "OKP", "crv": "Ed25519", "x": point, "use": "enc" }),
                "not for signatures",
            ),
            (json!({ "kty": "OKP", "crv": "Ed25519", "x": point, "key_ops": ["sign"] }), "not for"),
            (
                json!({ "kty": "OKP", "crv": "Ed25519", "x": point, "alg": "HS256" }),
                "not supported",
            ),
            (json!({ "kty": "OKP", "crv": "Ed25519", "x": point, "alg": "none" }), "not supported"),
            (json!({ "kty": "OKP", "crv": "Ed25519", "x": point, "alg": "ES256" }), "another kind"),
            (json!({ "kty": "OKP", "crv": "X25519", "x": point }), "not supported"),
            (json!({ "kty": "EC", "crv": "P-521", "x": point, "y": point }), "not supported"),
            (json!({ "kty": "EC", "crv": "P-384", "x": point, "y": point }), "wrong length"),
            (json!({ "kty": "RSA", "n": small, "e": "AQAB" }), "2048"),
            (json!({ "kty": "RSA", "n": "!", "e": "AQAB" }), "base64url"),
            (json!("RSA"), "not a key"),
        ] {
            let error = Jwk::read(&key).unwrap_err();
            assert!(error.contains(reason), "{key}: {error}");
        }
    }

    #[test]
    fn ten_thousand_keys_are_found_by_name() {
        let x = URL_SAFE_NO_PAD.encode([1; 32]);
        let set = |count: usize| {
            let key =
                |number| format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"{number}"}}"#);
            let keys: Vec<_> = (0..count).map(key).collect();
            format!(r#"{{"keys":[{}]}}"#, keys.join(","))
        };
        let keys = Jwks::read(set(10_000).as_bytes()).unwrap();
        assert_eq!(keys.len(), 10_000);
        assert_eq!(keys.candidates(Some("9999"), Algorithm::EdDsa).len(), 1);
        assert!(keys.candidates(Some("10000"), Algorithm::EdDsa).is_empty());
        assert!(keys.candidates(Some("9999"), Algorithm::Es256).is_empty());
        assert_eq!(keys.candidates(None, Algorithm::EdDsa).len(), MAX_TRIED);
        assert!(Jwks::read(set(10_001).as_bytes()).unwrap_err().contains("more than 10000 keys"));
        assert!(Jwks::read(&vec![b' '; MAX_KEY_SET + 1]).unwrap_err().contains("bytes"));
        assert!(Jwks::read(b"[]").unwrap_err().contains("not a key set"));
        let same: Vec<_> = (0..100)
            .map(|_| format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}","kid":"a"}}"#))
            .collect();
        let keys = Jwks::read(format!(r#"{{"keys":[{}]}}"#, same.join(",")).as_bytes()).unwrap();
        assert_eq!(keys.candidates(Some("a"), Algorithm::EdDsa).len(), MAX_TRIED);
    }
}
