//! The token endpoint: codes, refresh tokens and client credentials.

use http::StatusCode;
use serde_json::{Map, json};

use super::{
    super::{
        access_tokens::TokenForm,
        client_authentication::PresentedClient,
        clients::Client,
        codes::CodeError,
        grant::{Grant, GrantId, RefreshError},
        message::{Form, OAuthError, Request, Response, resource},
        metadata::TOKEN,
    },
    Interruption, Outcome, TestServer,
    config::{Dpop, TokenFormat},
};
use crate::auth::{
    moment::Moment,
    registered_names::{JWT_BEARER, TOKEN_EXCHANGE},
    scopes::{self, Scopes},
};

/// The seconds for which a token has been expired when it is issued, if that is asked for: more than clocks may differ.
const EXPIRED_SINCE: u64 = 600;

/// A request to the token endpoint whose client has authenticated.
pub(super) struct TokenRequest<'a> {
    pub(super) form: &'a Form,
    /// `None` if the request names no client.
    pub(super) client: Option<Client>,
    /// The thumbprint of the key that signed the proof of possession.
    pub(super) key: Option<String>,
}

impl TokenRequest<'_> {
    pub(super) fn client(&self) -> Result<&Client, OAuthError> {
        let missing = || OAuthError::client("the request names no client", false);
        self.client.as_ref().ok_or_else(missing)
    }

    /// Returns the client if it has credentials.
    pub(super) fn confidential_client(&self) -> Result<&Client, OAuthError> {
        let client = self.client()?;
        let reason = "the grant is for clients with credentials";
        match client.is_confidential() {
            true => Ok(client),
            false => Err(OAuthError::new("unauthorized_client", reason)),
        }
    }

    /// Returns the scopes that are asked for.
    pub(super) fn scopes(&self) -> Result<Option<Scopes>, OAuthError> {
        Ok(self.form.get("scope")?.map(scopes::parse))
    }
}

impl TestServer {
    pub(super) fn token_request(
        &mut self,
        at: &Moment,
        request: &Request,
        is_first: bool,
    ) -> Outcome {
        let form = Form::of_body(request)?;
        let client = self.authenticated(at, request, &form)?;
        let grant_type = form.require("grant_type")?;
        if client.as_ref().is_some_and(|client| !client.may_use(grant_type)) {
            let reason = "the client is not registered for this grant_type";
            return Err(OAuthError::new("unauthorized_client", reason).into());
        }
        // The grant of an identity provider is not bound.
        let key = match grant_type {
            TOKEN_EXCHANGE => None,
            _ => self.proven_key(at, request)?,
        };
        let asked = TokenRequest { form: &form, client, key };
        match grant_type {
            "authorization_code" => self.redeem(at, &asked),
            "refresh_token" => self.refresh(at, &asked),
            "client_credentials" => self.client_credentials(at, &asked),
            JWT_BEARER => self.take_assertion(at, &asked, is_first),
            TOKEN_EXCHANGE => self.exchange(at, &asked),
            _ => {
                let reason = "this grant_type is not supported";
                Err(OAuthError::new("unsupported_grant_type", reason).into())
            }
        }
    }

    /// Returns the client of a request, once it has authenticated.
    pub(super) fn authenticated(
        &mut self,
        at: &Moment,
        request: &Request,
        form: &Form,
    ) -> Result<Option<Client>, Interruption> {
        let Some(presented) = PresentedClient::read(request, form)? else { return Ok(None) };
        let client = self.client(&presented.id)?;
        let endpoint = format!("{}{}", self.issuer, request.path);
        let names = [self.issuer.as_str(), &endpoint];
        presented.check(&client, &names, &mut self.assertions, at.unix)?;
        Ok(Some(client))
    }

    fn proven_key(&mut self, at: &Moment, request: &Request) -> Result<Option<String>, OAuthError> {
        let url = format!("{}{TOKEN}", self.issuer);
        let needs_nonce = self.config.dpop == Dpop::Nonce;
        let key = self.proofs.check(request, &url, needs_nonce, at)?;
        if key.is_none() && self.config.dpop != Dpop::Optional {
            let reason = "a DPoP proof is required";
            return Err(OAuthError::new("invalid_dpop_proof", reason));
        }
        Ok(key)
    }

    fn redeem(&mut self, at: &Moment, asked: &TokenRequest<'_>) -> Outcome {
        let client = asked.client()?;
        let form = asked.form;
        let target = resource(form)?;
        self.check_target(&Scopes::new(), target)?;
        let id = self.grants.next_id();
        let redeemed = self.codes.redeem(
            form.require("code")?,
            &client.id,
            form.get("redirect_uri")?,
            form.require("code_verifier")?,
            id,
            at.unix,
        );
        let mut grant = redeemed.map_err(|error| match error {
            CodeError::Refused(error) => error,
            CodeError::Reused(tokens) => {
                self.grants.revoke(tokens);
                OAuthError::new("invalid_grant", "the code was used before; its tokens are revoked")
            }
        })?;
        narrow_resource(&mut grant, target)?;
        match (&grant.key, &asked.key) {
            (Some(own), Some(proven)) if own == proven => (),
            (Some(_), _) => {
                let reason = "the code is bound to another key";
                return Err(OAuthError::new("invalid_dpop_proof", reason).into());
            }
            (None, _) => grant.key.clone_from(&asked.key),
        }
        let has_refresh = self.config.refresh_tokens && client.may_use("refresh_token");
        let refresh = has_refresh.then(|| at.id("refresh token"));
        // The grant is kept without a refresh token too, so that its access token can be revoked.
        self.grants.keep(id, grant.clone(), refresh.as_deref().unwrap_or(&at.id("unused")));
        self.issue(at, Some(id), &grant, refresh)
    }

