//! Access tokens: JWTs (RFC 9068) or opaque, and the answers about them (RFC 7662).

use serde_json::{Map, Value, json};

use super::{
    bounded::Bounded,
    grant::{Grant, GrantId},
    keys::SigningKeys,
};
use crate::{
    auth::{TokenDigest, moment::Moment, scopes},
    error::Error,
};

/// The maximum number of tokens that are remembered.
const MAX_TOKENS: usize = 10_000;

/// The tokens that were issued, with their claims.
#[derive(Debug)]
pub(super) struct AccessTokens(Bounded<TokenDigest, Issued>);

#[derive(Debug)]
struct Issued {
    claims: Value,
    client_id: String,
    /// The grant with refresh tokens that it belongs to.
    grant: Option<GrantId>,
    expires: u64,
}

/// The properties of a token beside its grant.
pub(super) struct TokenForm {
    pub(super) is_jwt: bool,
    /// The end of its life, in seconds since 1970.
    pub(super) expires: u64,
    /// Claims that are added, and replace others.
    pub(super) claims: Map<String, Value>,
}

impl AccessTokens {
    pub(super) fn new() -> Self {
        Self(Bounded::new(MAX_TOKENS))
    }

    /// Issues a token. Without a resource its audience is the issuer.
    pub(super) fn issue(
        &mut self,
        issuer: &str,
        keys: &SigningKeys,
        (id, grant): (Option<GrantId>, &Grant),
        options: TokenForm,
        at: &Moment,
    ) -> Result<String, Error> {
        let mut claims = json!({
            "iss": issuer,
            "sub": grant.subject,
            "aud": grant.resource.as_deref().unwrap_or(issuer),
            "client_id": grant.client_id,
            "scope": scopes::join(&grant.scopes),
            "iat": at.unix.min(options.expires),
            "exp": options.expires,
            "jti": at.id("access token id"),
        });
        if let Some(key) = &grant.key {
            claims["cnf"] = json!({ "jkt": key });
        }
        if let Some(claims) = claims.as_object_mut() {
            claims.extend(options.claims);
        }
        let token = match options.is_jwt {
            true => keys.sign("at+jwt", &claims)?,
            false => at.id("access token"),
        };
        let expires = options.expires;
        let client_id = grant.client_id.clone();
        self.0.insert(TokenDigest::new(&token), Issued { claims, client_id, grant: id, expires });
        Ok(token)
    }

    /// Returns the claims of a token that may be used. `is_valid` decides about its grant.
    pub(super) fn active(
        &self,
        token: &str,
        unix: u64,
        is_valid: impl Fn(GrantId) -> bool,
    ) -> Option<&Value> {
        let issued = self.0.get(&TokenDigest::new(token))?;
        let is_active = issued.expires > unix && issued.grant.is_none_or(is_valid);
        is_active.then_some(&issued.claims)
    }

    /// Revokes a token of this client. Returns the grant that it belongs to.
    pub(super) fn revoke(&mut self, token: &str, client_id: &str) -> Option<GrantId> {
        let digest = TokenDigest::new(token);
        if self.0.get(&digest)?.client_id != client_id {
            return None;
        }
        self.0.remove(&digest)?.grant
    }

    pub(super) fn revoke_all(&mut self) {
        self.0.clear();
    }
}
