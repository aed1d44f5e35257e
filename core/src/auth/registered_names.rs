//! Names of grants and tokens that OAuth registers (RFC 7521, RFC 7523, RFC 8693).

pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub(super) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub(super) const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
pub(super) const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
pub(super) const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
pub(super) const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
