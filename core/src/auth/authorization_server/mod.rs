//! The authorization server's side of OAuth, without IO: requests and responses are data, and the host gives the time, random
//! bytes and keys.
//!
//! The modules here are the parts of an authorization server. [`test_server`] makes one of them for tests, whose user
//! approves every request by default, and which has faults on demand.

mod access_tokens;
mod authorization_request;
mod bounded;
mod client_authentication;
mod clients;
mod codes;
mod grant;
mod keys;
mod message;
mod metadata;
mod proofs;
pub mod proxy;
mod registration;
mod signed_jwt;
pub mod test_server;
mod trusted_issuers;

#[cfg(feature = "bindings")]
pub use self::clients::{check_document, check_redirect};
pub use self::message::{Request, Response};
use crate::{auth::jwt_signing, error::Error};

/// Creates a private key for ES256, in PKCS#8. Its random bytes are the system's.
pub fn generate_key() -> Result<Vec<u8>, Error> {
    jwt_signing::generate_key()
}

/// Returns a private key for ES256 as PEM, and its public key as a JWK.
pub fn key_pair(pkcs8: &[u8]) -> Result<(String, serde_json::Value), Error> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let public = keys::public_key(&jwt_signing::SigningKey::from_pkcs8(pkcs8, "ES256")?)?;
    let text = STANDARD.encode(pkcs8);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
    Ok((pem, public))
}
