//! The server's side of authorization: decides who sends a request.

pub mod api_keys;
pub mod authenticator;
pub mod config;
mod credentials;
pub mod dpop_check;
pub mod introspection;
pub mod issuer;
pub mod jwk;
pub mod jwt;
pub mod keys;
mod providers;
mod proxy_config;
pub mod resource;
pub mod token_cache;

pub use self::credentials::Scheme;
