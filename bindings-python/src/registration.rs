//! What Python describes as JSON: what is Python's own in it; the core reads the rest.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{
    driver::state_keys,
    error::Error,
    router::{Changes, List, ServerFacts},
};
use serde::{Deserialize, de::DeserializeOwned};

/// How a server is served.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerOptions {
    pub(crate) max_message: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) io_threads: Option<usize>,
    /// In base64.
    #[serde(default)]
    request_state_keys: Vec<String>,
}

/// A server's own declaration, and how it is served.
pub(crate) fn server(declaration: &[u8]) -> Result<(ServerFacts, ServerOptions), Error> {
    let mut facts = ServerFacts::declared(declaration)?;
    let options: ServerOptions = parse(declaration)?;
    let keys = options.request_state_keys.iter().map(|it| STANDARD.decode(it));
    let keys = keys.collect::<Result<_, _>>().map_err(|it| Error::misuse(it.to_string()))?;
    facts.request_state_keys = state_keys(keys)?;
    Ok((facts, options))
}

/// Which list Python means.
pub(crate) fn list(name: &str) -> Result<List, Error> {
    Ok(match name {
        "tools" => List::Tools,
        "resources" => List::Resources,
        "templates" => List::Templates,
        "prompts" => List::Prompts,
        _ => return Err(Error::misuse(format!("{name:?} is no kind of component"))),
    })
}

pub(crate) fn changes(text: &[u8]) -> Result<Changes, Error> {
    parse(text)
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|it| Error::misuse(it.to_string()))
}
