//! The error codes of JSON-RPC and of all revisions.

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;

/// The user refused to let the model be asked (Sampling, up to 2025-11-25).
pub const USER_REJECTED: i64 = -1;
/// The resource does not exist (up to 2025-11-25).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A URL must be visited before the request is repeated (2025-11-25 only).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// Headers and body disagree (from 2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request requires (from 2026-07-28).
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The server does not speak the revision that the request names (from 2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// Returns whether the specification reserves this code without giving it a meaning (from 2026-07-28).
pub(crate) fn is_reserved(code: i64) -> bool {
    (-32099..=-32020).contains(&code) && !is_modern(code)
}

/// The session expired after being idle (dialect 0.7).
pub(crate) const DIALECT_SESSION_EXPIRED: i64 = 1002;
/// The resource does not exist (dialect 0.7).
pub(crate) const DIALECT_RESOURCE_NOT_FOUND: i64 = 3001;
/// A tool's arguments do not match its schema (dialect 0.7).
pub(crate) const DIALECT_TOOL_ARGUMENTS: i64 = 4002;
/// A tool failed (dialect 0.7).
pub(crate) const DIALECT_TOOL_FAILED: i64 = 4003;

/// Returns whether this code shows that the peer speaks a modern revision.
pub(crate) fn is_modern(code: i64) -> bool {
    matches!(
        code,
        HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// A JSON-RPC error code of the protocol.
///
/// ```
/// use gudgeon::protocol::ErrorCode;
///
/// assert_eq!(i64::from(ErrorCode::InvalidParams), -32602);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ErrorCode {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    InternalError,
    /// The user rejected a sampling request.
    UserRejected,
    /// Before 2026-07-28: there is no such resource.
    ResourceNotFound,
    /// Before 2026-07-28: the user has to visit a URL first.
    UrlElicitationRequired,
    /// From 2026-07-28: an HTTP header differs from the body.
    HeaderMismatch,
    /// From 2026-07-28: the client did not declare a capability that the request needs.
    MissingRequiredClientCapability,
    /// From 2026-07-28: the server does not speak the revision.
    UnsupportedProtocolVersion,
}

impl From<ErrorCode> for i64 {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::ParseError => PARSE_ERROR,
            ErrorCode::InvalidRequest => INVALID_REQUEST,
            ErrorCode::MethodNotFound => METHOD_NOT_FOUND,
            ErrorCode::InvalidParams => INVALID_PARAMS,
            ErrorCode::InternalError => INTERNAL_ERROR,
            ErrorCode::UserRejected => USER_REJECTED,
            ErrorCode::ResourceNotFound => RESOURCE_NOT_FOUND,
            ErrorCode::UrlElicitationRequired => URL_ELICITATION_REQUIRED,
            ErrorCode::HeaderMismatch => HEADER_MISMATCH,
            ErrorCode::MissingRequiredClientCapability => MISSING_REQUIRED_CLIENT_CAPABILITY,
            ErrorCode::UnsupportedProtocolVersion => UNSUPPORTED_PROTOCOL_VERSION,
        }
    }
}

impl PartialEq<i64> for ErrorCode {
    fn eq(&self, code: &i64) -> bool {
        i64::from(*self) == *code
    }
}
