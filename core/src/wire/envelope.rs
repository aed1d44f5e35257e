//! The envelope in the `_meta` of every modern request: revision, client and capabilities.

use serde_json::value::RawValue;

use crate::{
    error::{Fault, FaultKind},
    protocol::{Era, LoggingLevel, Meta, Params, Revision, json, meta},
};

/// The evidence of a revision in a request.
#[derive(Debug)]
pub enum Claim<'a> {
    /// None: the request belongs to a session, if one is open.
    None(Meta<'a>),
    /// Part of the envelope, without a revision.
    Partial(Meta<'a>),
    Modern(Envelope<'a>),
}

/// A complete envelope.
#[derive(Debug)]
pub struct Envelope<'a> {
    pub revision: Revision,
    pub client_info: Option<&'a RawValue>,
    pub capabilities: &'a RawValue,
    pub log_level: Option<LoggingLevel>,
    pub meta: Meta<'a>,
}

/// Parses the envelope and checks its revision against the supported ones (newest first).
///
/// Missing keys are reported before an unsupported revision, in the order that the specification gives.
pub fn claim<'a>(params: &Params<'a>, supported: &[Revision]) -> Result<Claim<'a>, Fault> {
    Ok(match read(params)? {
        Read::None(meta) => Claim::None(meta),
        Read::Partial(meta) => Claim::Partial(meta),
        Read::Whole(envelope) => Claim::Modern(envelope.supported_by(supported)?),
    })
}

/// Parses the envelope of a request that must have one.
pub fn whole<'a>(params: &Params<'a>) -> Result<Unchecked<'a>, Fault> {
    match read(params)? {
        Read::None(meta) | Read::Partial(meta) => Err(missing(&meta)),
        Read::Whole(envelope) => Ok(envelope),
    }
}

/// Returns the revision named in a notification, for which the envelope is optional.
pub(super) fn named(params: &Params<'_>) -> Result<Option<String>, Fault> {
    let Some(raw) = params.get("_meta") else { return Ok(None) };
    let meta = Meta::parse(raw).ok_or_else(not_an_object)?;
    meta.protocol_version.map(version).transpose()
}

/// A complete envelope whose revision has not been checked yet.
#[derive(Debug)]
pub struct Unchecked<'a> {
    /// The requested revision.
    pub requested: String,
    capabilities: &'a RawValue,
    meta: Meta<'a>,
}

impl<'a> Unchecked<'a> {
    /// Returns the envelope if its revision is among `spoken`.
    pub fn supported_by(self, supported: &[Revision]) -> Result<Envelope<'a>, Fault> {
        let Self { requested, capabilities, meta } = self;
        let revision = spoken(&requested, supported)?;
        let log_level = match meta.log_level {
            None => None,
            Some(raw) => Some(serde_json::from_str(raw.get()).map_err(|_| {
                Fault::invalid_params(format!(
                    "_meta[{:?}] is not a log level: {}",
                    meta::LOG_LEVEL,
                    raw.get()
                ))
            })?),
        };
        Ok(Envelope { revision, client_info: meta.client_info, capabilities, log_level, meta })
    }
}

enum Read<'a> {
    None(Meta<'a>),
    Partial(Meta<'a>),
    Whole(Unchecked<'a>),
}

fn read<'a>(params: &Params<'a>) -> Result<Read<'a>, Fault> {
    let Some(raw) = params.get("_meta") else { return Ok(Read::None(Meta::default())) };
    let meta = Meta::parse(raw).ok_or_else(not_an_object)?;
    let Some(claimed) = meta.protocol_version else {
        return Ok(match meta.has_envelope() {
            true => Read::Partial(meta),
            false => Read::None(meta),
        });
    };
    let requested = version(claimed)?;
    let capabilities =
        meta.client_capabilities.filter(|raw| raw.get().starts_with('{')).ok_or_else(|| {
            Fault::invalid_params(format!(
                "_meta[{:?}] must be an object",
                meta::CLIENT_CAPABILITIES
            ))
        })?;
    Ok(Read::Whole(Unchecked { requested, capabilities, meta }))
}

fn version(raw: &RawValue) -> Result<String, Fault> {
    serde_json::from_str(raw.get()).map_err(|_| {
        Fault::invalid_params(format!("_meta[{:?}] must be a string", meta::PROTOCOL_VERSION))
    })
}

fn not_an_object() -> Fault {
    Fault::invalid_params("params._meta must be an object")
}

/// Returns the stateless revision of this name if it is among the supported ones.
pub(super) fn spoken(requested: &str, supported: &[Revision]) -> Result<Revision, Fault> {
    Revision::parse(requested)
        .filter(|revision| revision.era() == Era::Modern && supported.contains(revision))
        .ok_or_else(|| unsupported(supported, requested))
}

/// Returns the error for a modern request without a complete envelope.
pub fn missing(meta: &Meta<'_>) -> Fault {
    let key = match meta.protocol_version {
        None => meta::PROTOCOL_VERSION,
        Some(_) => meta::CLIENT_CAPABILITIES,
    };
    Fault::invalid_params(format!("missing params._meta[{key:?}]"))
}

fn unsupported(supported: &[Revision], requested: &str) -> Fault {
    let supported: Vec<_> = supported.iter().map(|revision| revision.as_str()).collect();
    let data = serde_json::json!({ "supported": supported, "requested": requested });
    Fault::new(FaultKind::UnsupportedRevision, "Unsupported protocol version")
        .with_data(Some(json::to_raw(&data)))
}
