//! Requests: admission, handing out as calls, and replies.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    About, Call, CallContext, ClientIdentity, Handshake, MissingScopes, OutgoingFrame, Output,
    ServerSession, SessionChange,
    batch::{self, Slot},
    logging::Suppressed,
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        Dialect, Id, LoggingLevel, Meta, Method, MethodName, Params, Raw, Request, Response,
        TraceIds,
    },
    session::InboundKey,
    wire::{self, Envelope, Lowered, Wire},
};

/// The maximum length of a request id, in bytes; it is repeated in every message about the request.
const MAX_ID: usize = 4 * 1024;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) method: MethodName,
    pub(super) client: Arc<ClientIdentity>,
    pub(super) wire: &'static Wire,
    pub(super) progress_token: Option<Id>,
    /// The last reported progress, which must increase.
    pub(super) progress: Option<f64>,
    /// `true` if a decreasing progress was logged.
    pub(super) has_stepped_back: bool,
    pub(super) log: LogPolicy,
    pub(super) suppressed: Option<Suppressed>,
    pub(super) slot: Option<Slot>,
    /// The negotiated version, for the result of `initialize` in a dialect.
    pub(super) version: Option<String>,
    /// The change to the session if the request succeeds.
    pub(super) change: Option<SessionChange>,
}

/// The log messages that a call may send.
#[derive(Clone, Copy, Debug)]
pub(super) enum LogPolicy {
    /// The level in the request's envelope; none if it has no level.
    Request(Option<LoggingLevel>),
    /// The level last set with `logging/setLevel`.
    Session,
}

/// An admitted request: its tables and its context.
pub(super) struct Admitted {
    pub(super) wire: &'static Wire,
    pub(super) client: Arc<ClientIdentity>,
    pub(super) log: LogPolicy,
    pub(super) progress_token: Option<Id>,
    pub(super) meta: Option<Raw>,
    /// The span that caused the request, as `_meta` names it.
    pub(super) cause: Option<Box<TraceIds>>,
}

impl ServerSession {
    pub(super) fn handle_request(
        &mut self,
        id: Id,
        name: &str,
        params: &Params<'_>,
        slot: Option<Slot>,
    ) {
        if id.as_json().len() > MAX_ID {
            let message = format!("the id is longer than {MAX_ID} bytes");
            return self.refuse(Some(&id), None, slot, Fault::invalid_request(message));
        }
        let dialect = match self.config.dialects.is_empty() {
            true => None,
            false => self.dialect_of(name, params),
        };
        self.spoken = dialect.unwrap_or(self.spoken);
        let admitted = match dialect {
            Some(wire) => self.admit_dialect(wire, name),
            None => self.admit(name, params, slot.is_some()),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(fault) => return self.refuse(Some(&id), None, slot, fault),
        };
        self.spoken = admitted.wire;
        let weight = id.as_json().len() + params.weight();
        if self.pending.contains(&id) {
            let fault =
                Fault::invalid_request(format!("a request with the id {id} is still in flight"));
            return self.refuse(Some(&id), None, slot, fault);
        }
        let request = match wire::lift_request(admitted.wire, name, params) {
            Ok(request) => request,
            Err(fault) => {
                let method = admitted.wire.method(name).map(MethodName::Standard);
                return self.refuse(Some(&id), method.as_ref(), slot, fault);
            }
        };
        if let Err(fault) = self.check_session(&request) {
            return self.refuse(Some(&id), None, slot, fault);
        }
        if let Some(mcp_headers) = &self.mcp_headers
            && let Err(fault) = wire::check_standard(mcp_headers, name, params)
        {
            return self.refuse(Some(&id), None, slot, fault);
        }
        if let Request::Initialize(initialize) = &request {
            return match self.open(dialect, initialize) {
                Ok(wire) => {
                    self.call((id, weight), request, None, Admitted { wire, ..admitted }, slot);
                }
                Err(fault) => self.refuse(Some(&id), None, slot, fault),
            };
        }
        if !matches!(request.method(), MethodName::Standard(it) if self.config.routed.contains(&it))
            && let Some(response) = self.answered_at_once(admitted.wire, &request)
        {
            let answer = self.result(admitted.wire, &id, &response);
            return self.settle(None, slot, Some(answer));
        }
        let is_replaced = dialect.is_none()
            && matches!(request.method(), MethodName::Standard(it) if self.config.replaced.contains(&it));
        let raw_params = is_replaced.then(|| params.without_meta());
        self.call((id, weight), request, raw_params, admitted, slot);
    }

    /// Answers requests that need no handler.
    fn answered_at_once(&mut self, wire: &'static Wire, request: &Request) -> Option<Response> {
        match request {
            Request::Ping => Some(Response::Raw(wire::pong(wire))),
            Request::SetLevel { level } => {
                // A level can be set in every session.
                let _ = self.apply(SessionChange::Level(*level));
                Some(Response::Empty)
            }
            _ => None,
        }
    }

