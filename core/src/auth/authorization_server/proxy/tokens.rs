//! The codes and tokens of the proxy, all of them sealed. Used codes, used refresh tokens and revoked grants are kept in this
//! process; with a store, the refresh tokens are [there](super::shared), and so is a copy of the others.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    super::{bounded::Bounded, message::Response},
    provider::User,
    sealed::{Sealer, Use},
};
use crate::{
    auth::{
        Secret, TokenDigest,
        moment::Moment,
        scopes::{Scopes, join},
    },
    protocol::Principal,
};

/// The lifetime of a code, in seconds.
const CODE_LIFE: u64 = 60;
/// The lifetime of an access token without one of the provider, and at most, in seconds.
const ACCESS_LIFE: u64 = 3_600;
/// The lifetime of a refresh token, in seconds.
pub(super) const REFRESH_LIFE: u64 = 30 * 24 * 3_600;
/// The seconds for which a used refresh token is answered with the same tokens again, because the response may have been lost.
pub(super) const GRACE: u64 = 60;
/// The seconds for which a grant counts as not revoked after the store said so.
const CHECKED: u64 = 30;
/// The maximum number of used codes, used refresh tokens, and revoked grants that are remembered.
const MAX_REMEMBERED: usize = 10_000;
/// The maximum number of responses that wait for the store to be there again.
const MAX_UNSAVED: usize = 1_000;

/// The rights that a user gave to a client.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct ProxyGrant {
    #[serde(rename = "g")]
    pub(super) id: String,
    /// The short id of the client.
    #[serde(rename = "c")]
    pub(super) client: String,
    #[serde(rename = "s")]
    pub(super) subject: String,
    #[serde(rename = "o")]
    pub(super) scopes: Scopes,
    #[serde(rename = "m")]
    pub(super) claims: Map<String, Value>,
}

/// A token of the provider by which the proxy learns later whether the user still has access.
#[derive(Clone, Deserialize, Serialize)]
pub(super) enum Credential {
    #[serde(rename = "r")]
    Refresh(Secret),
    /// The access token, of a provider without refresh tokens.
    #[serde(rename = "a")]
    Access(Secret),
}

/// The content of a code.
#[derive(Deserialize, Serialize)]
pub(super) struct Code {
    #[serde(rename = "u")]
    pub(super) redirect_uri: String,
    #[serde(rename = "h")]
    pub(super) challenge: String,
    #[serde(rename = "g")]
    pub(super) grant: ProxyGrant,
    #[serde(rename = "p")]
    pub(super) credential: Option<Credential>,
    /// The lifetime of the provider's access token.
    #[serde(rename = "l")]
    pub(super) lifetime: Option<u64>,
    #[serde(rename = "e")]
    expires: u64,
}

/// The content of an access token.
#[derive(Deserialize, Serialize)]
struct AccessToken {
    #[serde(rename = "g")]
    grant: ProxyGrant,
    #[serde(rename = "e")]
    expires: u64,
}

/// The content of a refresh token.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct RefreshToken {
    #[serde(rename = "g")]
    pub(super) grant: ProxyGrant,
    #[serde(rename = "p")]
    pub(super) credential: Credential,
    #[serde(rename = "e")]
    expires: u64,
}

/// The state of what was used or revoked.
#[derive(Debug)]
pub(super) struct Used {
    codes: Bounded<TokenDigest, String>,
    refreshed: Bounded<TokenDigest, Refreshed>,
    /// The tokens that were exchanged a moment ago, oldest first.
    recent: VecDeque<(TokenDigest, u64)>,
    running: HashSet<TokenDigest>,
    revoked: Bounded<String, ()>,
    /// The grants that were not revoked at this time.
    checked: Bounded<String, u64>,
    /// The bodies of responses that the store does not have yet, with the version of the claim.
    unsaved: Bounded<TokenDigest, (Value, u64)>,
}

#[derive(Debug)]
struct Refreshed {
    /// `None`: too long ago for a repetition.
    response: Option<Response>,
    grant: String,
}

