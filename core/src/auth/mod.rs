//! Authorization by OAuth, without IO: time and random bytes are arguments, and HTTP requests are data ([`fetch`]). Times of
//! claims are seconds since 1970, beside the `Instant` of caches and deadlines.

pub mod authorization_server;
pub mod challenge;
pub mod client;
pub mod fetch;
mod jwt_signing;
pub mod metadata;
mod moment;
pub(crate) mod page;
mod pkce;
mod registered_names;
pub mod scopes;
mod secret;
pub mod server;
pub mod url;
pub mod used_once;

pub use self::moment::Moment;
pub use self::secret::{Secret, TokenDigest, is_equal};
