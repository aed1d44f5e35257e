//! The records of a sign-in, for programs that show them.

use super::records::{self, CredentialsRecord, ServerRecord, Tokens};
use crate::{
    auth::{Secret, fetch::FetchRequest, scopes::Scopes},
    error::Error,
};

/// The record of an MCP server in a store.
pub struct StoredServer(ServerRecord);

/// A sign-in in a store. `Debug` leaves the token out.
#[derive(Clone, Debug)]
pub struct StoredSignIn {
    /// The authorization server.
    pub issuer: String,
    /// The resource that the tokens are for, as the server names it.
    pub resource: String,
    /// The client's id, if it registered itself.
    pub client_id: Option<String>,
    pub scopes: Scopes,
    /// `None` if there is no access token.
    pub access_token: Option<Secret>,
    /// The seconds since 1970 at which the access token expires, if that is known.
    pub expires_at: Option<u64>,
    /// True if there is a refresh token.
    pub is_renewable: bool,
    /// True if the token is bound to a key.
    pub is_bound: bool,
}

/// Returns the key of the record of an MCP server; `client` is the id of a client that was registered beforehand.
pub fn server_key(target: &str, client: Option<&str>) -> String {
    records::server_key(target, client)
}

impl StoredServer {
    /// Reads a record. `store` is the name of the store, for errors.
    pub fn read(store: &str, key: &str, bytes: &[u8]) -> Result<Self, Error> {
        records::read_from(store, key, bytes).map(Self)
    }

    /// Returns the keys that the record of the credentials may have. `client` is the id of a client that was registered
    /// beforehand, `document` the URL of a client metadata document.
    pub fn credentials_keys(&self, client: Option<&str>, document: Option<&str>) -> Vec<String> {
        let ids = [client.or(document), client];
        ids.into_iter().map(|id| records::credentials_key(&self.0, id)).collect()
    }

    /// Returns the sign-in with the record of the credentials.
    pub fn sign_in(&self, store: &str, key: &str, bytes: &[u8]) -> Result<StoredSignIn, Error> {
        let CredentialsRecord { client, tokens, .. } = records::read_from(store, key, bytes)?;
        let scopes = tokens.as_ref().map(|tokens| tokens.granted.clone()).unwrap_or_default();
        let of = |find: fn(&Tokens) -> bool| tokens.as_ref().is_some_and(find);
        Ok(StoredSignIn {
            issuer: self.0.metadata.issuer.clone(),
            resource: self.0.resource.clone(),
            client_id: client.map(|client| client.id),
            scopes,
            expires_at: tokens.as_ref().and_then(|tokens| tokens.expires_at),
            is_renewable: of(|tokens| tokens.refresh.is_some()),
            is_bound: of(|tokens| tokens.is_dpop),
            access_token: tokens.map(|tokens| tokens.access),
        })
    }

    /// Returns the request that revokes the tokens in a record of credentials (RFC 7009), `None` if the authorization server
    /// has no endpoint for it or there are none. `given` is the id and the secret of a client that was registered beforehand.
    pub fn revocation(
        &self,
        store: &str,
        key: &str,
        bytes: &[u8],
        given: Option<(&str, Option<&str>)>,
    ) -> Result<Option<FetchRequest>, Error> {
        let CredentialsRecord { client, tokens, .. } = records::read_from(store, key, bytes)?;
        let own =
            client.as_ref().map(|client| (&*client.id, client.secret.as_ref().map(Secret::expose)));
        let (Some(url), Some(tokens), Some((id, secret))) =
            (&self.0.metadata.revocation_endpoint, &tokens, given.or(own))
        else {
            return Ok(None);
        };
        let (token, kind) = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        let fields = [("token", token.expose()), ("token_type_hint", kind)];
        let request = match secret {
            Some(secret) => {
                FetchRequest::post_form(url, &fields).map(|request| request.with_basic(id, secret))
            }
            None => FetchRequest::post_form(url, &[fields[0], fields[1], ("client_id", id)]),
        };
        // A URL that can't be used revokes nothing.
        Ok(request.ok())
    }
}
