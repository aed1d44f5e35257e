//! The server side of one connection: frames in; frames, calls and cancellations out.
//!
//! Era is decided frame by frame: a request that carries the modern envelope is served statelessly at any time,
//! anything else belongs to the handshake that `initialize` opens once.

mod batch;
mod legacy;
mod modern;
mod outgoing;

use std::{collections::VecDeque, sync::Arc};

use self::{batch::Batches, legacy::Handshake};
use super::pending::{CallId, Pending};
use crate::{
    error::Fault,
    protocol::{
        Frame, Id, LoggingLevel, Malformed, Message, Method, MethodName, Params, Raw, Request,
        Response, Revision,
    },
    wire::{self, Wire},
};

/// What a session needs to know of its server.
#[derive(Debug)]
pub struct SessionConfig {
    /// The server's `Implementation`, as JSON of the newest revision.
    pub server_info: String,
    /// What the server speaks, newest first.
    pub revisions: Vec<Revision>,
}

/// What the shell tells the session.
#[derive(Debug)]
pub enum Input<'a> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// A frame arrived that was longer than the limit, in bytes, and was thrown away.
    TooLong { limit: usize },
    /// A call handed out by [`Output::Call`] has finished.
    Done(CallId, Result<Response, Fault>),
    /// A call's handler got further.
    Progress(CallId, Progress),
    /// A call's handler has something to tell; `data` is JSON.
    Log { call: CallId, level: LoggingLevel, logger: Option<String>, data: Raw },
    /// What the server offers has changed.
    Changed(ListKind),
    /// The peer is gone: every call in flight is given up.
    Closed,
}

/// What the session asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Send(Vec<u8>),
    /// Answer this request and report back with [`Input::Done`].
    Call(Call),
    /// The peer no longer wants this call's result: no reply will be sent.
    Cancel(CallId),
    /// The peer tells something that a handler may have been registered for.
    Notified { method: MethodName, params: Raw, context: CallContext },
}

/// A request to be answered.
#[derive(Debug)]
pub struct Call {
    pub request: Request,
    pub context: CallContext,
}

/// The circumstances of a request, the same for every revision.
#[derive(Clone, Debug)]
pub struct CallContext {
    pub call: CallId,
    /// `None` for a notification.
    pub request_id: Option<Id>,
    pub revision: Revision,
    /// The request's `_meta`, as it came.
    pub meta: Option<Raw>,
    pub client: Arc<ClientIdentity>,
    /// Whether anybody asked for progress.
    pub wants_progress: bool,
}

/// Who asks, as far as it said so.
#[derive(Debug, Default)]
pub struct ClientIdentity {
    /// Its `Implementation`, as JSON.
    pub info: Option<Raw>,
    pub capabilities: Option<Raw>,
}

/// How far a handler got.
#[derive(Clone, Debug)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The lists that can change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListKind {
    Tools,
    Resources,
    Prompts,
}

/// The state machine.
#[derive(Debug)]
pub struct ServerSession {
    config: Arc<SessionConfig>,
    handshake: Handshake,
    /// The revision that the peer spoke last, which spells errors that belong to no request.
    spoken: &'static Wire,
    pending: Pending<Inbound>,
    batches: Batches,
    /// Lists that changed before the client had confirmed the handshake: it is told right after.
    untold: Vec<ListKind>,
    outputs: VecDeque<Output>,
}

/// A request the peer is waiting on.
#[derive(Debug)]
struct Inbound {
    method: MethodName,
    wire: &'static Wire,
    progress_token: Option<Id>,
    /// The progress reported last: it must increase.
    progress: Option<f64>,
    log: LogPolicy,
    slot: Option<batch::Slot>,
}

/// Which log messages a call may send.
#[derive(Clone, Copy, Debug)]
enum LogPolicy {
    /// What the request's own envelope asks for; nothing when it asks for none.
    Request(Option<LoggingLevel>),
    /// What `logging/setLevel` said last.
    Session,
}

/// A request that may be served: how it is spelled and under which circumstances.
struct Admitted {
    wire: &'static Wire,
    client: Arc<ClientIdentity>,
    log: LogPolicy,
    progress_token: Option<Id>,
    meta: Option<Raw>,
}

