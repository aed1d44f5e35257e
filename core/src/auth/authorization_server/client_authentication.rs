//! The authentication of clients at an endpoint (RFC 6749, section 2.3; RFC 7523, section 2.2).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header;
use serde_json::Value;

use super::{
    super::used_once::{NotUsable, UsedOnce},
    clients::{Client, ClientMethod},
    message::{Form, OAuthError, Request},
    signed_jwt::SignedJwt,
};
use crate::auth::{Secret, TokenDigest, fetch::decode, registered_names::CLIENT_ASSERTION};

/// The maximum lifetime of an assertion in seconds: for so long its use is remembered.
const MAX_ASSERTION: u64 = 600;

/// The client that a request names, and the credentials in it.
pub(super) struct PresentedClient {
    pub(super) id: String,
    credentials: Credentials,
}

enum Credentials {
    None,
    Secret(Secret, ClientMethod),
    Assertion(Box<SignedJwt>),
}

impl PresentedClient {
    /// Reads the credentials of a request. Returns `None` if it names no client. Errors if there is more than one kind.
    pub(super) fn read(request: &Request, form: &Form) -> Result<Option<Self>, OAuthError> {
        let basic = read_basic(request)?;
        let (id, secret) = (form.get("client_id")?, form.get("client_secret")?);
        let assertion = form.get("client_assertion")?;
        let kinds = [basic.is_some(), secret.is_some(), assertion.is_some()];
        if kinds.iter().filter(|is_given| **is_given).count() > 1 {
            let reason = "the request authenticates its client in more than one way";
            return Err(OAuthError::new("invalid_request", reason));
        }
        let presented = if let Some((id, secret)) = basic {
            let credentials = Credentials::Secret(secret.into(), ClientMethod::Basic);
            Self { id, credentials }
        } else if let Some(assertion) = assertion {
            if form.get("client_assertion_type")? != Some(CLIENT_ASSERTION) {
                return Err(OAuthError::client("client_assertion_type is not supported", false));
            }
            let jwt =
                SignedJwt::parse(assertion).map_err(|error| OAuthError::client(error, false))?;
            let id = jwt.text("sub").unwrap_or_default().to_owned();
            Self { id, credentials: Credentials::Assertion(Box::new(jwt)) }
        } else {
            let Some(id) = id else { return Ok(None) };
            let credentials = match secret {
                Some(it) => Credentials::Secret(it.into(), ClientMethod::Post),
                None => Credentials::None,
            };
            Self { id: id.to_owned(), credentials }
        };
        match id {
            Some(id) if id != presented.id => {
                Err(OAuthError::new("invalid_request", "client_id is of another client"))
            }
            _ => Ok(Some(presented)),
        }
    }

    /// Checks the credentials. `names`: the audiences of an assertion, the issuer and the endpoint.
    pub(super) fn check(
        &self,
        client: &Client,
        names: &[&str],
        used: &mut UsedOnce,
        unix: u64,
    ) -> Result<(), OAuthError> {
        let is_basic = matches!(self.credentials, Credentials::Secret(_, ClientMethod::Basic));
        let refused = |reason: &str| Err(OAuthError::client(reason, is_basic));
        let method = match &self.credentials {
            Credentials::None => ClientMethod::None,
            Credentials::Secret(_, method) => *method,
            Credentials::Assertion(_) => ClientMethod::PrivateKey,
        };
        if client.method.is_some_and(|registered| registered != method) {
            return refused("the client is registered with another authentication method");
        }
        match (&self.credentials, &client.secret, &client.keys) {
            (Credentials::None, None, None) => Ok(()),
            (Credentials::None, ..) => refused("the client has to authenticate"),
            (Credentials::Secret(secret, _), Some(own), _) if secret == own => Ok(()),
            (Credentials::Assertion(jwt), _, Some(keys)) => {
                if jwt.text("iss") != Some(&client.id) || !jwt.has_audience(names) {
                    return refused("the assertion is of another client or for another audience");
                }
                if let Err(reason) = jwt.verify(keys, unix) {
                    return refused(reason);
                }
                let expires = jwt.claims.get("exp").and_then(Value::as_u64).unwrap_or(u64::MAX);
                if expires > unix.saturating_add(MAX_ASSERTION) {
                    return refused("the assertion is valid for more than 10 minutes");
                }
                let Some(id) = jwt.text("jti") else { return refused("the assertion has no jti") };
                let owner = TokenDigest::new(&client.id);
                let id = TokenDigest::new(&format!("{} {id}", client.id));
                match used.use_once(owner, id, jwt.accepted_until(), unix) {
                    Ok(()) => Ok(()),
                    Err(NotUsable::UsedBefore) => refused("the assertion was used before"),
                    Err(NotUsable::NoRoom) => refused(
                        "the client has used very many assertions, which are remembered until they expire; use fewer",
                    ),
                }
            }
            _ => refused("the credentials of the client are wrong"),
        }
    }
}

/// Reads the client id and the secret of an `Authorization` header.
fn read_basic(request: &Request) -> Result<Option<(String, String)>, OAuthError> {
    let Some(value) = request.headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let invalid = || OAuthError::client("the Authorization header is malformed", true);
    let (scheme, value) =
        value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(invalid)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(OAuthError::client(
            "the Authorization header must have the scheme Basic",
            true,
        ));
    }
    let pair = STANDARD.decode(value.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = pair.ok_or_else(invalid)?;
    let (id, secret) = pair.split_once(':').ok_or_else(invalid)?;
    Ok(Some((decode(id), decode(secret))))
}
