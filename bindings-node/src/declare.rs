//! Declarations as JSON: the JavaScript-specific members. The core reads the others.

use std::path::PathBuf;

use gudgeon::{
    driver::{set_state_keys, shows_errors},
    error::Error,
    framing::DEFAULT_LINE_LIMIT,
    router::ServerFacts,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerOptions {
    max_message: Option<usize>,
    /// The sizes in bytes.
    #[serde(default)]
    request_state_keys: Vec<Vec<u8>>,
    request_state_keys_file: Option<PathBuf>,
}

/// The declaration of a server, and its limit for one message in bytes.
pub(crate) fn server(declaration: &str) -> Result<(ServerFacts, usize), Error> {
    let mut facts = ServerFacts::declared(declaration.as_bytes())?;
    let options: ServerOptions = serde_json::from_str(declaration).map_err(|error| {
        Error::misuse(format!("the declaration of this server can't be read: {error}"))
    })?;
    facts.debug = shows_errors(facts.debug);
    set_state_keys(&mut facts, options.request_state_keys, options.request_state_keys_file)?;
    Ok((facts, options.max_message.unwrap_or(DEFAULT_LINE_LIMIT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_the_limit_of_messages_are_read() {
        let keys = [vec![255; 32], vec![2; 40]];
        let declaration =
            serde_json::json!({ "name": "t", "requestStateKeys": keys, "maxMessage": 99 });
        let (facts, limit) = server(&declaration.to_string()).unwrap();
        assert_eq!(facts.request_state_keys, keys);
        assert_eq!(limit, 99);
    }
}
