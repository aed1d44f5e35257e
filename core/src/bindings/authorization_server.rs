//! The authorization server for tests, with the JSON of a binding in place of the types of Rust programs.

use crate::{
    error::Error,
    testing::auth::{
        AuthFaults, AuthorizationServer, AuthorizationServerOptions, TokenOptions, generate_key,
    },
};

/// Starts a server on the current tokio runtime.
pub async fn listen(options: &[u8]) -> Result<AuthorizationServer, Error> {
    AuthorizationServer::listen(AuthorizationServerOptions::parse(options)?).await
}

/// Issues an access token.
pub fn token(server: &AuthorizationServer, options: &[u8]) -> Result<String, Error> {
    server.token(TokenOptions::parse(options)?)
}

/// Replaces the faults.
pub fn set_faults(server: &AuthorizationServer, faults: &[u8]) -> Result<(), Error> {
    server.set_faults(AuthFaults::parse(faults)?)
}

/// Returns the requests so far, as JSON.
pub fn requests(server: &AuthorizationServer) -> String {
    serde_json::to_string(&server.requests()).expect("strings and numbers always serialise")
}

/// Returns a new private key for ES256 as PEM, and its public key, a JWK as JSON.
pub fn key_pair() -> Result<(String, String), Error> {
    generate_key().map(|(private, public)| (private, public.to_string()))
}
