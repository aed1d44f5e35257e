//! The handshake lifecycle (2024-11-05 to 2025-11-25).
//!
//! ```text
//! Awaiting --initialize--> Open(revision) --initialized--> Open(revision), confirmed
//! ```

use std::sync::Arc;

use super::{Admitted, ClientIdentity, LogPolicy, ServerSession, cause, token};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        Dialect, Era, InitializeRequest, LoggingLevel, Meta,
        Method::{self, Discover, Initialize, Ping},
        Revision, json,
    },
    session::asking::nothing_declared,
    wire::{self, Wire},
};

/// The log level until the client sets one.
const DEFAULT_LEVEL: LoggingLevel = LoggingLevel::Info;

/// The maximum size of a client's identity and capabilities in a session, in bytes.
const MAX_IDENTITY: usize = 64 * 1024;

#[derive(Debug)]
pub(super) enum Handshake {
    Awaiting,
    Open {
        wire: &'static Wire,
        client: Arc<ClientIdentity>,
        level: LoggingLevel,
        confirmed: bool,
        /// `true` after the first notification, which reveals the client's notification names.
        is_spelling_known: bool,
    },
    /// Expired; only a dialect ends idle sessions.
    Expired,
}

impl ServerSession {
    /// Opens the session that `initialize` requests. Returns its tables.
    pub(super) fn open(
        &mut self,
        dialect: Option<&'static Wire>,
        initialize: &InitializeRequest,
    ) -> Result<&'static Wire, Fault> {
        check_identity(initialize)?;
        match dialect {
            None => self.handshake.open(initialize, &self.config.revisions),
            Some(wire) => {
                self.open_dialect(wire, initialize);
                Ok(wire)
            }
        }
    }
}

impl Handshake {
    /// Returns the size of the client's identity and capabilities, in bytes.
    pub(super) fn identity_size(&self) -> usize {
        let Self::Open { client, .. } = self else { return 0 };
        [&client.info, &client.capabilities]
            .into_iter()
            .flatten()
            .map(|part| part.get().len())
            .sum()
    }

    /// Returns the context to serve this request in; errors if it is not allowed now.
    pub(super) fn admit(&self, name: &str, meta: &Meta<'_>) -> Result<Admitted, Fault> {
        let (wire, client) = match (self, Method::parse(name)) {
            (Self::Awaiting | Self::Expired, Some(Initialize | Ping)) => {
                (Wire::for_revision(Revision::LATEST_LEGACY), Arc::default())
            }
            (Self::Awaiting | Self::Expired, Some(Discover)) => {
                return Err(wire::missing_envelope(meta));
            }
            (Self::Awaiting | Self::Expired, _) if meta.has_envelope() => {
                return Err(wire::missing_envelope(meta));
            }
            (Self::Awaiting | Self::Expired, _) => {
                return Err(Fault::invalid_request(format!(
                    "{name} before initialize: send initialize first, or a request of 2026-07-28 with its params._meta"
                )));
            }
            (Self::Open { .. }, Some(Initialize)) => {
                return Err(Fault::invalid_request(
                    "initialize was already sent on this connection",
                ));
            }
            (Self::Open { wire, client, .. }, _) => (*wire, Arc::clone(client)),
        };
        Ok(Admitted {
            wire,
            client,
            log: LogPolicy::Session,
            progress_token: token(meta.progress_token),
            meta: meta.raw.map(ToOwned::to_owned),
            cause: cause(meta),
        })
    }

