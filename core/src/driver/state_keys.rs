//! The keys that several processes share: from the program, or from its environment.

use std::env;

use crate::error::Error;

/// The environment variable with the keys, separated by commas, if the program gives none.
pub const STATE_KEYS: &str = "GUDGEON_STATE_KEYS";

/// Returns the keys of [`ServerFacts::request_state_keys`](crate::router::ServerFacts): those given, else those of the
/// variable [`STATE_KEYS`]. The first key seals, all of them open.
///
/// Errors if a given key is empty, since anyone could guess it.
pub fn state_keys(given: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
    if given.iter().any(Vec::is_empty) {
        return Err(Error::misuse(
            "a key of requestState is empty: take at least 32 random bytes, the same on every server that shares the work",
        ));
    }
    if !given.is_empty() {
        return Ok(given);
    }
    let list = env::var_os(STATE_KEYS).unwrap_or_default();
    Ok(split(&list.into_encoded_bytes()))
}

/// Splits a list at its commas. Spaces around keys and empty keys are left out.
fn split(list: &[u8]) -> Vec<Vec<u8>> {
    let keys = list.split(|it| *it == b',').map(<[u8]>::trim_ascii);
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