/// The state of a refresh token that a client presents.
pub(super) enum Presented {
    New,
    /// Another request is exchanging it.
    Running,
    /// The token was used a moment ago, with this response.
    Again(Response),
    /// The token was used before, so that it may have been stolen. The grant was revoked.
    Reused,
}

impl ProxyGrant {
    pub(super) fn new(client: String, user: User, scopes: Scopes, at: &Moment) -> Self {
        let User { subject, claims } = user;
        Self { id: at.id("grant")[..16].to_owned(), client, subject, scopes, claims }
    }
}

impl Code {
    pub(super) fn new(
        (redirect_uri, challenge): (String, String),
        grant: ProxyGrant,
        (credential, lifetime): (Option<Credential>, Option<u64>),
        unix: u64,
    ) -> Self {
        let expires = unix + CODE_LIFE;
        Self { redirect_uri, challenge, grant, credential, lifetime, expires }
    }

    pub(super) fn has_expired(&self, unix: u64) -> bool {
        self.expires <= unix
    }

    pub(super) fn seconds_left(&self, unix: u64) -> u64 {
        self.expires.saturating_sub(unix)
    }
}

impl RefreshToken {
    pub(super) fn seconds_left(&self, unix: u64) -> u64 {
        self.expires.saturating_sub(unix)
    }

    pub(super) fn has_expired(&self, unix: u64) -> bool {
        self.expires <= unix
    }
}

impl Used {
    pub(super) fn new() -> Self {
        Self {
            codes: Bounded::new(MAX_REMEMBERED),
            refreshed: Bounded::new(MAX_REMEMBERED),
            recent: VecDeque::new(),
            running: HashSet::new(),
            revoked: Bounded::new(MAX_REMEMBERED),
            checked: Bounded::new(MAX_REMEMBERED),
            unsaved: Bounded::new(MAX_UNSAVED),
        }
    }

    /// Notes the use of a code. Returns false, and revokes its tokens, if it was used before (RFC 6749, section 4.1.2).
    pub(super) fn use_code(&mut self, digest: TokenDigest, grant: &str) -> bool {
        if let Some(grant) = self.codes.get(&digest).cloned() {
            self.revoke(&grant);
            return false;
        }
        self.codes.insert(digest, grant.to_owned());
        true
    }

    /// Forgets the use of a code, which was not exchanged.
    pub(super) fn give_code_back(&mut self, digest: TokenDigest) {
        self.codes.remove(&digest);
    }

    /// Begins to exchange a refresh token.
    pub(super) fn begin_refresh(&mut self, digest: TokenDigest, unix: u64) -> Presented {
        if self.running.contains(&digest) {
            return Presented::Running;
        }
        while let Some((old, _)) = self.recent.front().filter(|(_, at)| unix > at + GRACE) {
            if let Some(refreshed) = self.refreshed.get_mut(old) {
                refreshed.response = None;
            }
            self.recent.pop_front();
        }
        match self.refreshed.get(&digest) {
            None => {
                self.running.insert(digest);
                Presented::New
            }
            Some(Refreshed { response: Some(response), .. }) => Presented::Again(response.clone()),
            Some(Refreshed { response: None, grant }) => {
                let grant = grant.clone();
                self.revoke(&grant);
                Presented::Reused
            }
        }
    }

    /// Ends the exchange of a refresh token. `response`: the new tokens, or `None` if there are none.
    pub(super) fn end_refresh(
        &mut self,
        digest: TokenDigest,
        grant: &str,
        response: Option<&Response>,
        unix: u64,
    ) {
        self.running.remove(&digest);
        if let Some(response) = response {
            // The client has received this token, so the response that brought it was not lost and is never repeated.
            for (earlier, _) in &self.recent {
                if let Some(refreshed) = self.refreshed.get_mut(earlier)
                    && refreshed.grant == grant
                {
                    refreshed.response = None;
                }
            }
            let (response, grant) = (Some(response.clone()), grant.to_owned());
            self.refreshed.insert(digest, Refreshed { response, grant });
            self.recent.push_back((digest, unix));
        }
    }

