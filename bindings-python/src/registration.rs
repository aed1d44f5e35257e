//! Declarations of the Python half, as JSON: the Python-specific members. The core reads the others.

use std::path::PathBuf;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{
    driver::{set_state_keys, shows_errors},
    error::Error,
    router::{Changes, ServerFacts},
};
use serde::{Deserialize, de::DeserializeOwned};

/// The settings for serving.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerOptions {
    pub(crate) max_message: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) io_threads: Option<usize>,
    /// Base64-encoded.
    #[serde(default)]
    request_state_keys: Vec<String>,
    request_state_keys_file: Option<PathBuf>,
}

/// The declaration of a server and its settings for serving.
pub(crate) fn server(declaration: &[u8]) -> Result<(ServerFacts, ServerOptions), Error> {
    let mut facts = ServerFacts::declared(declaration)?;
    let options: ServerOptions = parse(declaration)?;
    let keys = options.request_state_keys.iter().map(|key| STANDARD.decode(key));
    let keys = keys.collect::<Result<_, _>>().map_err(|error| Error::misuse(error.to_string()))?;
    facts.debug = shows_errors(facts.debug);
    set_state_keys(&mut facts, keys, options.request_state_keys_file.clone())?;
    Ok((facts, options))
}

pub(crate) fn changes(text: &[u8]) -> Result<Changes, Error> {
    parse(text)
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|error| Error::misuse(error.to_string()))
}
