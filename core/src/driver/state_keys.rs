//! The keys that several processes share: from the program, from its environment, or from a file.

use std::{
    env,
    path::{Path, PathBuf, absolute},
};

use super::small_file;
use crate::{
    error::{Error, option_name},
    router::ServerFacts,
};

/// The environment variable with the keys, separated by commas, if the program gives none.
pub const STATE_KEYS: &str = "GUDGEON_STATE_KEYS";
/// The environment variable with the path of a file of keys, if there are none elsewhere.
pub const STATE_KEYS_FILE: &str = "GUDGEON_STATE_KEYS_FILE";

/// The minimum length of a key in bytes.
const MIN_KEY: usize = 32;

/// Sets the keys of a server: those given, those in the given file, or those of the variable [`STATE_KEYS`] or in the file that
/// [`STATE_KEYS_FILE`] names. The first key seals, all of them open.
///
/// Errors if a key is shorter than 32 bytes: clients hold what it sealed, and could guess it. Errors also if keys and a file are
/// given, if the file can't be read, and if a variable is set, and empty.
pub fn set_state_keys(
    facts: &mut ServerFacts,
    given: Vec<Vec<u8>>,
    file: Option<PathBuf>,
) -> Result<(), Error> {
    if given.is_empty() {
        let of_variables = || match env::var_os(STATE_KEYS) {
            Some(list) => Source::Text(list.into_encoded_bytes()),
            None => {
                env::var_os(STATE_KEYS_FILE).map_or(Source::None, |path| Source::File(path.into()))
            }
        };
        match file.map_or_else(of_variables, Source::File) {
            Source::None => (),
            Source::Text(list) => {
                facts.request_state_keys =
                    split(&list, &format!("the environment variable {STATE_KEYS}"))?;
            }
            Source::File(path) => {
                let path = absolute(&path).unwrap_or(path);
                facts.request_state_keys = read_state_keys(&path)?;
                facts.request_state_keys_file = Some(path);
            }
        }
        return Ok(());
    }
    let option = option_name("request_state_keys");
    if file.is_some() {
        let other = option_name("request_state_keys_file");
        return Err(Error::misuse(format!("{option} and {other} are set: set one of them")));
    }
    check(&option, &given)?;
    facts.request_state_keys = given;
    Ok(())
}

enum Source {
    None,
    Text(Vec<u8>),
    File(PathBuf),
}

/// Reads a file of keys, which commas or line breaks separate.
pub(super) fn read_state_keys(path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let option = option_name("request_state_keys_file");
    let text = small_file::read(path).map_err(|error| {
        Error::misuse(format!("{option}: {} can't be read: {error}", path.display()))
    })?;
    split(&text, &format!("the file {}", path.display()))
}

/// Splits a list of keys at its commas and line breaks, of which one may be at the end. Spaces around keys are left out.
fn split(list: &[u8], source: &str) -> Result<Vec<Vec<u8>>, Error> {
    let keys = list
        .trim_ascii_end()
        .split(|byte| matches!(byte, b',' | b'\n'))
        .map(|key| key.trim_ascii().to_vec())
        .collect::<Vec<_>>();
    check(source, &keys)?;
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
    use std::fs;

    use super::*;
    use crate::protocol::Implementation;

    fn key(byte: u8) -> Vec<u8> {
        vec![byte; MIN_KEY]
    }

    fn set(given: Vec<Vec<u8>>, file: Option<PathBuf>) -> Result<ServerFacts, String> {
        let mut facts = ServerFacts::from(Implementation::new("s", "1"));
        set_state_keys(&mut facts, given, file).map_err(|error| error.to_string())?;
        Ok(facts)
    }

    #[test]
    fn a_short_key_is_refused_by_its_number_and_not_shown() {
        let error = set(vec![key(b'a'), b"s3cret".to_vec()], None).unwrap_err();
        assert!(error.contains("key 2 of request_state_keys has 6 bytes"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        for (list, problem) in [
            ("", "key 1 of here has 0 bytes"),
            ("  ", "key 1 of here has 0 bytes"),
            ("s3cret", "key 1 of here has 6 bytes"),
            (&format!("{},", "a".repeat(MIN_KEY)), "key 2 of here has 0 bytes"),
            (&format!("{}\n\nb", "a".repeat(MIN_KEY)), "key 2 of here has 0 bytes"),
        ] {
            let error = split(list.as_bytes(), "here").unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn keys_of_the_program_of_the_variable_and_of_a_file_are_taken_as_they_are() {
        assert_eq!(set(vec![key(b'a')], None).unwrap().request_state_keys, [key(b'a')]);
        let list = [b" ", &*key(b'n'), b" , ", &*key(b'o')].concat();
        assert_eq!(split(&list, "here").unwrap(), [key(b'n'), key(b'o')]);
        let path = env::temp_dir().join(format!("gudgeon-state-keys-{}", std::process::id()));
        let lines = [&*key(b'n'), b"\r\n", &*key(b'o'), b"\n"].concat();
        fs::write(&path, lines).unwrap();
        let facts = set(Vec::new(), Some(path.clone())).unwrap();
        assert_eq!(facts.request_state_keys, [key(b'n'), key(b'o')]);
        assert_eq!(facts.request_state_keys_file.as_ref(), Some(&path));
        let error = set(vec![key(b'a')], Some(path.clone())).unwrap_err();
        assert!(error.contains("request_state_keys and request_state_keys_file"), "{error}");
        fs::remove_file(&path).unwrap();
        let error = set(Vec::new(), Some(path.clone())).unwrap_err();
        assert!(error.contains(&*path.to_string_lossy()) && error.contains("read"), "{error}");
    }
}
