//! Assertions of other issuers, which are exchanged for access tokens (RFC 7523, Enterprise-Managed Authorization, RFC 8693).

use http::StatusCode;
use serde_json::json;

use super::{
    super::{
        grant::Grant,
        message::{OAuthError, Response, resource},
        metadata::TOKEN,
        signed_jwt::SignedJwt,
        trusted_issuers::Found,
    },
    Interruption, Outcome, TestServer,
    token::TokenRequest,
};
use crate::auth::{
    TokenDigest,
    moment::Moment,
    registered_names::{ID_JAG, ID_TOKEN},
    scopes::{self, Scopes},
};

/// The type of an identity assertion grant.
const GRANT_TYP: &str = "oauth-id-jag+jwt";
/// The lifetime of such a grant, in seconds.
const GRANT_LIFE: u64 = 300;

impl TestServer {
    /// Exchanges an assertion for an access token: the grant of an identity provider, or a token of the platform that a
    /// workload runs on.
    pub(super) fn take_assertion(
        &mut self,
        at: &Moment,
        asked: &TokenRequest<'_>,
        is_first: bool,
    ) -> Outcome {
        let refused = |reason: &str| OAuthError::new("invalid_grant", reason);
        let jwt = SignedJwt::parse(asked.form.require("assertion")?).map_err(refused)?;
        self.verify_assertion(at, &jwt, is_first)?;
        let endpoint = format!("{}{TOKEN}", self.issuer);
        let subject = jwt.text("sub").ok_or_else(|| refused("the assertion names no subject"))?;
        let requested = asked.scopes()?;
        let grant = if jwt.typ == GRANT_TYP {
            let client = asked.client()?;
            if !jwt.has_audience(&[&self.issuer]) {
                return Err(refused("the assertion is for another authorization server").into());
            }
            if jwt.text("client_id") != Some(&client.id) {
                return Err(refused("the assertion was issued to another client").into());
            }
            let granted = scopes::parse(jwt.text("scope").unwrap_or_default());
            if requested.as_ref().is_some_and(|scopes| !scopes.is_subset(&granted)) {
                let reason = "scope has more than the identity provider granted";
                return Err(OAuthError::new("invalid_scope", reason).into());
            }
            let resource = jwt.text("resource").map(ToOwned::to_owned);
            grant(asked, subject, &client.id, requested.unwrap_or(granted), resource)
        } else {
            if !jwt.has_audience(&[&self.issuer, &endpoint]) {
                return Err(refused("the assertion is for another authorization server").into());
            }
            let client = asked.client.as_ref().map_or(subject, |client| &client.id);
            let resource = resource(asked.form)?.map(ToOwned::to_owned);
            grant(asked, subject, client, requested.unwrap_or_default(), resource)
        };
        self.check_target(&grant.scopes, grant.resource.as_deref())?;
        // A grant is used once; the token of a platform is used as long as it lasts (RFC 7523, section 3).
        if jwt.typ == GRANT_TYP {
            let id = jwt.text("jti").ok_or_else(|| refused("the assertion has no jti"))?;
            let issuer = jwt.text("iss").unwrap_or_default();
            let (owner, id) =
                (TokenDigest::new(issuer), TokenDigest::new(&format!("{issuer} {id}")));
            let used = self.assertions.use_once(owner, id, jwt.accepted_until(), at.unix);
            if used.is_err() {
                return Err(refused("the assertion was used before").into());
            }
        }
        self.issue(at, None, &grant, None)
    }

    /// Verifies an assertion with the keys of its issuer, which are fetched, and again if they lack its key.
    fn verify_assertion(
        &mut self,
        at: &Moment,
        jwt: &SignedJwt,
        is_first: bool,
    ) -> Result<(), Interruption> {
        let refused = |reason: &str| OAuthError::new("invalid_grant", reason);
        let issuer = jwt.text("iss").unwrap_or_default();
        if issuer == self.issuer {
            return Ok(jwt.verify(&self.keys.public(), at.unix).map_err(refused)?);
        }
        let unusable = |error: crate::auth::fetch::FetchError| refused(&error.to_string());
        if is_first
            && matches!(self.trusted.keys(issuer), Ok(Found::Keys(keys)) if !jwt.has_key_in(keys))
        {
            self.trusted.forget_keys(issuer);
        }
        match self.trusted.keys(issuer).map_err(unusable)? {
            Found::Untrusted => Err(refused("the issuer of the assertion is not trusted").into()),
            Found::Fetch(fetch) => Err(Interruption::Fetch(fetch)),
            Found::Keys(keys) => Ok(jwt.verify(keys, at.unix).map_err(refused)?),
        }
    }

    /// Exchanges a user's identity token for a grant at another authorization server, as an identity provider.
    pub(super) fn exchange(&mut self, at: &Moment, asked: &TokenRequest<'_>) -> Outcome {
        let form = asked.form;
        let client = asked.client()?;
        let refused = |reason: &str| OAuthError::new("invalid_grant", reason);
        let invalid = |reason: &str| OAuthError::new("invalid_request", reason);
        if form.require("requested_token_type")? != ID_JAG {
            return Err(invalid("requested_token_type is not supported").into());
        }
        if form.require("subject_token_type")? != ID_TOKEN {
            return Err(invalid("subject_token_type is not supported").into());
        }
        let identity = SignedJwt::parse(form.require("subject_token")?).map_err(refused)?;
        identity.verify(&self.keys.public(), at.unix).map_err(refused)?;
        let is_own = identity.typ == "jwt" && identity.text("iss") == Some(&self.issuer);
        if !is_own || !identity.has_audience(&[&client.id]) {
            return Err(
                refused("the subject_token is not an identity token for this client").into()
            );
        }
        let subject = identity.text("sub").ok_or_else(|| refused("subject_token has no sub"))?;
        let resource = resource(form)?.ok_or_else(|| invalid("resource is missing"))?;
        let scopes = asked.scopes()?.unwrap_or_default();
        self.check_target(&scopes, Some(resource))?;
        let scopes = scopes::join(&scopes);
        let grant = json!({
            "iss": self.issuer, "sub": subject, "aud": form.require("audience")?, "resource": resource,
            "client_id": client.id, "scope": scopes, "jti": at.id("grant"), "iat": at.unix,
            "exp": at.unix + GRANT_LIFE,
        });
        let body = json!({
            "access_token": self.keys.sign(GRANT_TYP, &grant)?, "issued_token_type": ID_JAG,
            "token_type": "N_A", "expires_in": GRANT_LIFE, "scope": scopes,
        });
        Ok(Response::json(StatusCode::OK, &body))
    }
}

fn grant(
    asked: &TokenRequest<'_>,
    subject: &str,
    client_id: &str,
    scopes: Scopes,
    resource: Option<String>,
) -> Grant {
    let (subject, client_id) = (subject.to_owned(), client_id.to_owned());
    Grant { client_id, subject, scopes, resource, nonce: None, key: asked.key.clone() }
}
