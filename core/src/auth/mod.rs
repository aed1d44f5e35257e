//! Authorization by OAuth, without IO: time and random bytes are arguments, and HTTP requests are data ([`fetch`]). Times of
//! claims are seconds since 1970, beside the `Instant` of caches and deadlines.

pub mod challenge;
pub mod client;
pub mod fetch;
pub mod metadata;
pub mod scopes;
mod secret;
pub mod server;

pub use self::secret::{Secret, TokenDigest, is_equal};
