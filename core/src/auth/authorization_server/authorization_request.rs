//! Requests to the authorization endpoint (RFC 6749, section 4.1; RFC 7636; RFC 8707; RFC 9207; RFC 9449, section 10).

use serde::{Deserialize, Serialize};

use super::{
    clients::Client,
    message::{Form, OAuthError, Response, resource},
};
use crate::auth::{
    fetch::encode_form,
    scopes::{self, Scopes},
};

/// The length of a challenge with S256 (RFC 7636, section 4.2).
const CHALLENGE: usize = 43;
const MAX_STATE: usize = 4_096;

/// A valid request, about which the user decides.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct AuthorizationRequest {
    pub(super) redirect: Redirect,
    pub(super) client_id: String,
    pub(super) client_name: Option<String>,
    pub(super) scopes: Scopes,
    pub(super) resource: Option<String>,
    pub(super) challenge: String,
    /// The nonce of an identity token (`OpenID` Connect).
    pub(super) nonce: Option<String>,
    /// The thumbprint of the key to which the tokens are bound.
    pub(super) key: Option<String>,
}

/// The place to which the user's browser returns.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Redirect {
    pub(super) uri: String,
    state: Option<String>,
}

impl Redirect {
    /// Reads the redirect URL, which is used only if the client registered it. Without one in the request, the client's
    /// only one is used.
    pub(super) fn read(form: &Form, client: &Client) -> Result<Self, OAuthError> {
        let invalid = |reason: &str| OAuthError::new("invalid_request", reason);
        let uri = match (form.get("redirect_uri")?, client.redirect_uris.as_slice()) {
            (Some(uri), _) if client.has_redirect_uri(uri) => uri.to_owned(),
            (Some(_), _) => return Err(invalid("the client has not registered this redirect_uri")),
            (None, [only]) => only.clone(),
            (None, _) => return Err(invalid("redirect_uri is missing")),
        };
        let state = form.get("state")?.map(ToOwned::to_owned);
        if state.as_ref().is_some_and(|state| state.len() > MAX_STATE) {
            return Err(invalid("state is longer than 4,096 bytes"));
        }
        Ok(Self { uri, state })
    }

    /// Returns the response with a code, or with an error.
    pub(super) fn response(&self, issuer: &str, outcome: Result<&str, &OAuthError>) -> Response {
        Response::redirect(&self.url(issuer, outcome))
    }

    /// Returns the URL with a code, or with an error.
    pub(super) fn url(&self, issuer: &str, outcome: Result<&str, &OAuthError>) -> String {
        let mut fields = match outcome {
            Ok(code) => vec![("code", code)],
            Err(error) => {
                vec![("error", error.code), ("error_description", error.description.as_str())]
            }
        };
        fields.extend(self.state.as_deref().map(|state| ("state", state)));
        fields.push(("iss", issuer));
        let separator = if self.uri.contains('?') { '&' } else { '?' };
        format!("{}{separator}{}", self.uri, encode_form(&fields))
    }
}

impl AuthorizationRequest {
    /// Reads the request. The client learns the error at its redirect URL.
    pub(super) fn read(
        form: &Form,
        client: &Client,
        redirect: Redirect,
    ) -> Result<Self, OAuthError> {
        let invalid = |reason: &str| OAuthError::new("invalid_request", reason);
        if form.require("response_type")? != "code" {
            return Err(OAuthError::new("unsupported_response_type", "response_type must be code"));
        }
        if !client.may_use("authorization_code") {
            let reason = "the client is not registered for authorization_code";
            return Err(OAuthError::new("unauthorized_client", reason));
        }
        let challenge = form.require("code_challenge")?;
        if form.get("code_challenge_method")? != Some("S256") || challenge.len() != CHALLENGE {
            return Err(invalid("PKCE with code_challenge_method S256 is required"));
        }
        let owned = |value: Option<&str>| value.map(ToOwned::to_owned);
        Ok(Self {
            redirect,
            client_id: client.id.clone(),
            client_name: client.name.clone(),
            scopes: scopes::parse(form.get("scope")?.unwrap_or_default()),
            resource: owned(resource(form)?),
            challenge: challenge.to_owned(),
            nonce: owned(form.get("nonce")?),
            key: owned(form.get("dpop_jkt")?),
        })
    }
}