    /// Negotiates the revision: the requested one, or the newest legacy one that the server supports.
    pub(super) fn open(
        &mut self,
        initialize: &InitializeRequest,
        supported: &[Revision],
    ) -> Result<&'static Wire, Fault> {
        let legacy = || supported.iter().copied().filter(|revision| revision.era() == Era::Legacy);
        let requested = Revision::parse(&initialize.protocol_version);
        let agreed =
            legacy().find(|revision| Some(*revision) == requested).or_else(|| legacy().max());
        let Some(agreed) = agreed else {
            let supported: Vec<_> = supported.iter().map(|revision| revision.as_str()).collect();
            let message =
                format!("this server supports {} only, without initialize", supported.join(", "));
            let data = serde_json::json!({
                "supported": supported, "requested": initialize.protocol_version,
            });
            return Err(Fault::new(FaultKind::UnsupportedRevision, message)
                .with_data(Some(json::to_raw(&data))));
        };
        let client = Arc::new(ClientIdentity::new(
            initialize.client_info.clone(),
            Some(initialize.capabilities.clone().unwrap_or_else(nothing_declared)),
        ));
        let wire = Wire::for_revision(agreed);
        *self = Self::open_in(wire, client);
        Ok(wire)
    }

    /// Opens the session in a dialect.
    pub(super) fn open_as(&mut self, wire: &'static Wire, client: ClientIdentity) {
        *self = Self::open_in(wire, Arc::new(client));
    }

    /// Creates the state of a session whose client confirmed the handshake some time ago.
    pub(super) fn restored(wire: &'static Wire, client: ClientIdentity) -> Self {
        let mut handshake = Self::open_in(wire, Arc::new(client));
        handshake.confirm();
        handshake
    }

    /// Returns whether the session has no state but its revision and its client.
    pub(super) fn is_restorable(&self) -> bool {
        let Self::Open { wire, client, level, .. } = self else { return false };
        wire.dialect.is_none() && *level == DEFAULT_LEVEL && !client.has_values()
    }

    fn open_in(wire: &'static Wire, client: Arc<ClientIdentity>) -> Self {
        Self::Open {
            wire,
            client,
            level: DEFAULT_LEVEL,
            confirmed: false,
            is_spelling_known: false,
        }
    }

    /// Ends the session because the client was idle for too long.
    pub(super) fn expire(&mut self) {
        *self = Self::Expired;
    }

    pub(super) fn is_expired(&self) -> bool {
        matches!(self, Self::Expired)
    }

    pub(super) fn is_in(&self, dialect: Dialect) -> bool {
        self.wire().is_some_and(|wire| wire.dialect == Some(dialect))
    }

    /// Records the names used by a notification: bare or prefixed.
    pub(super) fn spell(&mut self, bare: bool) {
        if let Self::Open { wire, is_spelling_known, .. } = self
            && !std::mem::replace(is_spelling_known, true)
            && wire.dialect.is_none()
            && bare
        {
            *wire = Wire::spelled(wire.revision, Some(Dialect::Bare));
        }
    }

    pub(super) fn confirm(&mut self) {
        if let Self::Open { confirmed, .. } = self {
            *confirmed = true;
        }
    }

    pub(super) fn set_level(&mut self, chosen: LoggingLevel) {
        if let Self::Open { level, .. } = self {
            *level = chosen;
        }
    }

    /// Returns the log level that the client has set; `None` for the one until then.
    pub(super) fn chosen_level(&self) -> Option<LoggingLevel> {
        self.level().filter(|level| *level != DEFAULT_LEVEL)
    }

    pub(super) fn level(&self) -> Option<LoggingLevel> {
        match self {
            Self::Awaiting | Self::Expired => None,
            Self::Open { level, .. } => Some(*level),
        }
    }

    /// Returns `true` once the client has confirmed the handshake; unsolicited messages are allowed from then on.
    pub(super) fn is_confirmed(&self) -> bool {
        matches!(self, Self::Open { confirmed: true, .. })
    }

    /// Returns the client's identity and the negotiated tables.
    pub(super) fn client(&self) -> Option<(&'static Wire, Arc<ClientIdentity>)> {
        match self {
            Self::Awaiting | Self::Expired => None,
            Self::Open { wire, client, .. } => Some((wire, Arc::clone(client))),
        }
    }

    /// Returns the negotiated revision.
    pub(super) fn wire(&self) -> Option<&'static Wire> {
        match self {
            Self::Awaiting | Self::Expired => None,
            Self::Open { wire, .. } => Some(wire),
        }
    }
}

/// Errors if the identity and capabilities of the client exceed the limit.
fn check_identity(initialize: &InitializeRequest) -> Result<(), Fault> {
    let said = [&initialize.client_info, &initialize.capabilities];
    let bytes: usize = said.into_iter().flatten().map(|part| part.get().len()).sum();
    if bytes <= MAX_IDENTITY {
        return Ok(());
    }
    Err(Fault::invalid_params(format!(
        "clientInfo and capabilities are {bytes} bytes long, and a session takes {MAX_IDENTITY}: shorten them"
    )))
}
