//! The handshake era: the result of `initialize`, and the server's questions.

use std::time::Instant;

use serde::Deserialize;

use super::{Ask, ClientSession, Output, ServerIdentity, negotiate::Phase};
use crate::{
    protocol::{
        Dialect, ErrorObject, Id, Implementation, Meta, Method, Params, Raw, Revision, code, json,
    },
    session::pending::InboundKey,
    wire,
};

/// The maximum number of open questions of a server.
const MAX_ASKS: usize = 64;

/// The result of `initialize`, before its revision is accepted.
#[derive(Debug)]
pub(super) struct Introduction {
    pub(super) version: String,
    info: Implementation,
    capabilities: Raw,
    instructions: Option<String>,
}

impl Introduction {
    pub(super) fn identity(self, revision: Revision, dialect: Option<Dialect>) -> ServerIdentity {
        let Self { info, capabilities, instructions, .. } = self;
        ServerIdentity { info, revision, dialect, capabilities, instructions }
    }
}

/// Parsed leniently: an unusual server name does not prevent a connection.
pub(super) fn read_initialize(result: &str) -> Result<Introduction, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeMembers {
        protocol_version: String,
        capabilities: Option<Raw>,
        server_info: Option<Raw>,
        instructions: Option<Raw>,
    }
    let read: InitializeMembers =
        serde_json::from_str(result).map_err(|error| error.to_string())?;
    Ok(Introduction {
        version: read.protocol_version,
        info: lenient(read.server_info.as_ref()),
        capabilities: object(read.capabilities),
        instructions: lenient(read.instructions.as_ref()),
    })
}

/// Returns the value, or its default if it has another type.
pub(super) fn lenient<T: Default + for<'de> Deserialize<'de>>(raw: Option<&Raw>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Returns the object, or an empty one.
pub(super) fn object(raw: Option<Raw>) -> Raw {
    raw.filter(|raw| raw.get().starts_with('{')).unwrap_or_else(|| json::raw("{}".into()))
}

impl ClientSession {
    /// Handles a request of the server: answers it, or hands it out if the client declared the capability.
    pub(super) fn handle_ask(&mut self, id: Id, name: &str, params: &Params<'_>) {
        let method =
            self.wire.method(name).filter(|method| self.wire.server_requests.contains(method));
        if method == Some(Method::Ping) {
            return self.send_answer(&id, &Ok(wire::pong(self.wire)));
        }
        match self.admit_ask(&id, name, method) {
            Ok(method) => {
                let key =
                    params.get("_meta").and_then(Meta::parse).and_then(|meta| meta.question_key);
                let key = key.and_then(|key| serde_json::from_str(key.get()).ok());
                if method == Method::Elicit {
                    self.pages.ask(params);
                }
                let params = params.without_meta();
                let id = self.asks.register(id, ());
                self.outputs.push_back(Output::Ask(Ask { id, key, method, params }));
            }
            Err(error) => self.send_answer(&id, &Err(error)),
        }
    }

    /// Pauses the idle timeouts of all requests while the server's questions are open, because a question does not name its
    /// request, and while the user signs in.
    pub(super) fn hold_calls(&mut self, now: Instant) {
        self.calls.hold(now, self.asks.len() > 0 || self.negotiation.is_held());
    }

    fn admit_ask(
        &self,
        id: &Id,
        name: &str,
        method: Option<Method>,
    ) -> Result<Method, ErrorObject> {
        let can = &self.config.capabilities;
        let method = method.filter(|method| match method {
            Method::ListRoots => can.roots.is_some(),
            Method::CreateMessage => can.sampling.is_some(),
            Method::Elicit => can.elicitation.is_some(),
            _ => false,
        });
        let Some(method) = method else {
            let message = format!("method not found: {name} (this client did not declare it)");
            return Err(ErrorObject::new(code::METHOD_NOT_FOUND, message));
        };
        let refuse = |message: &str| Err(ErrorObject::new(code::INVALID_REQUEST, message));
        if !matches!(self.phase, Phase::Open) {
            return refuse("a request before notifications/initialized");
        }
        if self.asks.contains(id) {
            return refuse("a request with this id is still in flight");
        }
        if self.asks.len() >= MAX_ASKS {
            let message = format!("more than {MAX_ASKS} requests are waiting for the user");
            return Err(ErrorObject::new(code::INTERNAL_ERROR, message));
        }
        Ok(method)
    }

    pub(super) fn answer(&mut self, call: InboundKey, answer: &Result<Raw, ErrorObject>) {
        // The server may have cancelled the question in the meantime.
        if let Some((id, ())) = self.asks.complete(call) {
            let answer = answer.clone().and_then(|answer| wire::lower_answer(self.wire, &answer));
            self.send_answer(&id, &answer);
        }
    }

    fn send_answer(&mut self, id: &Id, answer: &Result<Raw, ErrorObject>) {
        let frame = wire::answer_frame(id, answer.as_deref());
        self.outputs.push_back(Output::Send(frame));
    }
}
