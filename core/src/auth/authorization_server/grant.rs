//! The rights that a client got, from which its tokens are made.

use super::bounded::Bounded;
use crate::auth::{TokenDigest, scopes::Scopes};

/// The maximum number of grants with refresh tokens.
const MAX_GRANTS: usize = 10_000;
/// The maximum number of refresh tokens that are remembered.
const MAX_TOKENS: usize = 20_000;

/// The number of a grant.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct GrantId(u64);

/// The rights of a client.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) client_id: String,
    pub(super) subject: String,
    pub(super) scopes: Scopes,
    /// The resource that the tokens are for (RFC 8707).
    pub(super) resource: Option<String>,
    /// The nonce of an identity token.
    pub(super) nonce: Option<String>,
    /// The thumbprint of the key to which the tokens are bound.
    pub(super) key: Option<String>,
}

/// Grants that last longer than one token, with their refresh tokens. Each token is used once; with a token that was
/// used before, the whole grant ends (RFC 9700, section 4.14).
#[derive(Debug)]
pub(super) struct Grants {
    active: Bounded<GrantId, ActiveGrant>,
    tokens: Bounded<TokenDigest, GrantId>,
    next: u64,
}

#[derive(Debug)]
struct ActiveGrant {
    grant: Grant,
    /// The refresh token that may be used.
    current: TokenDigest,
}

/// The reason why a refresh token is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RefreshError {
    Unknown,
    OtherClient,
    /// The token was used before. Its grant was revoked.
    Reused,
}

impl Grants {
    pub(super) fn new() -> Self {
        Self { active: Bounded::new(MAX_GRANTS), tokens: Bounded::new(MAX_TOKENS), next: 0 }
    }

    pub(super) fn next_id(&mut self) -> GrantId {
        self.next += 1;
        GrantId(self.next)
    }

    /// Keeps a grant with its first refresh token.
    pub(super) fn keep(&mut self, id: GrantId, grant: Grant, token: &str) {
        let current = TokenDigest::new(token);
        self.tokens.insert(current, id);
        self.active.insert(id, ActiveGrant { grant, current });
    }

    /// Exchanges a refresh token for the next one. Returns its grant.
    pub(super) fn rotate(
        &mut self,
        token: &str,
        client_id: &str,
        next: &str,
    ) -> Result<(GrantId, &Grant), RefreshError> {
        let digest = TokenDigest::new(token);
        let id = *self.tokens.get(&digest).ok_or(RefreshError::Unknown)?;
        let active = self.active.get(&id).ok_or(RefreshError::Unknown)?;
        if active.grant.client_id != client_id {
            return Err(RefreshError::OtherClient);
        }
        if active.current != digest {
            self.active.remove(&id);
            return Err(RefreshError::Reused);
        }
        let current = TokenDigest::new(next);
        self.tokens.insert(current, id);
        let active = self.active.get_mut(&id).ok_or(RefreshError::Unknown)?;
        active.current = current;
        Ok((id, &active.grant))
    }

    /// Returns the grant of a refresh token that may be used.
    pub(super) fn of_token(&self, token: &str) -> Option<(GrantId, &Grant)> {
        let digest = TokenDigest::new(token);
        let id = *self.tokens.get(&digest)?;
        let active = self.active.get(&id)?;
        (active.current == digest).then_some((id, &active.grant))
    }

    pub(super) fn is_valid(&self, id: GrantId) -> bool {
        self.active.get(&id).is_some()
    }

    pub(super) fn revoke(&mut self, id: GrantId) {
        self.active.remove(&id);
    }

    pub(super) fn revoke_all(&mut self) {
        self.active.clear();
        self.tokens.clear();
    }
}
