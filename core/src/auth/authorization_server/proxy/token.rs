//! The token and the revocation endpoint.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;

use super::{
    super::{
        client_authentication::PresentedClient,
        clients::Client,
        message::{Form, OAuthError, Response, resource},
    },
    Interruption, OAuthProxy, Outcome, ProxyRequest, Redeeming, Refreshing, Waits,
    clients::short_id,
    location::OAuthEndpoint,
    provider::{Provider, ProviderError, ProviderTokens},
    sealed::Use,
    shared::{Afterwards, CLOCK_DIFFERENCE},
    tokens::{self, Code, Credential, Presented, RefreshToken},
};
use crate::{
    auth::{
        TokenDigest,
        fetch::{FetchError, FetchResponse},
        is_equal,
        moment::Moment,
        pkce, scopes,
    },
    store::{Expect, StoreOperation, StoreReply},
};

impl OAuthProxy {
    pub(super) fn token(&mut self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let form = Form::of_body(&request.request)?;
        let grant_type = form.require("grant_type")?;
        if grant_type == "refresh_token" {
            // The request comes a second time with them, and the client's assertion counts once.
            self.endpoints(at.unix)?;
        }
        let client = self.authenticate(&form, at, request)?;
        let issuer = &*request.issuer;
        let is_own =
            |resource: &str| resource.trim_end_matches('/') == issuer.trim_end_matches('/');
        if !resource(&form)?.is_none_or(is_own) {
            let reason = format!("resource must be {issuer}");
            return Err(OAuthError::new("invalid_target", reason).into());
        }
        match grant_type {
            "authorization_code" => self.redeem(&form, &client, at, issuer),
            "refresh_token" => self.refresh(&form, &client, at, request),
            _ => Err(OAuthError::new(
                "unsupported_grant_type",
                "grant_type must be authorization_code or refresh_token",
            )
            .into()),
        }
    }

    fn authenticate(
        &mut self,
        form: &Form,
        at: &Moment,
        request: &ProxyRequest,
    ) -> Result<Client, Interruption> {
        let presented = PresentedClient::read(&request.request, form)?
            .ok_or_else(|| OAuthError::client("client_id is missing", false))?;
        let client = self.client(&presented.id, request, at.unix)?;
        let endpoint = OAuthEndpoint::Token.url(&request.issuer);
        let names = [&*request.issuer, &*endpoint];
        presented.check(&client, &names, &mut self.assertions, at.unix)?;
        Ok(client)
    }

    fn redeem(&mut self, form: &Form, client: &Client, at: &Moment, issuer: &str) -> Outcome {
        let refused = |reason: &str| Err(OAuthError::new("invalid_grant", reason).into());
        let sealed = form.require("code")?;
        let verifier = form.require("code_verifier")?;
        let Some(code) = self.sealer.open::<Code>(Use::Code, issuer, sealed) else {
            return refused("the code is unknown");
        };
        if code.has_expired(at.unix) {
            return refused("the code has expired");
        }
        if code.grant.client != short_id(&client.id) {
            return refused("the code was issued to another client");
        }
        let digest = TokenDigest::new(sealed);
        if !self.used.use_code(digest, &code.grant.id) {
            return self.refuse_used_code(&code);
        }
        let redeeming = Redeeming {
            issuer: issuer.to_owned(),
            digest,
            redirect_uri: form.get("redirect_uri")?.map(str::to_owned),
            verifier: verifier.to_owned(),
            code,
        };
        match self.has_store {
            true => {
                let claim = claim(&redeeming, at.unix);
                Err(Interruption::Store(Box::new(claim), Waits::Code(Box::new(redeeming))))
            }
            false => self.end_redeeming(at, redeeming),
        }
    }

    /// Takes the store's reply about a code.
    pub(super) fn take_claimed(
        &mut self,
        at: &Moment,
        redeeming: Redeeming,
        reply: StoreReply,
    ) -> Outcome {
        match reply {
            StoreReply::Stored(_) => self.end_redeeming(at, redeeming),
            StoreReply::Conflict => self.refuse_used_code(&redeeming.code),
            StoreReply::Failed(reason) => Ok(self.store_failed(at, &redeeming, &reason)),
            _ => Ok(self.store_failed(at, &redeeming, "the reply is that of another operation")),
        }
    }

