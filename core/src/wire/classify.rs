//! Classification of HTTP requests by era: the body decides, and headers count only if the body does not.

use super::{McpHeaders, Unchecked, Wire, dialect_0_7, envelope, headers::check_method};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Dialect, Era, Frame, Message, Meta, Method, Params, Revision},
};

/// The lifecycle that serves an HTTP request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestEra {
    /// A stateless request.
    Modern,
    /// A request of a session, or one that opens a session.
    Legacy,
    /// A stateless request in dialect 0.7.
    Dialect,
}

/// Returns the era of one HTTP request.
///
/// An unknown protocol version counts as modern, so that the client receives the list of supported versions.
/// `Mcp-Method` is not evidence of an era.
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

/// Returns `true` if one of the supported revisions or dialects has sessions.
pub fn has_sessions(revisions: &[Revision], dialects: &[Dialect]) -> bool {
    !dialects.is_empty() || revisions.iter().any(|revision| revision.era() == Era::Legacy)
}

/// Returns the revision to answer in when only the headers of a request are known.
pub fn spoken_by(mcp_headers: &McpHeaders) -> &'static Wire {
    Wire::for_revision(match mcp_headers.protocol_version().map(Revision::parse) {
        None => Revision::V2025_03_26,
        Some(revision) => revision.unwrap_or(Revision::LATEST),
    })
}

/// Checks a notification sent in a POST of its own (Streamable HTTP, "Sending Messages"). Headers and envelope are
/// optional; where present they must agree and name a supported version.
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

/// Checks that the version in the header equals the one in the body (Streamable HTTP, "Protocol Version Header").
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

/// Returns `true` for a request in dialect 0.7, which over HTTP has neither sessions nor MCP headers.
fn is_dialect(frame: &Frame<'_>, mcp_headers: &McpHeaders) -> bool {
    let Frame::One(Ok(Message::Request { method, params, .. })) = frame else { return false };
    if has_envelope(params) || mcp_headers.session().is_some() {
        return false;
    }
    // A method that no revision has is answered by the dialect as well: an unknown one with "method not found".
    let may_be_own = || dialect_0_7::may_be_own(method) || Method::parse(method).is_none();
    let is_silent = mcp_headers.protocol_version().is_none();
    dialect_0_7::is_own(method, params) || is_silent && may_be_own()
}

/// Returns `true` if the params contain a modern envelope.
pub fn has_envelope(params: &Params<'_>) -> bool {
    params.get("_meta").and_then(Meta::parse).is_some_and(|meta| meta.has_envelope())
}
