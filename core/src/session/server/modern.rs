//! The stateless lifecycle (from 2026-07-28): each request is independent.

use std::sync::Arc;

use super::{Admitted, ClientIdentity, LogPolicy, token};
use crate::{
    error::Fault,
    protocol::{Params, Revision},
    wire::{self, Envelope, McpHeaders, Wire},
};

/// Admits a request from an HTTP exchange: the envelope must be complete, then match the headers, and then name a
/// supported revision.
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
    Fault::invalid_request("2026-07-28 does not support batches: send each request by itself")
}
