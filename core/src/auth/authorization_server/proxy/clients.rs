//! The clients of the proxy. The id of a client that registers contains its metadata, sealed, so that nothing is kept; a client
//! with a Client ID Metadata Document is described at its id.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{
    super::{
        bounded::Bounded,
        clients::{Client, ClientMetadata},
        message::{OAuthError, Request},
        registration,
    },
    sealed::{Sealer, Use},
};
use crate::auth::{
    Secret, TokenDigest,
    fetch::{FetchError, FetchRequest, FetchResponse, Reach},
    moment::Moment,
};

/// The maximum number of documents that are kept.
const MAX_DOCUMENTS: usize = 1_000;
/// The maximum size of a document, in bytes (Client ID Metadata Documents, section 6.6).
const MAX_DOCUMENT: usize = 5 * 1024;
/// The seconds for which a document is kept at least and at most, whatever its server says.
const KEPT: (u64, u64) = (60, 3_600);
/// The seconds for which a failure is kept.
const KEPT_FAILURE: u64 = 10;
/// The maximum number of documents that are being fetched.
const MAX_FETCHING: usize = 32;
/// The maximum length of an id.
const MAX_ID: usize = 2_048;

/// The clients that documents describe.
#[derive(Debug)]
pub(super) struct Documents {
    kept: Bounded<String, Document>,
    fetching: usize,
}

#[derive(Debug)]
struct Document {
    client: Result<Client, OAuthError>,
    /// Seconds since 1970.
    expires: u64,
}

/// A client that registered, as its id contains it.
#[derive(Deserialize, Serialize)]
struct Registered {
    #[serde(rename = "m")]
    metadata: ClientMetadata,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    secret: Option<Secret>,
}

/// The place where a client is looked for.
pub(super) enum Found {
    Client(Box<Client>),
    /// Its document has to be fetched.
    Fetch(Box<FetchRequest>),
}

impl Documents {
    pub(super) fn new() -> Self {
        Self { kept: Bounded::new(MAX_DOCUMENTS), fetching: 0 }
    }

    /// Returns the client with this id. If its document has to be fetched, [`Self::take`] has to follow.
    pub(super) fn find(
        &mut self,
        id: &str,
        issuer: &str,
        sealer: &Sealer,
        unix: u64,
    ) -> Result<Found, OAuthError> {
        if id.starts_with("https://") {
            if let Some(document) =
                self.kept.get(&id.to_owned()).filter(|document| unix < document.expires)
            {
                return document.client.clone().map(|client| Found::Client(Box::new(client)));
            }
            let request = document_request(id)?;
            if self.fetching >= MAX_FETCHING {
                return Err(unavailable("too many client metadata documents are being fetched"));
            }
            self.fetching += 1;
            return Ok(Found::Fetch(Box::new(request)));
        }
        let Registered { metadata, secret } =
            sealer.open(Use::Client, issuer, id).ok_or_else(|| {
                OAuthError::client(
                    "the client is unknown: register again, or use the URL of a client metadata document",
                    false,
                )
            })?;
        Client::new(id.to_owned(), secret, metadata).map(|client| Found::Client(Box::new(client)))
    }

    /// Takes the document of a client. A failure is kept for a short time. While its server is away, the last document counts.
    pub(super) fn take(&mut self, id: &str, answer: &Result<FetchResponse, FetchError>, unix: u64) {
        self.fetching = self.fetching.saturating_sub(1);
        let is_away = match answer {
            Ok(answer) => answer.status.is_server_error(),
            Err(error) => matches!(error, FetchError::TimedOut(_) | FetchError::Connection(_)),
        };
        let failed = |error: &FetchError| {
            let reason = format!("the client metadata document can't be used: {id}: {error}");
            match is_away {
                true => unavailable(reason),
                false => OAuthError::client(reason, false),
            }
        };
        let client = answer.as_ref().map_err(failed).and_then(|answer| {
            let document = answer.document().map_err(|error| failed(&error))?;
            Client::of_document(id, &document)
        });
        let kept = match (&client, answer) {
            (Ok(_), Ok(answer)) => max_age(answer).clamp(KEPT.0, KEPT.1),
            _ => KEPT_FAILURE,
        };
        let former = self.kept.remove(&id.to_owned()).map(|document| document.client);
        let client = match (client, former) {
            (Err(_), Some(Ok(former))) if is_away => Ok(former),
            (client, _) => client,
        };
        self.kept.insert(id.to_owned(), Document { client, expires: unix + kept });
    }
}

/// Registers a client (RFC 7591). Returns the body of the response.
pub(super) fn register(
    request: &Request,
    issuer: &str,
    sealer: &Sealer,
    allows: impl Fn(&str) -> bool,
    at: &Moment,
) -> Result<serde_json::Value, OAuthError> {
    let (_, body) = registration::register(request, at, |metadata, secret| {
        if let Some(refused) = metadata.redirect_uris.iter().find(|uri| !allows(uri)) {
            let reason = format!(
                "this server does not allow the redirect URL {refused:?}; unless its operator allows others, the scheme is \
                 https, http on loopback, a domain name in reverse such as com.example.app, or that of a known client"
            );
            return Err(OAuthError::new("invalid_redirect_uri", reason));
        }
        let registered = Registered { metadata: metadata.clone(), secret: secret.cloned() };
        let id = sealer.seal(Use::Client, issuer, &registered, at).unwrap_or_default();
        match id.len() {
            1..=MAX_ID => Ok(id),
            _ => Err(OAuthError::new(
                "invalid_client_metadata",
                "the metadata are too long: redirect_uris, client_name and jwks may have about 1,400 bytes together",
            )),
        }
    })?;
    Ok(body)
}

/// Returns the error for what may work later.
fn unavailable(reason: impl Into<String>) -> OAuthError {
    OAuthError {
        status: StatusCode::SERVICE_UNAVAILABLE,
        ..OAuthError::new("temporarily_unavailable", reason)
    }
}

/// Returns a short name of a client, which tokens contain: the URL of its document, or the digest of its id.
pub(super) fn short_id(id: &str) -> String {
    match id.starts_with("https://") {
        true => id.to_owned(),
        false => URL_SAFE_NO_PAD.encode(&TokenDigest::new(id).0[..16]),
    }
}

/// Returns the request for a document. The host connects to public addresses only.
fn document_request(id: &str) -> Result<FetchRequest, OAuthError> {
    let invalid = |reason: String| OAuthError::client(reason, false);
    let path =
        id.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map(|(_, path)| path);
    let has_dots =
        |path: &str| path.split(['/', '?']).any(|segment| segment == "." || segment == "..");
    if id.len() > MAX_ID || path.is_none_or(|path| path.is_empty() || has_dots(path)) {
        return Err(invalid("a client_id that is a URL needs a path without dot segments".into()));
    }
    let mut request = FetchRequest::get(id, MAX_DOCUMENT)
        .map_err(|error| invalid(format!("client_id: {error}")))?;
    request.reach = Reach::Public;
    Ok(request)
}

/// Returns the seconds for which a response may be kept, 0 if it does not say.
fn max_age(answer: &FetchResponse) -> u64 {
    let control =
        answer.headers.get(http::header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let mut parts = control.unwrap_or_default().split(',').map(str::trim);
    parts.find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok()).unwrap_or(0)
}
