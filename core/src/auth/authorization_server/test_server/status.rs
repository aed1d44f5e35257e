//! Introspection (RFC 7662) and revocation (RFC 7009).

use http::StatusCode;
use serde_json::json;

use super::{
    super::message::{Form, OAuthError, Request, Response},
    Outcome, TestServer,
};
use crate::auth::moment::Moment;

impl TestServer {
    /// Answers a client with credentials whether a token is active, and with its claims.
    pub(super) fn introspect(&mut self, at: &Moment, request: &Request) -> Outcome {
        let form = Form::of_body(request)?;
        let client = self.authenticated(at, request, &form)?;
        if !client.is_some_and(|client| client.is_confidential()) {
            return Err(
                OAuthError::client("introspection needs a client with credentials", true).into()
            );
        }
        let token = form.require("token")?;
        let claims = self.tokens.active(token, at.unix, |grant| self.grants.is_valid(grant));
        let answer = match claims {
            Some(claims) => {
                let mut answer = claims.clone();
                answer["active"] = true.into();
                let is_bound = claims.get("cnf").is_some();
                answer["token_type"] = if is_bound { "DPoP" } else { "Bearer" }.into();
                answer
            }
            None => json!({ "active": false }),
        };
        Ok(Response::json(StatusCode::OK, &answer))
    }

    /// Revokes a token of the client, and with a refresh token all tokens of its grant. An unknown token is not an error.
    pub(super) fn revoke(&mut self, at: &Moment, request: &Request) -> Outcome {
        let form = Form::of_body(request)?;
        let client = self.authenticated(at, request, &form)?;
        let client =
            client.ok_or_else(|| OAuthError::client("the request names no client", false))?;
        let token = form.require("token")?;
        self.tokens.revoke(token, &client.id);
        let found = self.grants.of_token(token).filter(|(_, grant)| grant.client_id == client.id);
        if let Some((id, _)) = found {
            self.grants.revoke(id);
        }
        Ok(Response::empty(StatusCode::OK))
    }
}
