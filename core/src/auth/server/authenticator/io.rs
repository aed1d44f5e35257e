//! The inputs and outputs of an authenticator.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, Method as HttpMethod};
use serde::Deserialize;

use crate::{
    auth::{
        Secret,
        fetch::{FetchError, FetchRequest, FetchResponse},
        server::resource::ResourceUrls,
    },
    error::Error,
    protocol::{Principal, json},
    replier::GivenUp,
    store::{StoreOperation, StoreReply},
};

/// The head of a request, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a HttpMethod,
    pub headers: &'a HeaderMap,
    /// The URLs of this resource; `None`: the server does not know its own.
    pub place: Option<&'a ResourceUrls>,
    /// The address of the client, by which what waits is shared.
    pub remote: Option<IpAddr>,
}

/// The number of a pending request.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AuthTicket(pub(super) u64);

/// The number of an HTTP request.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FetchId(pub(super) u64);

/// The sender of a request that is accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    pub principal: Arc<Principal>,
    /// The time at which its access token expires, with the leeway; `None`: it does not, or that is not known.
    pub expires: Option<Instant>,
}

/// The decision about a request.
#[derive(Debug)]
pub enum Checked {
    Accepted(Caller),
    Refused(AuthRefusal),
    /// [`AuthOutput::Decided`] will have the decision.
    Pending(AuthTicket),
}

/// The reason why a request is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AuthRefusal {
    /// The request has no credentials.
    Missing,
    /// The credentials come more than once or are unreadable.
    Malformed(String),
    InvalidToken(String),
    /// The proof of possession is missing or wrong.
    InvalidProof(String),
    /// The proof of possession needs this nonce.
    NeedsNonce(String),
    /// The credentials are valid and do not allow the request, which needs these scopes.
    InsufficientScope {
        scopes: Vec<String>,
        message: String,
    },
    /// Something that the decision needs does not answer.
    Unavailable,
    /// A function of the host failed.
    Failed,
    /// The server does not know its own URL, which access tokens are for.
    UnknownUrl,
}

/// An input of the authenticator.
#[derive(Debug)]
pub enum AuthInput {
    Fetched(FetchId, Result<FetchResponse, FetchError>),
    Verified(AuthTicket, VerifyReply),
    /// The reply to [`AuthOutput::Store`].
    Stored(AuthTicket, StoreReply),
    /// The sender of the request has left.
    Cancelled(AuthTicket),
    /// The time of the deadline has come.
    Tick,
}

/// The answer of a function of the host.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VerifyReply {
    Principal(Box<Principal>),
    /// The function does not know the token.
    Unknown,
    Invalid(String),
    InsufficientScope {
        scopes: Vec<String>,
        message: String,
    },
    /// The function failed.
    Failed,
}

/// An output of the authenticator.
#[derive(Debug)]
pub enum AuthOutput {
    Fetch(FetchId, FetchRequest),
    /// Call the host's function with this place in the list of methods.
    Verify {
        ticket: AuthTicket,
        method: usize,
        token: Secret,
    },
    /// Carry out an operation on the store.
    Store(AuthTicket, StoreOperation),
    Decided(AuthTicket, Result<Caller, AuthRefusal>),
}

impl Caller {
    /// Creates a caller with the time of its token's end, in seconds since 1970; `unix` is the current one.
    pub(super) fn new(
        principal: Arc<Principal>,
        expires: Option<u64>,
        now: Instant,
        unix: u64,
    ) -> Self {
        let left = |end: u64| Duration::from_secs(end.saturating_sub(unix));
        Self { principal, expires: expires.and_then(|end| now.checked_add(left(end))) }
    }
}

impl GivenUp for VerifyReply {
    fn given_up() -> Self {
        Self::Failed
    }
}

impl VerifyReply {
    /// Reads an answer: `{"principal": …}`, `"unknown"`, `{"invalid": message}`, `{"insufficientScope": {"scopes", "message"}}`, or
    /// `"failed"`. Errors if the JSON is something else, or if the principal is invalid, such as one whose subject is a number.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        json::from_bytes(json)
            .map_err(|error| Error::misuse(format!("the principal is invalid: {error}")))
    }
}

impl From<Result<Caller, AuthRefusal>> for Checked {
    fn from(decision: Result<Caller, AuthRefusal>) -> Self {
        match decision {
            Ok(caller) => Self::Accepted(caller),
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        for (given, expected) in [
            (r#"{"principal":{"subject":"ada","scopes":["a"]}}"#, "Principal("),
            (r#""unknown""#, "Unknown"),
            (r#"{"invalid":"it is blocked"}"#, r#"Invalid("it is blocked")"#),
            (
                r#"{"insufficientScope":{"scopes":["a"],"message":"m"}}"#,
                r#"InsufficientScope { scopes: ["a"], message: "m" }"#,
            ),
            (r#""failed""#, "Failed"),
        ] {
            let reply = VerifyReply::parse(given.as_bytes());
            let reply = reply.unwrap_or_else(|error| panic!("{given}: {error}"));
            assert!(format!("{reply:?}").starts_with(expected), "{given}: {reply:?}");
        }
        for given in [
            r#"{"principal":{"subject":7}}"#,
            r#"{"principal":{"subject":""}}"#,
            r#"{"principal":{}}"#,
            r#""other""#,
            "",
        ] {
            let error = VerifyReply::parse(given.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("the principal is invalid"), "{given}: {error}");
        }
    }
}
