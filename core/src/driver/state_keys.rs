//! The keys that several processes share: from the program, or from its environment.

use std::env;

use crate::error::{Error, option_name};

/// The environment variable with the keys, separated by commas, if the program gives none.
pub const STATE_KEYS: &str = "GUDGEON_STATE_KEYS";

/// The minimum length of a key in bytes.
const MIN_KEY: usize = 32;

/// Returns the keys of [`ServerFacts::request_state_keys`](crate::router::ServerFacts): those given, else those of the
/// variable [`STATE_KEYS`]. The first key seals, all of them open.
///
/// Errors if a key is shorter than 32 bytes: clients hold what it sealed, and could guess it. Errors also if the variable is
/// set, and empty.
pub fn state_keys(given: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
    if given.is_empty() {
        return env::var_os(STATE_KEYS).map_or(Ok(given), |list| split(&list.into_encoded_bytes()));
    }
    check(&option_name("request_state_keys"), &given)?;
    Ok(given)
}

/// Splits the value of the variable at its commas. Spaces around keys are left out.
fn split(list: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let keys =
        list.split(|byte| *byte == b',').map(|key| key.trim_ascii().to_vec()).collect::<Vec<_>>();
    check(&format!("the environment variable {STATE_KEYS}"), &keys)?;
    Ok(keys)
}

fn check(source: &str, keys: &[Vec<u8>]) -> Result<(), Error> {
    let Some(short) = keys.iter().position(|key| key.len() < MIN_KEY) else { return Ok(()) };
    Err(Error::misuse(format!(
        "key {} of {source} has {} bytes: take at least {MIN_KEY} random ones, the same on every server that shares the work",
        short + 1,
        keys[short].len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Vec<u8> {
        vec![byte; MIN_KEY]
    }

    #[test]
    fn a_short_key_is_refused_by_its_number_and_not_shown() {
        let error = state_keys(vec![key(b'a'), b"s3cret".to_vec()]).unwrap_err().to_string();
        assert!(error.contains("key 2 of request_state_keys has 6 bytes"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        for (list, problem) in [
            ("", "key 1 of the environment variable GUDGEON_STATE_KEYS has 0 bytes"),
            ("  ", "key 1 of the environment variable GUDGEON_STATE_KEYS has 0 bytes"),
            ("s3cret", "key 1 of the environment variable GUDGEON_STATE_KEYS has 6 bytes"),
            (&format!("{},", "a".repeat(MIN_KEY)), "key 2 of the environment variable"),
        ] {
            let error = split(list.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn keys_of_the_program_and_of_the_variable_are_taken_as_they_are() {
        assert_eq!(state_keys(vec![key(b'a')]).unwrap(), [key(b'a')]);
        let list = [b" ", &*key(b'n'), b" , ", &*key(b'o')].concat();
        assert_eq!(split(&list).unwrap(), [key(b'n'), key(b'o')]);
    }
}
