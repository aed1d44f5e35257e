//! The keys that several processes share: from the program, or from its environment.

use std::env;

use crate::error::Error;

/// The environment variable that holds the keys where the program names none, separated by commas.
pub const STATE_KEYS: &str = "GUDGEON_STATE_KEYS";

/// The keys of [`ServerFacts::request_state_keys`](crate::router::ServerFacts): those given, else those of the variable
/// [`STATE_KEYS`]. The first seals, every one opens.
///
/// A given key that is empty is an error: it would be a secret that everybody knows.
pub fn state_keys(given: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
    if given.iter().any(Vec::is_empty) {
        return Err(Error::misuse(
            "a key of requestState is empty: take at least 32 random bytes, the same on every server that shares the work",
        ));
    }
    if !given.is_empty() {
        return Ok(given);
    }
    let said = env::var_os(STATE_KEYS).unwrap_or_default();
    Ok(split(&said.into_encoded_bytes()))
}

/// Spaces around a key do not belong to it; two commas in a row hold none.
fn split(said: &[u8]) -> Vec<Vec<u8>> {
    let keys = said.split(|it| *it == b',').map(<[u8]>::trim_ascii);
    keys.filter(|it| !it.is_empty()).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_key_is_no_secret() {
        let error = state_keys(vec![b"k".to_vec(), Vec::new()]).unwrap_err();
        assert!(error.to_string().contains("is empty: take at least 32 random bytes"), "{error}");
    }

    #[test]
    fn given_keys_win() {
        assert_eq!(state_keys(vec![b"k".to_vec()]).unwrap(), [b"k".to_vec()]);
    }

    #[test]
    fn the_variable_holds_several() {
        assert_eq!(split(b" new, old ,,"), [b"new".to_vec(), b"old".to_vec()]);
        assert!(split(b"").is_empty());
    }
}