    /// Returns the revision to serve a request in; errors if it is not allowed now.
    pub(super) fn admit(
        &self,
        name: &str,
        params: &Params<'_>,
        in_batch: bool,
    ) -> Result<Admitted, Fault> {
        let supported = &self.config.revisions;
        if let Some(mcp_headers) = &self.mcp_headers {
            // The envelope must be complete, then match the headers, and then name a supported revision.
            let envelope = wire::whole_envelope(params)?;
            wire::check_version(mcp_headers, &envelope)?;
            return Ok(Admitted::modern(&envelope.supported_by(supported)?));
        }
        match wire::claim(params, supported)? {
            wire::Claim::Modern(_) if in_batch => Err(batch::modern_batch()),
            wire::Claim::Modern(envelope) => Ok(Admitted::modern(&envelope)),
            wire::Claim::None(meta) | wire::Claim::Partial(meta) => {
                let admitted = self.handshake.admit(name, &meta)?;
                Ok(Admitted { log: self.log_policy(admitted.log), ..admitted })
            }
        }
    }

    /// `id` comes with the size of the message in bytes. `raw_params` are the params for a handler that replaces the
    /// core's answer.
    fn call(
        &mut self,
        (id, weight): (Id, usize),
        mut request: Request,
        raw_params: Option<Raw>,
        admitted: Admitted,
        slot: Option<Slot>,
    ) {
        let Admitted { wire, client, log, progress_token, meta, cause } = admitted;
        let change = match &request {
            Request::SetLevel { level } => Some(SessionChange::Level(*level)),
            Request::Subscribe { uri } => Some(SessionChange::Subscribe(uri.clone())),
            Request::Unsubscribe { uri } => Some(SessionChange::Unsubscribe(uri.clone())),
            _ => None,
        };
        self.spoken = wire;
        let inbound = Inbound {
            method: request.method(),
            client: Arc::clone(&client),
            wire,
            progress_token,
            progress: None,
            has_stepped_back: false,
            log,
            suppressed: None,
            slot,
            version: match (&request, wire.dialect) {
                (Request::Initialize(initialize), Some(_)) => {
                    Some(initialize.protocol_version.clone())
                }
                _ => None,
            },
            change,
        };
        let raw_params = match (raw_params, request.inputs()) {
            (Some(params), None) => {
                request = Request::Other { method: request.method(), params };
                None
            }
            // The answers and the state are still parsed.
            (raw_params, _) => raw_params,
        };
        let wants_progress = inbound.may_report();
        let key = self.pending.register(id.clone(), inbound);
        let context = CallContext {
            request_id: Some(id),
            weight,
            wants_progress,
            checks_headers: self.mcp_headers.is_some(),
            cause,
            ..CallContext::new(wire, client, meta)
        };
        self.outputs.push_back(Output::Call(Call { key, request, context, raw_params }));
    }

    pub(super) fn handle_done(&mut self, call: InboundKey, mut outcome: Result<Response, Fault>) {
        // The peer may have cancelled the call while its handler ran.
        let Some((_, inbound)) = self.pending.get_mut(call) else { return };
        if let (Some(suppressed), LogPolicy::Request(threshold)) = (inbound.suppressed, inbound.log)
        {
            self.report_suppressed(About::Call(call), suppressed, threshold);
        }
        let Some((id, inbound)) = self.pending.complete(call) else { return };
        if let Ok(Response::Description(server)) = &mut outcome {
            self.note_lists(&inbound.method, &server.capabilities);
            self.hide_changes(server);
        }
        if let Ok(response) = &mut outcome {
            inbound.adapt(response);
        }
        if inbound.method == MethodName::Standard(Method::Listen) {
            self.subscriptions.forget(call);
        }
        if self.asked.is_some() {
            self.withdraw(call);
        }
        if outcome.is_err() && inbound.method == MethodName::Standard(Method::Initialize) {
            self.handshake = Handshake::Awaiting;
        }
        if let (Ok(_), Some(change)) = (&outcome, inbound.change)
            && let Err(fault) = self.apply(change)
        {
            outcome = Err(fault);
        }
        let answer = match outcome {
            Ok(response) => self.result(inbound.wire, &id, &response),
            Err(fault) => {
                self.note_pages(call, inbound.wire, &fault);
                self.failure(inbound.wire, Some(&id), Some(&inbound.method), fault)
            }
        };
        let length = answer.frame.as_ref().map_or(0, Vec::len);
        let fits = inbound.slot.as_ref().map_or(Ok(()), |_| self.batches.check(length));
        let answer = match fits {
            Ok(()) => answer,
            Err(fault) => self.failure(inbound.wire, Some(&id), Some(&inbound.method), fault),
        };
        self.settle(Some(call), inbound.slot, Some(answer));
    }

