//! Notifications of the client.

use std::fmt::Write as _;

use super::{Admitted, CallContext, ClientIdentity, Output, ServerSession};
use crate::{
    log_events::{EventFacts, EventKind, LogEvent},
    protocol::{Id, Method, MethodName, Params},
    wire,
};

/// The maximum length of a logged reason, in characters.
const MAX_REASON: usize = 200;

impl ServerSession {
    pub(super) fn handle_notification(&mut self, name: &str, params: &Params<'_>) {
        if let Some(mcp_headers) = &self.mcp_headers
            && let Err(fault) =
                wire::check_notification(mcp_headers, name, params, &self.config.revisions)
        {
            return self.refuse(None, None, None, fault);
        }
        let method = self.read_notification(name);
        match &method {
            MethodName::Standard(Method::Initialized) => self.confirm(),
            MethodName::Standard(Method::Cancelled) => {
                let id = params.get("requestId").and_then(|id| Id::parse(id.get()));
                if let Some((call, inbound)) = id.as_ref().and_then(|id| self.pending.cancel(id)) {
                    let event = id.map(|id| cancelled(id, &inbound.client, params));
                    self.outputs
                        .extend(event.map(|event| Output::Log(Some(call), Box::new(event))));
                    self.subscriptions.forget(call);
                    self.withdraw(call);
                    self.outputs.push_back(Output::Cancel(call));
                    self.settle(Some(call), inbound.slot, None);
                }
            }
            MethodName::Standard(Method::RootsListChanged) | MethodName::Vendor(_) => {
                let Ok(admitted) = self.admit(name, params, false) else { return };
                let key = self.pending.number();
                self.listeners.insert(key);
                let Admitted { wire, client, meta, cause, .. } = admitted;
                let weight = params.weight();
                let context = CallContext { cause, weight, ..CallContext::new(wire, client, meta) };
                let params = params.without_meta();
                self.outputs.push_back(Output::Notified { key, method, params, context });
            }
            MethodName::Standard(_) => (),
        }
    }
}

/// Returns the event of a cancellation, with the reason if there is one (Cancellation, "Implementation Notes").
fn cancelled(id: Id, client: &ClientIdentity, params: &Params<'_>) -> LogEvent {
    let mut text = format!("request {id} was cancelled by its client");
    let reason = params.get("reason").and_then(|reason| serde_json::from_str(reason.get()).ok());
    if let Some(reason) = reason {
        let reason: String = reason;
        let shown: String = reason.chars().take(MAX_REASON).collect();
        // Writing to a String never fails.
        let _ = write!(text, ": {shown:?}");
    }
    let facts = EventFacts { request_id: Some(id), client: client.name(), ..EventFacts::default() };
    LogEvent::new(EventKind::CallCancelled, text).with(facts)
}
