//! Authorization codes, each bound to its client, redirect URL and PKCE challenge, and used once.

use super::{
    authorization_request::AuthorizationRequest,
    bounded::Bounded,
    grant::{Grant, GrantId},
    message::OAuthError,
};
use crate::auth::{TokenDigest, is_equal, pkce};

/// The lifetime of a code, in seconds.
const LIFETIME: u64 = 60;
/// The maximum number of codes.
const MAX_CODES: usize = 10_000;

/// The codes that were issued.
#[derive(Debug)]
pub(super) struct Codes(Bounded<TokenDigest, Code>);

#[derive(Debug)]
enum Code {
    Open(Box<Open>),
    /// The code was exchanged for the tokens of this grant.
    Used(GrantId),
}

#[derive(Debug)]
struct Open {
    client_id: String,
    redirect_uri: String,
    challenge: String,
    grant: Grant,
    expires: u64,
}

/// The reason why a code is refused.
pub(super) enum CodeError {
    Refused(OAuthError),
    /// The code was used before: the tokens of this grant have to be revoked (RFC 6749, section 4.1.2).
    Reused(GrantId),
}

impl Codes {
    pub(super) fn new() -> Self {
        Self(Bounded::new(MAX_CODES))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps a code for a request that the user approved.
    pub(super) fn issue(
        &mut self,
        code: &str,
        request: &AuthorizationRequest,
        subject: &str,
        unix: u64,
    ) {
        let grant = Grant {
            client_id: request.client_id.clone(),
            subject: subject.to_owned(),
            scopes: request.scopes.clone(),
            resource: request.resource.clone(),
            nonce: request.nonce.clone(),
            key: request.key.clone(),
        };
        let open = Open {
            client_id: request.client_id.clone(),
            redirect_uri: request.redirect.uri.clone(),
            challenge: request.challenge.clone(),
            grant,
            expires: unix + LIFETIME,
        };
        self.0.insert(TokenDigest::new(code), Code::Open(Box::new(open)));
    }

    /// Takes a code for its tokens, which get the id `tokens`. The code is gone even if the request is wrong.
    pub(super) fn redeem(
        &mut self,
        code: &str,
        client_id: &str,
        redirect_uri: Option<&str>,
        verifier: &str,
        tokens: GrantId,
        unix: u64,
    ) -> Result<Grant, CodeError> {
        let refused =
            |reason: &str| Err(CodeError::Refused(OAuthError::new("invalid_grant", reason)));
        let Some(code) = self.0.get_mut(&TokenDigest::new(code)) else {
            return refused("the code is unknown");
        };
        let open = match std::mem::replace(code, Code::Used(tokens)) {
            Code::Open(open) => open,
            Code::Used(earlier) => {
                *code = Code::Used(earlier);
                return Err(CodeError::Reused(earlier));
            }
        };
        if open.expires <= unix {
            return refused("the code has expired");
        }
        if open.client_id != client_id {
            return refused("the code was issued to another client");
        }
        if redirect_uri.is_some_and(|uri| uri != open.redirect_uri) {
            return refused("redirect_uri is another one than in the authorization request");
        }
        if !is_equal(pkce::challenge(verifier).as_bytes(), open.challenge.as_bytes()) {
            return refused("code_verifier does not belong to the code_challenge");
        }
        Ok(open.grant)
    }
}