    /// Answers a message that did not become a call.
    pub(super) fn refuse(
        &mut self,
        id: Option<&Id>,
        method: Option<&MethodName>,
        slot: Option<Slot>,
        fault: Fault,
    ) {
        let answer = self.failure(self.spoken, id, method, fault);
        self.settle(None, slot, Some(answer));
    }

    /// Sends a reply, or queues it until its batch is complete. `None` means that there will be no reply.
    pub(super) fn settle(
        &mut self,
        call: Option<InboundKey>,
        slot: Option<Slot>,
        answer: Option<OutgoingFrame>,
    ) {
        match slot {
            Some(slot) => {
                self.fill(call, slot, answer.and_then(|answer| answer.frame));
            }
            None => self.close_frame(call, answer),
        }
    }

    /// Sends the reply to a whole frame.
    pub(super) fn close_frame(&mut self, call: Option<InboundKey>, reply: Option<OutgoingFrame>) {
        if reply.is_none() && call.is_none() {
            return;
        }
        let reply = reply.unwrap_or_else(OutgoingFrame::no_reply);
        let about = About::Reply(call);
        self.outputs.push_back(Output::Send(OutgoingFrame { about, ..reply }));
    }

    pub(super) fn result(
        &self,
        wire: &'static Wire,
        id: &Id,
        response: &Response,
    ) -> OutgoingFrame {
        let frame = wire::result_frame(wire, id, response, &self.config.server_info);
        OutgoingFrame::reply(frame, None)
    }

    pub(super) fn failure(
        &self,
        wire: &'static Wire,
        id: Option<&Id>,
        method: Option<&MethodName>,
        fault: Fault,
    ) -> OutgoingFrame {
        let missing_scopes = missing_scopes(&fault);
        match (wire::lower_fault(wire, method, fault), id) {
            (Lowered::Tool(outcome), Some(id)) => self.result(wire, id, &Response::Tool(outcome)),
            (Lowered::Tool(_), None) => unreachable!("only a request that was read calls a tool"),
            (Lowered::Error(error), id) => {
                let code = Some(error.code).filter(|_| wire.dialect != Some(Dialect::V0_7));
                let frame = wire::error_frame(wire, id, &error);
                OutgoingFrame { missing_scopes, ..OutgoingFrame::reply(frame, code) }
            }
        }
    }
}

impl Admitted {
    /// Admits a request of the stateless lifecycle (from 2026-07-28).
    fn modern(envelope: &Envelope<'_>) -> Self {
        Self {
            wire: Wire::for_revision(envelope.revision),
            client: Arc::new(ClientIdentity::new(
                envelope.client_info.map(ToOwned::to_owned),
                Some(envelope.capabilities.to_owned()),
            )),
            log: LogPolicy::Request(envelope.log_level),
            progress_token: token(envelope.meta.progress_token),
            meta: envelope.meta.raw.map(ToOwned::to_owned),
            cause: cause(&envelope.meta),
        }
    }
}

impl Inbound {
    /// Returns `true` if progress can be reported: there is a token, or the dialect needs none.
    pub(super) fn may_report(&self) -> bool {
        self.progress_token.is_some() || self.wire.dialect == Some(Dialect::Bare)
    }

    /// Gives the result of `initialize` the negotiated version, and `ping` the dialect's result.
    fn adapt(&self, response: &mut Response) {
        let raw = match (&self.version, &*response) {
            (_, Response::Empty) if self.method == MethodName::Standard(Method::Ping) => {
                wire::pong(self.wire)
            }
            (Some(version), Response::Description(server)) => wire::introduction(version, server),
            _ => return,
        };
        *response = Response::Raw(raw);
    }
}

/// Returns a progress token or id from raw JSON; `None` if it is neither a string nor an integer.
pub(super) fn token(raw: Option<&serde_json::value::RawValue>) -> Option<Id> {
    raw.and_then(|raw| Id::parse(raw.get()))
}

/// Returns the span that caused a request, as its `_meta` names it.
pub(super) fn cause(meta: &Meta<'_>) -> Option<Box<TraceIds>> {
    meta.traceparent.and_then(TraceIds::from_member).map(Box::new)
}

/// Returns the scopes that a fault is about, which are its data.
fn missing_scopes(fault: &Fault) -> Option<Box<MissingScopes>> {
    #[derive(Deserialize)]
    struct Data {
        scopes: Vec<String>,
    }
    if fault.kind != FaultKind::InsufficientScope {
        return None;
    }
    let data = fault.data.as_ref().and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    let scopes = data.map(|data| data.scopes).unwrap_or_default();
    Some(Box::new(MissingScopes { scopes, message: fault.message.clone() }))
}
