//! The token and the revocation endpoint.

use http::StatusCode;

use super::{
    super::{
        client_authentication::PresentedClient,
        clients::Client,
        message::{Form, OAuthError, Response, resource},
    },
    Interruption, OAuthProxy, Outcome, ProxyRequest, Refreshing, Waits,
    clients::short_id,
    location::OAuthEndpoint,
    provider::{Provider, ProviderError, ProviderTokens},
    sealed::Use,
    tokens::{self, Code, Credential, Presented, RefreshToken},
};
use crate::auth::{
    TokenDigest,
    fetch::{FetchError, FetchResponse},
    is_equal,
    moment::Moment,
    pkce, scopes,
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
        if !self.used.use_code(sealed, &code.grant.id) {
            return refused("the code was used before");
        }
        if !self.allows_redirect(&code.redirect_uri) {
            return refused("this server does not allow the client's redirect URL any more");
        }
        if form.get("redirect_uri")?.is_some_and(|uri| uri != code.redirect_uri) {
            return refused("redirect_uri is another one than in the authorization request");
        }
        if !is_equal(pkce::challenge(verifier).as_bytes(), code.challenge.as_bytes()) {
            return refused("code_verifier does not belong to the code_challenge");
        }
        let rest = (code.credential, code.lifetime);
        tokens::issue(&self.sealer, issuer, &code.grant, &code.grant.scopes, rest, at)
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
        match self.used.begin_refresh(digest, at.unix) {
            Presented::New => {
                let refreshing = Refreshing { issuer: issuer.to_owned(), digest, token, scopes };
                let flow = Waits::Refresh(Box::new(refreshing));
                Err(Interruption::Fetch(Box::new(fetch), flow))
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
        let Refreshing { issuer, digest, token, scopes } = refreshing;
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
                let response = tokens::issue(&self.sealer, &issuer, &grant, &scopes, rest, at);
                self.used.end_refresh(digest, &grant.id, response.as_ref(), at.unix);
                return response.ok_or_else(failed);
            }
            Err(ProviderError::Refused(reason)) => {
                self.used.revoke(&grant.id);
                Err(OAuthError::new("invalid_grant", reason))
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
        self.used.end_refresh(digest, &grant.id, None, at.unix);
        outcome.map_err(Interruption::Refused)
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
        self.used.revoke(&grant.id);
        if let Some(Credential::Refresh(theirs)) = credential {
            let endpoints = self.endpoints(at.unix)?;
            if let Some(fetch) = self.provider.revocation(endpoints, theirs.expose()) {
                return Err(Interruption::Fetch(Box::new(fetch), Waits::Revoked));
            }
        }
        Ok(Response::empty(StatusCode::OK))
    }
}

fn failed() -> Interruption {
    OAuthError {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        ..OAuthError::new("server_error", "the tokens could not be made")
    }
    .into()
}
