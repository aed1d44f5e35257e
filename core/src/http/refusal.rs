//! Requests that are refused before they reach a session, and the answers to them.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    Part,
    admission::Admission,
    challenge::{self, Demands},
    guard::GuardRefusal,
    logging::Reason,
    reply,
    requests::RETRY_AFTER,
};
use crate::{error::option_name, protocol::json::ObjectWriter};

/// The reason why an HTTP request is refused before it reaches a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    /// The body is longer than the limit.
    BodyTooLarge,
    /// The body did not come in time.
    BodyTooSlow,
    /// The body could not be read.
    BodyBroken,
    /// So many bytes of unfinished requests are held that this one can't be received.
    TooMuchInput,
    /// The authentication failed with an internal error.
    Unidentified,
    /// The server does not know its own URL, which access tokens are for.
    UnknownUrl,
    /// The request has no credentials.
    NoCredentials,
    /// The credentials are unreadable, or come more than once; the text says which.
    InvalidRequest(String),
    /// The credentials are missing, or no longer or not valid here; the text says why.
    InvalidToken(String),
    /// The proof that the sender has the key of its token is missing or wrong; the text says why.
    InvalidProof(String),
    /// The proof that the sender has the key of its token needs this nonce.
    NeedsNonce(String),
    /// Something that the authentication needs does not answer.
    AuthUnavailable,
    /// The credentials are valid and do not allow this: these scopes are needed.
    InsufficientScope { scopes: Vec<String>, message: String },
}

impl Admission {
    /// Returns the answer to a refused request with these headers. `cors` are the CORS headers of the answer.
    pub(super) fn refusal(
        &self,
        refused: &Refused,
        headers: &HeaderMap,
        cors: Option<&HeaderMap>,
        demands: &Demands,
    ) -> Part {
        #[cfg(feature = "auth")]
        if let (Refused::UnknownUrl, Some(protected)) = (refused, self.protected()) {
            protected.report_unknown_url();
        }
        let (status, message) = match refused {
            Refused::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, self.too_long()),
            Refused::BodyTooSlow => {
                (StatusCode::REQUEST_TIMEOUT, "the body did not come in time".into())
            }
            Refused::BodyBroken => (StatusCode::BAD_REQUEST, "the body could not be read".into()),
            Refused::TooMuchInput => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too much is being received: send this request again later".into(),
            ),
            Refused::Unidentified | Refused::UnknownUrl => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server could not identify the caller".into(),
            ),
            Refused::NoCredentials => {
                (StatusCode::UNAUTHORIZED, "the request has no access token".into())
            }
            Refused::InvalidRequest(message) => (StatusCode::BAD_REQUEST, message.clone()),
            Refused::InvalidToken(message) | Refused::InvalidProof(message) => {
                (StatusCode::UNAUTHORIZED, message.clone())
            }
            Refused::NeedsNonce(_) => {
                (StatusCode::UNAUTHORIZED, "the DPoP proof needs a nonce".into())
            }
            Refused::AuthUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the access token can't be checked at the moment: send this request again later"
                    .into(),
            ),
            Refused::InsufficientScope { message, .. } => (StatusCode::FORBIDDEN, message.clone()),
        };
        let body = match status {
            StatusCode::INTERNAL_SERVER_ERROR => reply::failure_body(&message),
            _ => reply::refusal_body(&message),
        };
        let has_credentials = headers.contains_key(header::AUTHORIZATION);
        let mut headers = reply::json_head();
        if let Some(challenge) = challenge::for_refusal(refused, has_credentials, demands) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Refused::NeedsNonce(nonce) = refused
            && let Ok(nonce) = HeaderValue::try_from(nonce)
        {
            headers.insert("dpop-nonce", nonce);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        headers.extend(cors.cloned().unwrap_or_default());
        Part::Head { status, headers, body, more: false }
    }

    fn too_long(&self) -> String {
        let option = option_name("max_body");
        format!("the body is longer than {} bytes (option {option})", self.0.config.max_body)
    }
}

/// Returns the answer to a request whose host or origin is not allowed, and the reason for the log.
pub(super) fn forbidden(refusal: GuardRefusal) -> (Part, Reason) {
    let GuardRefusal { status, reason } = refusal;
    let mut body = ObjectWriter::with_capacity(reason.text.len() + 16);
    // The message names the setting that would let the request in.
    body.member("error", &*reason.text);
    let (headers, body) = (reply::json_head(), body.finish().into_bytes());
    (Part::Head { status, headers, body, more: false }, reason)
}
