//! The stateless lifecycle (2026-07-28 on): each request stands alone.

use std::sync::Arc;

use super::{Admitted, ClientIdentity, LogPolicy, token};
use crate::{
    error::Fault,
    protocol::{Params, Revision},
    wire::{self, Envelope, McpHeaders, Wire},
};

/// Admits what came in an HTTP request of its own: the envelope must be whole, then agree with the headers, and only
/// then be of a revision that is spoken here.
pub(super) fn admit_exchange(
    mcp_headers: &McpHeaders,
    params: &Params<'_>,
    supported: &[Revision],
) -> Result<Admitted, Fault> {
    let envelope = wire::whole_envelope(params)?;
    wire::check_version(mcp_headers, &envelope)?;
    Ok(admit(&envelope.supported_by(supported)?))
}

pub(super) fn admit(envelope: &Envelope<'_>) -> Admitted {
    Admitted {
        wire: Wire::of(envelope.revision),
        client: Arc::new(ClientIdentity {
            info: envelope.client_info.map(ToOwned::to_owned),
            capabilities: Some(envelope.capabilities.to_owned()),
        }),
        log: LogPolicy::Request(envelope.log_level),
        progress_token: token(envelope.meta.progress_token),
        meta: envelope.meta.raw.map(ToOwned::to_owned),
    }
}

pub(super) fn refuse_batch() -> Fault {
    Fault::invalid_request("2026-07-28 has no batches: send each request by itself")
}