    /// Begins to exchange a refresh token that the store knows. Returns `false` if another request is exchanging it.
    pub(super) fn begin_shared(&mut self, digest: TokenDigest) -> bool {
        self.running.insert(digest)
    }

    pub(super) fn end_shared(&mut self, digest: &TokenDigest) {
        self.running.remove(digest);
    }

    pub(super) fn keep_unsaved(&mut self, digest: TokenDigest, body: Value, version: u64) {
        self.unsaved.remove(&digest);
        self.unsaved.insert(digest, (body, version));
    }

    pub(super) fn unsaved(&self, digest: &TokenDigest) -> Option<(Value, u64)> {
        self.unsaved.get(digest).cloned()
    }

    pub(super) fn forget_unsaved(&mut self, digest: &TokenDigest) {
        self.unsaved.remove(digest);
    }

    /// Notes that the store does not know a revocation of a grant.
    pub(super) fn note_checked(&mut self, grant: &str, unix: u64) {
        self.checked.remove(&grant.to_owned());
        self.checked.insert(grant.to_owned(), unix);
    }

    pub(super) fn is_checked(&self, grant: &str, unix: u64) -> bool {
        let checked = self.checked.get(&grant.to_owned());
        checked.is_some_and(|at| (*at..*at + CHECKED).contains(&unix))
    }

    pub(super) fn revoke(&mut self, grant: &str) {
        if !self.is_revoked(grant) {
            self.revoked.insert(grant.to_owned(), ());
        }
    }

    pub(super) fn is_revoked(&self, grant: &str) -> bool {
        self.revoked.get(&grant.to_owned()).is_some()
    }
}

/// Returns the response with new tokens (RFC 6749, section 5.1); `None` if they can't be sealed. The access token has these
/// scopes; the refresh token keeps those of the grant (section 6).
pub(super) fn issue(
    sealer: &Sealer,
    issuer: &str,
    grant: &ProxyGrant,
    scopes: &Scopes,
    (credential, lifetime): (Option<Credential>, Option<u64>),
    at: &Moment,
) -> Option<Response> {
    let lifetime = lifetime.unwrap_or(ACCESS_LIFE).clamp(1, ACCESS_LIFE);
    let for_access = ProxyGrant { scopes: scopes.clone(), ..grant.clone() };
    let access = AccessToken { grant: for_access, expires: at.unix + lifetime };
    let mut body = json!({
        "access_token": sealer.seal(Use::AccessToken, issuer, &access, at)?,
        "token_type": "Bearer",
        "expires_in": lifetime,
        "scope": join(scopes),
    });
    if let Some(credential) = credential {
        let expires = at.unix + REFRESH_LIFE;
        let refresh = RefreshToken { grant: grant.clone(), credential, expires };
        body["refresh_token"] = sealer.seal(Use::RefreshToken, issuer, &refresh, at)?.into();
    }
    Some(Response::json(http::StatusCode::OK, &body))
}

/// Returns the owner of an access token, its grant, and the time at which it expires.
pub(super) fn verify(
    sealer: &Sealer,
    issuer: &str,
    token: &str,
    unix: u64,
) -> Option<(Principal, String, u64)> {
    let AccessToken { grant, expires } = sealer.open(Use::AccessToken, issuer, token)?;
    if expires <= unix {
        return None;
    }
    let mut principal = Principal::new(grant.subject);
    principal.client_id = Some(grant.client);
    principal.scopes = grant.scopes;
    principal.claims = grant.claims;
    Some((principal, grant.id, expires))
}

/// Returns the grant of a token of either kind.
pub(super) fn grant_of(
    sealer: &Sealer,
    issuer: &str,
    token: &str,
) -> Option<(ProxyGrant, Option<Credential>)> {
    if let Some(refresh) = sealer.open::<RefreshToken>(Use::RefreshToken, issuer, token) {
        return Some((refresh.grant, Some(refresh.credential)));
    }
    let access = sealer.open::<AccessToken>(Use::AccessToken, issuer, token)?;
    Some((access.grant, None))
}
