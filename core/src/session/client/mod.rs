//! The client side of one connection.
//!
//! The machine first negotiates the revision ([`Output::Ready`] or [`Output::Failed`]); afterwards it sends requests
//! and matches responses, independent of the revision.

mod calls;
mod incoming;
mod legacy;
mod listening;
mod modern;
mod negotiate;
mod server_capabilities;
mod pages;
mod partial;
mod renewal;
mod stray_output;
mod tolerance;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

#[cfg(feature = "client")]
pub(crate) use self::calls::took_too_long;
pub use self::listening::Change;
#[cfg(feature = "client")]
pub(crate) use self::partial::Partial;
pub(crate) use self::tolerance::number_of;
use self::{
    calls::Calls,
    modern::Counterpart,
    negotiate::{Negotiation, Phase},
    pages::Pages,
    renewal::Renewal,
    stray_output::StrayOutput,
    tolerance::Tolerance,
};
use super::pending::{InboundKey, Pending};
pub use super::server::{ListKind, Progress};
use crate::{
    error::{Error, ErrorKind},
    framing::TooLong,
    protocol::{
        ClientCapabilities, Dialect, Era, ErrorObject, Implementation, LoggingLevel, Method,
        MethodName, Raw, Revision, RootsCapability, SubscriptionFilter, json,
    },
    wire::{self, Stamp, StructuredContent, Wire},
};

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub info: Implementation,
    pub capabilities: ClientCapabilities,
    /// The accepted revisions, in any order. If both eras are among them, the server is probed first.
    pub revisions: Vec<Revision>,
    /// The revision that the server spoke over an earlier connection. A server that was legacy is not probed, unless it then
    /// refuses `initialize`.
    pub last_revision: Option<Revision>,
    /// A dialect to use instead of the revisions.
    pub dialect: Option<Dialect>,
    /// The time limit for the answer to the probe, after which a server counts as legacy. At most half of
    /// `connect_timeout`, so that time is left for `initialize`. `None` where every server answers: it has all of
    /// `connect_timeout`.
    pub probe_timeout: Option<Duration>,
    /// The time limit for all of connecting: reaching the server, the probe, `initialize`, and a second start where the
    /// server ended at the probe. `None` means no limit.
    pub connect_timeout: Option<Duration>,
    /// The minimum level of log messages; without it a modern server sends none.
    pub log_level: Option<LoggingLevel>,
}

/// The key of a request, chosen by the caller; never reused within a session.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestKey(pub u64);

/// The timeouts of a request, and its progress token.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions {
    /// The maximum time without response or progress, not counting open questions of the server; `None`: unlimited.
    pub timeout: Option<Duration>,
    /// The maximum total time, regardless of progress.
    pub max_timeout: Option<Duration>,
    pub wants_progress: bool,
    /// The request is another client's, whose capabilities its `_meta` may have.
    pub is_passed_on: bool,
    /// The times from which the timeouts count; `None`: from the request.
    pub times: Option<CallTimes>,
}

/// The times of a call that needs several requests, such as the pages of a list.
#[derive(Clone, Copy, Debug)]
pub struct CallTimes {
    /// The start of the call, from which `max_timeout` counts.
    pub started: Instant,
    /// The last progress, from which `timeout` counts.
    pub last_seen: Instant,
    /// True from the second page of a list on.
    pub is_continued: bool,
}

