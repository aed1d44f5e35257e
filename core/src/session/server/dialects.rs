//! Requests and notifications in a dialect that the server supports.

use std::sync::Arc;

use super::{Admitted, ClientIdentity, Handshake, Lifetime, LogPolicy, ServerSession};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Dialect, InitializeRequest, Method, MethodName, Params, Revision},
    wire::{self, Wire},
};

impl ServerSession {
    /// Returns the dialect of a request: its own, or that of the session.
    pub(super) fn dialect_of(&self, name: &str, params: &Params<'_>) -> Option<&'static Wire> {
        let is_spoken = self.config.dialects.contains(&Dialect::V0_7) && self.mcp_headers.is_none();
        if !is_spoken || wire::has_envelope(params) {
            return None;
        }
        let began_so = self.stands_alone()
            || self.handshake.is_in(Dialect::V0_7)
            || self.handshake.is_expired();
        let is_dialect =
            wire::is_semantic(name, params) || began_so && name != Method::Initialize.as_str();
        is_dialect.then(|| Wire::spelled(Revision::V2024_11_05, Some(Dialect::V0_7)))
    }

    /// Checks that a request follows `initialize` and its session has not expired; a stateless request needs no
    /// session.
    pub(super) fn admit_dialect(&self, wire: &'static Wire, name: &str) -> Result<Admitted, Fault> {
        let is_initialize = name == Method::Initialize.as_str();
        let client = match &self.handshake {
            _ if self.stands_alone() => Arc::default(),
            Handshake::Open { .. } if is_initialize => {
                let message = "initialize was already sent on this connection";
                return Err(Fault::invalid_request(message));
            }
            Handshake::Open { client, .. } => Arc::clone(client),
            Handshake::Awaiting | Handshake::Expired if is_initialize => Arc::default(),
            Handshake::Awaiting => {
                let message = format!("{name} before initialize: send initialize first");
                return Err(Fault::new(FaultKind::NotInitialized, message));
            }
            Handshake::Expired => {
                let message = "the session expired: send initialize to open a new one";
                return Err(Fault::new(FaultKind::SessionExpired, message));
            }
        };
        let log = LogPolicy::Session;
        Ok(Admitted { wire, client, log, progress_token: None, meta: None, cause: None })
    }

    fn stands_alone(&self) -> bool {
        self.lifetime == Lifetime::OneDialectRequest
    }

    /// Opens the session, unless the request is stateless.
    pub(super) fn open_dialect(&mut self, wire: &'static Wire, initialize: &InitializeRequest) {
        if !self.stands_alone() {
            let (info, capabilities) =
                (initialize.client_info.clone(), initialize.capabilities.clone());
            self.handshake.open_as(wire, ClientIdentity::new(info, capabilities));
        }
    }

    /// Returns `true` if an idle session is to receive [`super::Input::Expired`].
    pub fn may_expire(&self) -> bool {
        self.handshake.is_in(Dialect::V0_7)
    }

    /// Returns the notification with this name. The first one of a session decides between prefixed and bare names.
    pub(super) fn read_notification(&mut self, name: &str) -> MethodName {
        let spoken = self.config.dialects.contains(&Dialect::Bare);
        let bare = spoken.then(|| wire::bare_notification(name)).flatten();
        let method = bare.map_or_else(|| MethodName::parse(name), MethodName::Standard);
        if spoken && matches!(method, MethodName::Standard(_)) {
            self.handshake.spell(bare.is_some());
        }
        method
    }
}
