//! Which era an HTTP request belongs to: its body decides, the headers only where the body is silent.

use super::{McpHeaders, Unchecked, Wire, dialect_0_7, envelope, headers::check_method};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Dialect, Era, Frame, Message, Meta, Method, Params, Revision},
};

/// Which lifecycle serves a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestEra {
    /// It stands alone.
    Modern,
    /// To a session, or it opens one.
    Legacy,
    /// It stands alone, and is in the words of a dialect.
    Dialect,
}

/// The era of one HTTP request.
///
/// A version that nobody knows counts as a modern one, so that the client is told which ones are spoken here;
/// `Mcp-Method` proves nothing.
pub fn classify(frame: &Frame<'_>, mcp_headers: &McpHeaders, dialects: &[Dialect]) -> RequestEra {
    let (method, params) = match frame {
        Frame::One(Ok(
            Message::Request { method, params, .. } | Message::Notification { method, params },
        )) => (Method::parse(method), Some(params)),
        _ => (None, None),
    };
    if dialects.contains(&Dialect::V0_7) && is_dialect(frame, mcp_headers) {
        return RequestEra::Dialect;
    }
    if params.is_some_and(has_envelope) || matches!(method, Some(Method::Discover | Method::Listen))
    {
        return RequestEra::Modern;
    }
    if method == Some(Method::Initialize) {
        return RequestEra::Legacy;
    }
    match mcp_headers.protocol_version().map(Revision::parse) {
        None => RequestEra::Legacy,
        Some(Some(revision)) => match revision.era() {
            Era::Modern => RequestEra::Modern,
            Era::Legacy => RequestEra::Legacy,
        },
        Some(None) => match mcp_headers.session().is_some() {
            true => RequestEra::Legacy,
            false => RequestEra::Modern,
        },
    }
}

/// Whether any of what is spoken here has sessions.
pub fn has_sessions(revisions: &[Revision], dialects: &[Dialect]) -> bool {
    !dialects.is_empty() || revisions.iter().any(|it| it.era() == Era::Legacy)
}

/// The words for a peer of whom only the headers are known.
pub fn spoken_by(mcp_headers: &McpHeaders) -> &'static Wire {
    Wire::of(match mcp_headers.protocol_version().map(Revision::parse) {
        None => Revision::V2025_03_26,
        Some(revision) => revision.unwrap_or(Revision::LATEST),
    })
}

/// Whether a notification in a POST of its own can be accepted (Streamable HTTP, "Sending Messages"). It needs no
/// headers and no envelope, but what it says in them must agree, and be spoken here.
pub fn check_notification(
    mcp_headers: &McpHeaders,
    method: &str,
    params: &Params<'_>,
    supported: &[Revision],
) -> Result<(), Fault> {
    if matches!(params, Params::Other) {
        return Err(Fault::invalid_params("params must be an object"));
    }
    let said = envelope::named(params)?;
    let claimed = mcp_headers.protocol_version();
    if let Some(said) = &said
        && claimed.is_some()
    {
        compare_version(mcp_headers, said)?;
    }
    if let Some(version) = said.as_deref().or(claimed) {
        envelope::spoken(version, supported)?;
    }
    match mcp_headers.method {
        Some(_) => check_method(mcp_headers, method),
        None => Ok(()),
    }
}

/// The version that the header claims must be the body's (Streamable HTTP, "Protocol Version Header").
pub fn check_version(mcp_headers: &McpHeaders, envelope: &Unchecked<'_>) -> Result<(), Fault> {
    compare_version(mcp_headers, &envelope.requested)
}

fn compare_version(mcp_headers: &McpHeaders, said: &str) -> Result<(), Fault> {
    let message = match mcp_headers.protocol_version() {
        Some(claimed) if claimed == said => return Ok(()),
        Some(claimed) => {
            format!("MCP-Protocol-Version is {claimed:?}, the body's _meta says {said:?}")
        }
        None => format!("MCP-Protocol-Version is missing: send {said:?}, as in the body's _meta"),
    };
    Err(Fault::new(FaultKind::HeaderMismatch, format!("Header mismatch: {message}")))
}

/// A request of the dialect with semantic versions, which over HTTP knows neither sessions nor headers.
fn is_dialect(frame: &Frame<'_>, mcp_headers: &McpHeaders) -> bool {
    let Frame::One(Ok(Message::Request { method, params, .. })) = frame else { return false };
    if has_envelope(params) || mcp_headers.session().is_some() {
        return false;
    }
    let is_silent = mcp_headers.protocol_version().is_none();
    dialect_0_7::is_own(method, params) || is_silent && dialect_0_7::may_be_own(method)
}

/// Whether a request says of itself that it is a modern one.
pub fn has_envelope(params: &Params<'_>) -> bool {
    params.get("_meta").and_then(Meta::parse).is_some_and(|it| it.has_envelope())
}