/// An input of the machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// The transport is connected; after [`Output::Restart`], connected anew.
    Start,
    /// A frame was received.
    Frame(&'a [u8]),
    /// The connection ended without the end of this line, which may therefore be cut; [`Input::Closed`] follows.
    LastLine(&'a [u8]),
    /// A frame was received that ended the exchange of the request with this id, so that no other response to it follows.
    Response { id: u64, frame: &'a [u8] },
    /// A frame was discarded because of its length.
    TooLong(TooLong<'a>),
    /// Sends a request; `params` is a JSON object.
    Request { key: RequestKey, method: MethodName, params: &'a str, options: RequestOptions },
    /// Cancels a request; no [`Output::Done`] follows.
    Cancel(RequestKey, Option<&'a str>),
    /// Sends a notification; `params` is a JSON object. Notifications that the revision does not define are not sent.
    Notify { method: MethodName, params: &'a str },
    /// The answer to an [`Output::Ask`].
    Answer(InboundKey, Result<Raw, ErrorObject>),
    /// The client has roots from now on; modern requests declare that capability.
    DeclareRoots,
    /// The time of [`ClientSession::deadline`] has come.
    Tick,
    /// Suspends (`true`) or resumes (`false`) the time limits of connecting and the idle timeouts of requests, while the user
    /// signs in.
    Hold(bool),
    /// The transport opened a new session; settings of the old one are restored.
    Renewed,
    /// The transport could not deliver the request with this id, or its response.
    Failed { id: u64, error: Error },
    /// This side closes the connection: open requests are cancelled first.
    Leave(&'a str),
    /// The server's process ended without reading what it was sent; [`Input::Closed`] follows.
    Unread,
    /// The connection was lost, with the reason.
    Closed(&'a str),
}

/// An output of the machine.
#[derive(Debug)]
pub enum Output {
    /// A frame to write.
    Send(Vec<u8>),
    /// The server's identity; requests may be sent from now on.
    Ready(Arc<ServerIdentity>),
    /// The outcome of a request: its raw result, in the modern era possibly an `input_required` one.
    Done(RequestKey, Result<Raw, Error>),
    Progress(RequestKey, Progress),
    Log(LogMessage),
    ListChanged(ListKind),
    /// The URI of a subscribed resource.
    ResourceUpdated(String),
    /// The part of the filter that the server acknowledged.
    Acknowledged(RequestKey, SubscriptionFilter),
    /// A change notification with its `subscriptions/listen`; `None` if the server does not name one.
    ChangeNotified(Option<RequestKey>, Change),
    /// The server opened a new session, which has no subscriptions.
    Renewed,
    /// Any other notification.
    Notified {
        method: MethodName,
        params: Raw,
    },
    /// A question of the server; report the answer with [`Input::Answer`].
    Ask(Ask),
    /// The server withdrew the question.
    AskCancelled(InboundKey),
    /// The server process ended because of the probe: start it again and send [`Input::Start`].
    Restart,
    /// The connection failed; no [`Output::Ready`] follows.
    Failed(Error),
}

/// A question of a legacy server.
#[derive(Debug)]
pub struct Ask {
    pub id: InboundKey,
    /// The elicitation id, if the server sent one.
    pub key: Option<String>,
    /// `roots/list`, `sampling/createMessage` or `elicitation/create`.
    pub method: Method,
    /// A JSON object.
    pub params: Raw,
}

/// A notification of a server.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct LogMessage {
    pub level: LoggingLevel,
    pub logger: Option<String>,
    pub data: Raw,
}

/// The description that a server gave of itself.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ServerIdentity {
    /// The server's `Implementation`; the name is "" if the server gives none.
    pub info: Implementation,
    /// The negotiated revision; for a dialect, the most similar one.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// A JSON object.
    pub capabilities: Raw,
    pub instructions: Option<String>,
}

/// The protocol spoken, for transports that carry each message separately.
#[derive(Clone, Copy, Debug)]
pub struct NegotiatedProtocol {
    /// The negotiated revision; for a dialect, the most similar one.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// `true` in the modern era: requests are repeated in headers, and closing an exchange cancels its request.
    pub is_stateless: bool,
}

impl NegotiatedProtocol {
    pub(crate) fn new(revision: Revision, dialect: Option<Dialect>) -> Self {
        Self { revision, dialect, is_stateless: revision.era() == Era::Modern }
    }

    /// The tables of the revision or dialect.
    pub(crate) fn wire(self) -> &'static Wire {
        Wire::spelled(self.revision, self.dialect)
    }

    /// Returns the revision's date or the dialect's name.
    pub fn name(self) -> &'static str {
        self.wire().name()
    }

    /// Returns `true` if results of tools may have structured content.
    pub(crate) fn has_structured_content(self) -> bool {
        self.wire().vocabulary.structured_content != StructuredContent::Absent
    }

    /// Returns `true` if messages over HTTP carry the revision in a header.
    pub(crate) fn has_version_header(self) -> bool {
        self.dialect != Some(Dialect::V0_7)
    }
}

impl ServerIdentity {
    /// Returns the protocol spoken with the server.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn spoken(&self) -> NegotiatedProtocol {
        NegotiatedProtocol::new(self.revision, self.dialect)
    }
}

/// The state machine of a client.
#[derive(Debug)]
pub struct ClientSession {
    config: Arc<ClientConfig>,
    phase: Phase,
    negotiation: Negotiation,
    stray_output: StrayOutput,
    /// The number of frames that were not messages.
    malformed: u64,
    tolerance: Tolerance,
    /// The request whose exchange ended with the frame that is being handled.
    exchange: Option<u64>,
    wire: &'static Wire,
    /// From 2026-07-28: the members added to the `_meta` of every request.
    envelope: Option<wire::ClientEnvelope>,
    server: Option<Arc<ServerIdentity>>,
    log_level: Option<LoggingLevel>,
    /// Before 2026-07-28: the level last set with `logging/setLevel`.
    set_level: Option<LoggingLevel>,
    calls: Calls,
    renewal: Renewal,
    asks: Pending<()>,
    pages: Pages,
    next_id: u64,
    outputs: VecDeque<Output>,
}

impl ClientSession {
    pub fn new(config: Arc<ClientConfig>) -> Self {
        Self {
            phase: Phase::Idle,
            negotiation: Negotiation::default(),
            stray_output: StrayOutput::default(),
            malformed: 0,
            tolerance: Tolerance::default(),
            exchange: None,
            wire: Wire::spelled(Revision::LATEST_LEGACY, config.dialect),
            envelope: None,
            server: None,
            log_level: config.log_level,
            set_level: None,
            calls: Calls::default(),
            renewal: Renewal::default(),
            asks: Pending::new(),
            pages: Pages::default(),
            next_id: 1,
            outputs: VecDeque::new(),
            config,
        }
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start => self.start(now),
            Input::Frame(bytes) => self.handle_frame(now, bytes),
            Input::LastLine(bytes) => self.handle_last_line(now, bytes),
            Input::Response { id, frame } => self.handle_exchange(now, id, frame),
            Input::TooLong(message) => self.handle_too_long(now, message),
            Input::Request { key, method, params, options } => {
                if let Err(error) = self.request(now, key, method, params, options) {
                    self.outputs.push_back(Output::Done(key, Err(error)));
                }
            }
            Input::Cancel(key, reason) => {
                if let Some(id) = self.calls.forget(key) {
                    self.send_cancelled(id, reason);
                }
            }
            Input::Notify { method, params } => self.notify(&method, params),
            Input::Answer(call, answer) => {
                self.answer(call, &answer);
                self.hold_calls(now);
            }
            Input::DeclareRoots => self.declare_roots(),
            Input::Tick => self.expire(now),
            Input::Hold(is_held) => {
                self.hold_negotiation(now, is_held);
                self.hold_calls(now);
            }
            Input::Renewed => self.restore(),
            Input::Failed { id, error } => self.fail_request(now, id, error),
            Input::Leave(reason) => {
                self.calls.ids().into_iter().for_each(|id| self.send_cancelled(id, Some(reason)));
                self.close(reason);
            }
            Input::Unread => self.probe_unread(),
            Input::Closed(reason) => self.close(reason),
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the time when [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        [self.negotiation.due(), self.calls.deadline()].into_iter().flatten().min()
    }

    /// Returns the server's description of itself, once known.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn server(&self) -> Option<&Arc<ServerIdentity>> {
        self.server.as_ref()
    }

    /// Returns the header values for the frames that were output last.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn spoken(&self) -> NegotiatedProtocol {
        NegotiatedProtocol::new(self.wire.revision, self.wire.dialect)
    }

    /// Returns the number of requests in flight.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    fn request(
        &mut self,
        now: Instant,
        key: RequestKey,
        method: MethodName,
        params: &str,
        options: RequestOptions,
    ) -> Result<(), Error> {
        let server = match (&self.phase, &self.server) {
            (Phase::Open, Some(server)) => Arc::clone(server),
            (Phase::Closed(reason), _) => return Err(Error::new(ErrorKind::Lost, reason.clone())),
            _ => return Err(Error::misuse(format!("{} before connect", method.as_str()))),
        };
        let (method, params) = match self.counterpart(method, params)? {
            Counterpart::Send(method, params) => (method, params),
            Counterpart::Done => {
                self.outputs.push_back(Output::Done(key, Ok(json::raw("{}".into()))));
                return Ok(());
            }
        };
        server_capabilities::check(self.wire, &server, &method)?;
        let id = self.next_id;
        let options = match method {
            // No response is expected when it succeeds.
            MethodName::Standard(Method::Listen) => {
                RequestOptions { timeout: None, wants_progress: false, ..options }
            }
            _ => options,
        };
        let has_token = (options.wants_progress || options.timeout.is_some())
            && self.wire.server_notifications.contains(&Method::Progress);
        let stamp = Stamp {
            envelope: self.envelope.as_ref(),
            keeps_capabilities: options.is_passed_on,
            log_level: self.log_level.filter(|_| self.envelope.is_some()),
            progress_token: has_token.then_some(id),
        };
        let frame = wire::request_frame(id, self.wire.word_of(&method), params, stamp)
            .map_err(|error| Error::misuse(format!("{}: {error}", method.as_str())))?;
        self.next_id += 1;
        self.remember(id, &frame, params);
        self.learn_level(&method, params);
        self.calls.open(now, id, key, method, options);
        self.outputs.push_back(Output::Send(frame));
        Ok(())
    }

    fn notify(&mut self, method: &MethodName, params: &str) {
        let has_word = match method {
            MethodName::Standard(method) => self.wire.client_notifications.contains(method),
            MethodName::Vendor(_) => true,
        };
        if matches!(self.phase, Phase::Open) && has_word {
            // Without a session, vendor notifications carry an envelope; standard ones do not.
            let vendors = matches!(method, MethodName::Vendor(_));
            let envelope = self.envelope.as_ref().filter(|_| vendors);
            let stamp = Stamp { envelope, ..Stamp::default() };
            let params = wire::stamped(params, stamp).unwrap_or_else(|_| params.into());
            let params = Some(&*params).filter(|params| params.trim() != "{}");
            let frame = wire::notification_frame(self.wire.word_of(method), params);
            self.outputs.push_back(Output::Send(frame));
        }
    }

    fn declare_roots(&mut self) {
        let roots = RootsCapability { list_changed: Some(true) };
        Arc::make_mut(&mut self.config).capabilities.roots.get_or_insert(roots);
        let revision = self.wire.revision;
        if self.envelope.is_some() {
            self.speak(revision);
        }
    }

    fn send_cancelled(&mut self, id: u64, reason: Option<&str>) {
        self.renewal.forget(id);
        if !self.wire.client_notifications.contains(&Method::Cancelled) {
            return;
        }
        let mut params = json::ObjectWriter::with_capacity(64);
        params.member("requestId", &id);
        if let Some(reason) = reason {
            params.member("reason", reason);
        }
        let word = self.wire.word(Method::Cancelled);
        let frame = wire::notification_frame(word, Some(&params.finish()));
        self.outputs.push_back(Output::Send(frame));
    }

    fn expire(&mut self, now: Instant) {
        self.expire_negotiation(now);
        while let Some((id, key, error)) = self.calls.expired(now) {
            self.send_cancelled(id, Some(&error.message));
            self.outputs.push_back(Output::Done(key, Err(error)));
        }
    }

    fn close(&mut self, reason: &str) {
        match self.phase {
            Phase::Open => {
                self.phase = Phase::Closed(reason.to_owned());
                self.renewal.clear();
                for (key, method) in self.calls.drain() {
                    let message = format!("{}: {reason}", method.as_str());
                    let error = Error::new(ErrorKind::Lost, message);
                    self.outputs.push_back(Output::Done(key, Err(error)));
                }
                let asks = self.asks.drain();
                self.outputs.extend(asks.into_iter().map(Output::AskCancelled));
            }
            Phase::Closed(_) => (),
            _ => self.close_negotiation(reason),
        }
    }

    fn fail_request(&mut self, now: Instant, id: u64, error: Error) {
        let Some(error) = self.negotiation_failed(now, id, error) else { return };
        self.renewal.forget(id);
        if let Some((key, method)) = self.calls.complete(id) {
            let message = format!("{}: {}", method.as_str(), error.message);
            self.outputs
                .push_back(Output::Done(key, Err(error.with(|details| details.message = message))));
        }
    }

    fn is_modern(&self) -> bool {
        self.wire.revision.era() == Era::Modern
    }
}
