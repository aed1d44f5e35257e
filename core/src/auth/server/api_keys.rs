//! Keys that the program gives out itself. Only their digests are kept.

use std::{fmt, sync::Arc};

use http::{HeaderName, header};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::{
    auth::{TokenDigest, is_equal},
    protocol::Principal,
};

/// Keys, or their digests, with their owners.
pub type KeysOfOwners = Vec<(String, Principal)>;

/// Reads the text of a file of keys: a JSON object of keys, or their digests, and their owners, each a principal or a subject.
/// Errors name a key by its place.
pub fn parse(text: &[u8]) -> Result<KeysOfOwners, String> {
    let owners: Map<String, Value> = serde_json::from_slice(text).map_err(|error| {
        format!("line {}, column {} is not valid", error.line(), error.column())
    })?;
    let owner = |(place, (key, owner)): (usize, (String, Value))| {
        let owner = match owner {
            Value::String(subject) => json!({ "subject": subject }),
            other => other,
        };
        let owner = Principal::deserialize(&owner).map_err(|_| {
            format!("the owner of key {} is neither a subject nor a principal", place + 1)
        })?;
        Ok((if key.is_empty() { key } else { digested(&key) }, owner))
    };
    owners.into_iter().enumerate().map(owner).collect()
}

/// A set of keys with their owners.
pub struct ApiKeys {
    header: HeaderName,
    keys: Vec<(TokenDigest, Arc<Principal>)>,
}

impl ApiKeys {
    /// Creates the set. Each key is given as it is, or as `sha256:` and its SHA-256 in hexadecimal. In the header
    /// `Authorization` a key follows the word `Bearer`; in another one it stands alone.
    pub fn new(
        header: &str,
        keys: impl IntoIterator<Item = (String, Principal)>,
    ) -> Result<Self, String> {
        let header = HeaderName::try_from(header)
            .map_err(|_| format!("header must be the name of an HTTP header, not {header:?}"))?;
        let mut found = Vec::new();
        for (place, (key, principal)) in keys.into_iter().enumerate() {
            let digest = match key.strip_prefix("sha256:") {
                _ if key.is_empty() => {
                    return Err(format!("key {} is empty; anyone could send it", place + 1));
                }
                None => TokenDigest::new(&key),
                Some(text) => TokenDigest(hex(text).ok_or_else(|| {
                    format!("key {}: sha256: needs 64 hexadecimal digits after it", place + 1)
                })?),
            };
            found.push((digest, Arc::new(principal)));
        }
        if found.is_empty() {
            return Err("there is no key, so that nobody could call".to_owned());
        }
        Ok(Self { header, keys: found })
    }

    /// Returns the header that keys come in.
    pub fn header(&self) -> &HeaderName {
        &self.header
    }

    /// Returns whether keys come in a header of their own.
    pub fn has_own_header(&self) -> bool {
        self.header != header::AUTHORIZATION
    }

    /// Returns the owner of a key. Compares it with all keys, so that the time shows none of them.
    pub fn owner(&self, key: &str) -> Option<&Arc<Principal>> {
        let digest = TokenDigest::new(key);
        let mut owner = None;
        for (own, principal) in &self.keys {
            if is_equal(&own.0, &digest.0) {
                owner = Some(principal);
            }
        }
        owner
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeys({} in {})", self.keys.len(), self.header)
    }
}

/// Returns a key as `sha256:` and its SHA-256, as which it is kept.
pub(crate) fn digested(key: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if key.starts_with("sha256:") {
        return key.to_owned();
    }
    let digits = TokenDigest::new(key).0.into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    "sha256:".chars().chain(digits.map(|digit| char::from(DIGITS[usize::from(digit)]))).collect()
}

fn hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |ascii: u8| char::from(ascii).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    /// SHA-256 of `abc`.
    const ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015AD";

    fn keys(keys: &[&str]) -> Result<ApiKeys, String> {
        let keys =
            keys.iter().map(|key| ((*key).to_owned(), Principal::new(key.len().to_string())));
        ApiKeys::new("X-Api-Key", keys)
    }

    #[test]
    fn a_key_is_found_by_itself_or_by_its_digest() {
        let keys = keys(&["s3cret", ABC]).unwrap();
        assert_eq!(keys.owner("s3cret").unwrap().subject, "6");
        assert_eq!(keys.owner("abc").unwrap().subject, "71");
        for other in ["", "s3cre", "s3crets", ABC, "S3cret"] {
            assert!(keys.owner(other).is_none(), "{other}");
        }
        assert!(keys.has_own_header() && keys.header() == "x-api-key");
        assert_eq!(format!("{keys:?}"), "ApiKeys(2 in x-api-key)");
    }

    #[test]
    fn a_file_of_keys_has_subjects_and_principals() {
        let text = br#"{"s3cret": "ada", "sha256:12": {"subject": "bob", "scopes": ["read"]}}"#;
        let keys = parse(text).unwrap();
        assert_eq!((&*keys[0].0, &*keys[0].1.subject), (&*digested("s3cret"), "ada"));
        assert_eq!((&*keys[1].0, keys[1].1.scopes.len()), ("sha256:12", 1));
        for (text, problem) in [
            ("{\"s3cret\": ", "line 1, column 11"),
            (r#"{"s3cret": ""}"#, "the owner of key 1"),
            (r#"{"s3cret": 7}"#, "the owner of key 1"),
            (r#"["s3cret"]"#, "line 1"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(problem) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_key_has_one_digest() {
        assert_eq!(digested("abc"), ABC.to_ascii_lowercase());
        assert_eq!(digested(ABC), ABC);
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        assert!(keys(&["a", ""]).unwrap_err().contains("key 2 is empty"));
        for key in ["sha256:", "sha256:12", &ABC.replace('b', "x"), &format!("{ABC}0")] {
            let error = keys(&[key]).unwrap_err();
            assert!(error.contains("key 1") && error.contains("64"), "{error}");
        }
        assert!(ApiKeys::new("x y", []).unwrap_err().contains("header"));
        assert!(ApiKeys::new("x-key", []).unwrap_err().contains("there is no key"));
    }
}