impl ServerSession {
    pub fn new(config: Arc<SessionConfig>) -> Self {
        Self {
            config,
            handshake: Handshake::Awaiting,
            spoken: Wire::of(Revision::V2024_11_05),
            pending: Pending::new(),
            batches: Batches::default(),
            untold: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.handle_frame(bytes),
            Input::TooLong { limit } => {
                let fault = Fault::invalid_request(format!("message longer than {limit} bytes"));
                self.refuse(None, None, None, fault);
            }
            Input::Done(call, outcome) => self.handle_done(call, outcome),
            Input::Progress(call, progress) => self.send_progress(call, progress),
            Input::Log { call, level, logger, data } => {
                self.send_log(call, level, logger.as_deref(), &data);
            }
            Input::Changed(kind) => self.send_changed(kind),
            Input::Closed => {
                let calls = self.pending.drain();
                self.outputs.extend(calls.into_iter().map(Output::Cancel));
            }
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Requests that were read and not yet answered: a shell stops reading while there are too many.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn handle_frame(&mut self, bytes: &[u8]) {
        match Frame::parse(bytes) {
            Frame::One(Ok(message)) => self.handle_message(message, None),
            Frame::One(Err(malformed)) => self.refuse_malformed(malformed, None),
            Frame::Batch(members) => self.handle_batch(members),
        }
    }

    fn handle_message(&mut self, message: Message<'_>, slot: Option<batch::Slot>) {
        match message {
            Message::Request { id, method, params } => {
                self.handle_request(id, &method, &params, slot);
            }
            Message::Notification { method, params } => self.handle_notification(&method, &params),
            // Nothing is asked of this peer, so an answer belongs to nothing.
            Message::Response { .. } => (),
        }
    }

    fn handle_request(
        &mut self,
        id: Id,
        name: &str,
        params: &Params<'_>,
        slot: Option<batch::Slot>,
    ) {
        let admitted = match self.admit(name, params, slot.is_some()) {
            Ok(admitted) => admitted,
            Err(fault) => return self.refuse(Some(&id), None, slot, fault),
        };
        self.spoken = admitted.wire;
        if self.pending.contains(&id) {
            let fault =
                Fault::invalid_request(format!("a request with the id {id} is still in flight"));
            return self.refuse(Some(&id), None, slot, fault);
        }
        let mut request = match wire::lift_request(admitted.wire, name, params) {
            Ok(request) => request,
            Err(fault) => {
                return self.refuse(Some(&id), Some(&MethodName::parse(name)), slot, fault);
            }
        };
        if let Request::Initialize(initialize) = &mut request {
            match self.handshake.open(initialize, &self.config.revisions) {
                Ok(wire) => return self.call(id, request, Admitted { wire, ..admitted }, slot),
                Err(fault) => return self.refuse(Some(&id), None, slot, fault),
            }
        }
        match request {
            Request::Ping => self.reply(admitted.wire, &id, slot, &Response::Empty),
            Request::SetLevel { level } => {
                self.handshake.set_level(level);
                self.reply(admitted.wire, &id, slot, &Response::Empty);
            }
            request => self.call(id, request, admitted, slot),
        }
    }

    /// Which revision a request is served in, or why it may not be sent now.
    fn admit(&self, name: &str, params: &Params<'_>, in_batch: bool) -> Result<Admitted, Fault> {
        match wire::claim(params, &self.config.revisions)? {
            wire::Claim::Modern(_) if in_batch => Err(modern::refuse_batch()),
            wire::Claim::Modern(envelope) => Ok(modern::admit(&envelope)),
            wire::Claim::None(meta) | wire::Claim::Partial(meta) => {
                self.handshake.admit(name, &meta)
            }
        }
    }

    fn call(&mut self, id: Id, request: Request, admitted: Admitted, slot: Option<batch::Slot>) {
        let Admitted { wire, client, log, progress_token, meta } = admitted;
        self.spoken = wire;
        let inbound =
            Inbound { method: request.method(), wire, progress_token, progress: None, log, slot };
        let wants_progress = inbound.progress_token.is_some();
        let call = self.pending.register(id.clone(), inbound);
        let context = CallContext {
            call,
            request_id: Some(id),
            revision: wire.revision,
            meta,
            client,
            wants_progress,
        };
        self.outputs.push_back(Output::Call(Call { request, context }));
    }

    fn handle_notification(&mut self, name: &str, params: &Params<'_>) {
        let method = MethodName::parse(name);
        match &method {
            MethodName::Standard(Method::Initialized) => self.confirm(),
            MethodName::Standard(Method::Cancelled) => {
                let id = params.get("requestId").and_then(|it| Id::parse(it.get()));
                if let Some((call, inbound)) = id.and_then(|it| self.pending.cancel(&it)) {
                    self.outputs.push_back(Output::Cancel(call));
                    self.settle(inbound.slot, None);
                }
            }
            MethodName::Standard(Method::RootsListChanged) | MethodName::Vendor(_) => {
                let Ok(admitted) = self.admit(name, params, false) else { return };
                let context = CallContext {
                    call: CallId(u64::MAX),
                    request_id: None,
                    revision: admitted.wire.revision,
                    meta: admitted.meta,
                    client: admitted.client,
                    wants_progress: false,
                };
                let params = params.without_meta();
                self.outputs.push_back(Output::Notified { method, params, context });
            }
            MethodName::Standard(_) => (),
        }
    }

    fn handle_done(&mut self, call: CallId, outcome: Result<Response, Fault>) {
        // The peer may have cancelled while the handler ran.
        let Some((id, inbound)) = self.pending.complete(call) else { return };
        match outcome {
            Ok(response) => self.reply(inbound.wire, &id, inbound.slot, &response),
            Err(fault) => {
                let frame = self.fault_frame(inbound.wire, Some(&id), Some(&inbound.method), fault);
                self.settle(inbound.slot, Some(frame));
            }
        }
    }

    fn refuse_malformed(&mut self, malformed: Malformed, slot: Option<batch::Slot>) {
        if malformed.is_response {
            return self.settle(slot, None);
        }
        let fault = match malformed.unreadable {
            true => Fault::new(crate::error::FaultKind::Unreadable, malformed.message),
            false => Fault::invalid_request(malformed.message),
        };
        self.refuse(malformed.id.as_ref(), None, slot, fault);
    }
}

/// A progress token or id in raw JSON, where it is one.
fn token(raw: Option<&serde_json::value::RawValue>) -> Option<Id> {
    raw.and_then(|it| Id::parse(it.get()))
}
