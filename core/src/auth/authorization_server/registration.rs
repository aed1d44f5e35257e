//! Dynamic client registration (RFC 7591).

use serde_json::{Map, Value, json};

use super::{
    clients::{Client, ClientMetadata, ClientMethod},
    message::{OAuthError, Request},
};
use crate::{
    auth::{Secret, moment::Moment},
    protocol::json,
};

/// Creates a client from a registration request, with the id that `name` makes from the metadata and the client's secret. Returns
/// it with the body of the response.
pub(super) fn register(
    request: &Request,
    at: &Moment,
    name: impl FnOnce(&ClientMetadata, Option<&Secret>) -> Result<String, OAuthError>,
) -> Result<(Client, Value), OAuthError> {
    let invalid = |reason: &str| OAuthError::new("invalid_client_metadata", reason);
    let asked: Map<String, Value> =
        json::from_bytes(&request.body).map_err(|_| invalid("the body must be a JSON object"))?;
    let mut metadata: ClientMetadata = json::from_value(&Value::Object(asked))
        .map_err(|_| invalid("the client metadata are malformed"))?;
    // The defaults of section 2.
    let method = metadata.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_basic");
    let method = ClientMethod::named(method)
        .ok_or_else(|| invalid("token_endpoint_auth_method is not supported"))?;
    metadata.token_endpoint_auth_method = Some(method.name().to_owned());
    let grant_types = metadata.grant_types.get_or_insert_with(|| vec!["authorization_code".into()]);
    if grant_types.iter().any(|grant_type| grant_type == "authorization_code")
        && metadata.redirect_uris.is_empty()
    {
        let reason = "redirect_uris is missing, which authorization_code needs";
        return Err(OAuthError::new("invalid_redirect_uri", reason));
    }
    let secret = method.needs_secret().then(|| Secret::from(at.id("client secret")));
    let id = name(&metadata, secret.as_ref())?;
    let client = Client::new(id, secret, metadata)?;
    let mut body = json!({
        "client_id": client.id,
        "client_id_issued_at": at.unix,
        "redirect_uris": client.redirect_uris,
        "grant_types": client.grant_types,
        "response_types": ["code"],
        "token_endpoint_auth_method": method.name(),
    });
    if let Some(name) = &client.name {
        body["client_name"] = name.as_str().into();
    }
    if let Some(secret) = &client.secret {
        body["client_secret"] = secret.expose().into();
        body["client_secret_expires_at"] = 0.into();
    }
    Ok((client, body))
}