    fn refresh(&mut self, at: &Moment, asked: &TokenRequest<'_>) -> Outcome {
        let client = asked.client()?;
        let token = asked.form.require("refresh_token")?;
        let requested = asked.scopes()?;
        let target = resource(asked.form)?;
        self.check_target(&Scopes::new(), target)?;
        // The token is used up only by a request that is right.
        if let Some((_, grant)) = self.grants.of_token(token) {
            if grant.key.is_some() && !client.is_confidential() && grant.key != asked.key {
                let reason = "the refresh token is bound to another key";
                return Err(OAuthError::new("invalid_dpop_proof", reason).into());
            }
            if requested.as_ref().is_some_and(|scopes| !scopes.is_subset(&grant.scopes)) {
                let reason = "scope has more than was granted";
                return Err(OAuthError::new("invalid_scope", reason).into());
            }
            narrow_resource(&mut grant.clone(), target)?;
        }
        let next = at.id("refresh token");
        let rotated = self.grants.rotate(token, &client.id, &next);
        let (id, grant) = rotated.map_err(|error| {
            OAuthError::new(
                "invalid_grant",
                match error {
                    RefreshError::Unknown => "the refresh token is unknown, or was revoked",
                    RefreshError::OtherClient => "the refresh token was issued to another client",
                    RefreshError::Reused => {
                        "the refresh token was used before; all its tokens are revoked"
                    }
                },
            )
        })?;
        let mut grant = grant.clone();
        narrow_resource(&mut grant, target)?;
        if let Some(scopes) = requested {
            grant.scopes = scopes;
        }
        grant.key.clone_from(&asked.key);
        // The nonce is that of the sign-in.
        grant.nonce = None;
        self.issue(at, Some(id), &grant, Some(next))
    }

    fn client_credentials(&mut self, at: &Moment, asked: &TokenRequest<'_>) -> Outcome {
        let client = asked.confidential_client()?;
        let grant = Grant {
            client_id: client.id.clone(),
            subject: client.id.clone(),
            scopes: asked.scopes()?.unwrap_or_default(),
            resource: resource(asked.form)?.map(ToOwned::to_owned),
            nonce: None,
            key: asked.key.clone(),
        };
        self.check_target(&grant.scopes, grant.resource.as_deref())?;
        self.issue(at, None, &grant, None)
    }

    /// Issues the tokens of a grant and returns the response (RFC 6749, section 5.1).
    pub(super) fn issue(
        &mut self,
        at: &Moment,
        id: Option<GrantId>,
        grant: &Grant,
        refresh: Option<String>,
    ) -> Outcome {
        let life = self.config.expires_in.as_secs();
        let expires = match self.faults.expired_tokens {
            true => at.unix.saturating_sub(EXPIRED_SINCE),
            false => at.unix + life,
        };
        let is_jwt = self.config.token_format == TokenFormat::Jwt;
        let options = TokenForm { is_jwt, expires, claims: Map::new() };
        let token = self.tokens.issue(&self.issuer, &self.keys, (id, grant), options, at)?;
        let mut body = json!({
            "access_token": token,
            "token_type": if grant.key.is_some() { "DPoP" } else { "Bearer" },
            "expires_in": life,
            "scope": scopes::join(&grant.scopes),
        });
        if let Some(refresh) = refresh {
            body["refresh_token"] = refresh.into();
        }
        if grant.scopes.contains("openid") {
            let (subject, nonce) = (&grant.subject, grant.nonce.as_deref());
            let identity = self.sign_identity(at, subject, &grant.client_id, expires, nonce)?;
            body["id_token"] = identity.into();
        }
        self.wants_key = self.faults.rotate_keys;
        Ok(Response::json(StatusCode::OK, &body))
    }
}

/// Sets the resource of a token request. Errors if the grant is for another one (RFC 8707, section 2.2).
fn narrow_resource(grant: &mut Grant, target: Option<&str>) -> Result<(), OAuthError> {
    match (&grant.resource, target) {
        (_, None) => Ok(()),
        (Some(own), Some(target)) if own == target => Ok(()),
        (Some(_), Some(_)) => {
            let reason = "resource is another one than in the authorization request";
            Err(OAuthError::new("invalid_target", reason))
        }
        (None, Some(target)) => {
            grant.resource = Some(target.to_owned());
            Ok(())
        }
    }
}