    /// Refuses a code that was used before, and revokes its tokens (RFC 6749, section 4.1.2).
    fn refuse_used_code(&mut self, code: &Code) -> Outcome {
        let error = OAuthError::new("invalid_grant", "the code was used before");
        self.revoke_grant(&code.grant.id, Afterwards::Refused(Box::new(error), None))
    }

    /// Returns the answer to a request whose code the store can't check. The client may send it again.
    pub(super) fn store_failed(
        &mut self,
        at: &Moment,
        redeeming: &Redeeming,
        reason: &str,
    ) -> Response {
        self.used.give_code_back(redeeming.digest);
        if let Some(left_out) = self.log.due(at.unix) {
            tracing::error!(
                "the store failed, so a code of a sign-in is not exchanged now: {reason}{left_out}"
            );
        }
        let error =
            OAuthError::new("temporarily_unavailable", "the server's store does not answer");
        OAuthError { status: StatusCode::SERVICE_UNAVAILABLE, ..error }.response()
    }

    /// Issues the tokens for a code that was not used before.
    fn end_redeeming(&mut self, at: &Moment, redeeming: Redeeming) -> Outcome {
        let refused = |reason: &str| Err(OAuthError::new("invalid_grant", reason).into());
        let Redeeming { issuer, code, redirect_uri, verifier, .. } = redeeming;
        if !self.allows_redirect(&code.redirect_uri) {
            return refused("this server does not allow the client's redirect URL any more");
        }
        if redirect_uri.is_some_and(|uri| uri != code.redirect_uri) {
            return refused("redirect_uri is another one than in the authorization request");
        }
        if !is_equal(pkce::challenge(&verifier).as_bytes(), code.challenge.as_bytes()) {
            return refused("code_verifier does not belong to the code_challenge");
        }
        let rest = (code.credential, code.lifetime);
        tokens::issue(&self.sealer, &issuer, &code.grant, &code.grant.scopes, rest, at)
            .ok_or_else(failed)
    }

    fn refresh(
        &mut self,
        form: &Form,
        client: &Client,
        at: &Moment,
        request: &ProxyRequest,
    ) -> Outcome {
        let issuer = &*request.issuer;
        let refused = |reason: &str| Err(OAuthError::new("invalid_grant", reason).into());
        let sealed = form.require("refresh_token")?;
        let Some(token) = self.sealer.open::<RefreshToken>(Use::RefreshToken, issuer, sealed)
        else {
            return refused("the refresh token is unknown");
        };
        if token.has_expired(at.unix) || self.used.is_revoked(&token.grant.id) {
            return refused("the refresh token has expired or was revoked");
        }
        if token.grant.client != short_id(&client.id) {
            return refused("the refresh token was issued to another client");
        }
        let mut scopes = scopes::parse(form.get("scope")?.unwrap_or_default());
        scopes.remove("offline_access");
        if scopes.is_empty() {
            scopes.clone_from(&token.grant.scopes);
        }
        if !scopes.is_subset(&token.grant.scopes) {
            let reason = "a refresh token gives no further scopes";
            return Err(OAuthError::new("invalid_scope", reason).into());
        }
        let endpoints = self.endpoints(at.unix)?;
        let fetch = match &token.credential {
            Credential::Refresh(theirs) => {
                let fields = [("grant_type", "refresh_token"), ("refresh_token", theirs.expose())];
                self.provider.token_request(endpoints, &fields).ok()
            }
            Credential::Access(theirs) => Provider::user_request(endpoints, theirs),
        };
        let Some(fetch) = fetch else { return refused("the provider can't be asked") };
        let digest = TokenDigest::new(sealed);
        let issuer = issuer.to_owned();
        let fetch = Some(Box::new(fetch));
        let mut refreshing = Refreshing { issuer, digest, token, scopes, fetch, version: 0 };
        if self.has_store {
            return self.refresh_with_store(at, refreshing);
        }
        match self.used.begin_refresh(digest, at.unix) {
            Presented::New => {
                let Some(fetch) = refreshing.fetch.take() else { return Err(failed()) };
                Err(Interruption::Fetch(fetch, Waits::Refresh(Box::new(refreshing))))
            }
            Presented::Running => Err(Interruption::Wait(digest)),
            Presented::Again(response) => Ok(response),
            Presented::Reused => {
                if let Some(left_out) = self.log.due(at.unix) {
                    tracing::warn!(
                        "a refresh token was used twice; its grant was revoked{left_out}"
                    );
                }
                refused("the refresh token was used before")
            }
        }
    }

    /// Takes the provider's answer about the user, and issues new tokens.
    pub(super) fn take_refreshed(
        &mut self,
        at: &Moment,
        refreshing: Refreshing,
        answer: &Result<FetchResponse, FetchError>,
    ) -> Outcome {
        let (digest, token) = (refreshing.digest, refreshing.token.clone());
        let RefreshToken { mut grant, credential, .. } = token;
        let checked = match credential {
            Credential::Refresh(theirs) => ProviderTokens::read(answer).and_then(|tokens| {
                let user = self.provider.user_of_token(&tokens, None, at.unix).transpose()?;
                let next = tokens.refresh_token.clone().unwrap_or(theirs);
                Ok((user, Credential::Refresh(next), tokens.lifetime))
            }),
            Credential::Access(theirs) => self
                .provider
                .user_of_answer(answer)
                .map(|user| (Some(user), Credential::Access(theirs), None)),
        };
        let outcome = match checked {
            Ok((Some(user), ..)) if user.subject != grant.subject => {
                Err(OAuthError::new("invalid_grant", "the provider names another user"))
            }
            Ok((user, credential, lifetime)) => {
                if let Some(user) = user {
                    grant.claims = user.claims;
                }
                let rest = (Some(credential), lifetime);
                let Refreshing { issuer, scopes, .. } = &refreshing;
                let response = tokens::issue(&self.sealer, issuer, &grant, scopes, rest, at);
                if self.has_store {
                    let body = response.and_then(|made| serde_json::from_slice(&made.body).ok());
                    let Some(body) = body else { return self.free(at, &refreshing, failure()) };
                    return self.save(at, refreshing, body);
                }
                self.used.end_refresh(digest, &grant.id, response.as_ref(), at.unix);
                return response.ok_or_else(failed);
            }
            Err(ProviderError::Refused(reason)) => {
                let error = OAuthError::new("invalid_grant", reason);
                self.used.end_refresh(digest, &grant.id, None, at.unix);
                let refused = Afterwards::Refused(Box::new(error), Some(digest));
                return self.revoke_grant(&grant.id, refused);
            }
            Err(ProviderError::Failed(reason)) => {
                if let Some(left_out) = self.log.due(at.unix) {
                    tracing::warn!("a token could not be refreshed: {reason}{left_out}");
                }
                Err(OAuthError {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    ..OAuthError::new("temporarily_unavailable", reason)
                })
            }
        };
        match outcome {
            Err(error) if self.has_store => self.free(at, &refreshing, error),
            outcome => {
                self.used.end_refresh(digest, &grant.id, None, at.unix);
                outcome.map_err(Interruption::Refused)
            }
        }
    }

    /// Revokes the grant of a token, here and at the provider (RFC 7009). An unknown token is not an error.
    pub(super) fn revoke(&mut self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let form = Form::of_body(&request.request)?;
        self.endpoints(at.unix)?;
        let client = self.authenticate(&form, at, request)?;
        let found = tokens::grant_of(&self.sealer, &request.issuer, form.require("token")?);
        let Some((grant, credential)) =
            found.filter(|(grant, _)| grant.client == short_id(&client.id))
        else {
            return Ok(Response::empty(StatusCode::OK));
        };
        let fetch = match credential {
            Some(Credential::Refresh(theirs)) => {
                let endpoints = self.endpoints(at.unix)?;
                self.provider.revocation(endpoints, theirs.expose()).map(Box::new)
            }
            _ => None,
        };
        self.revoke_grant(&grant.id, Afterwards::Revoked(fetch))
    }
}

pub(super) fn failed() -> Interruption {
    failure().into()
}

fn failure() -> OAuthError {
    OAuthError {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        ..OAuthError::new("server_error", "the tokens could not be made")
    }
}

/// Returns the operation that succeeds for one of the servers that get a code. The store sees a digest of the code only.
fn claim(redeeming: &Redeeming, unix: u64) -> StoreOperation {
    let left = redeeming.code.seconds_left(unix) + CLOCK_DIFFERENCE;
    StoreOperation::Put {
        key: format!("oauth-code:{}", URL_SAFE_NO_PAD.encode(redeeming.digest.0)),
        value: b"1".into(),
        ttl: Duration::from_secs(left),
        expect: Expect::Absent,
    }
}
