//! Requests that are handed over to another process, because the handler whose questions they answer waits there (2026-07-28,
//! Multi Round-Trip Requests). A process that is gone, or whose handler is, does not take them: the handler is replayed here then,
//! unless it forbids that.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, StatusCode};
use rustc_hash::FxHashMap;

use super::{
    Endpoint, EndpointOutput, Exchange, ExchangeId, ExchangeOwner, HttpFacts, Part, PeerId,
    PeerSession, Reader,
    logging::Reason,
    process_message::{ProcessMessage, Sender},
    reply::{self, Accepts},
    requests::HttpRequest,
    session,
    shared_exchange::{SharedPart, SharedRequest},
    streams::exchange,
};
use crate::{
    framing::sse,
    protocol::{ErrorObject, Frame, Id, Revision, code},
    session::server::ServerSession,
    wire::{self, McpHeaders, Wire},
};

/// The time in which a process has to take a request that is offered to it.
const OFFERED: Duration = Duration::from_secs(1);
/// The time in which the process of a request has to say that it is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of requests that are handed over at the same time.
const MAX_HANDED_OVER: usize = 1_000;
const GONE: &str = "the process whose handler waited for these answers is gone, and with it the result; whether the request took effect is unknown";

/// The requests that are handed over, and those that other processes have handed over to this one.
#[derive(Debug, Default)]
pub(super) struct HandedOver {
    given: FxHashMap<ExchangeId, Given>,
    /// By the exchange that stands for the client here.
    taken: FxHashMap<ExchangeId, Taken>,
    last: u64,
}

/// A request that another process is to handle.
#[derive(Debug)]
struct Given {
    process: u64,
    stage: Stage,
    /// The number of the next part of the answer.
    next: u64,
    /// `true` if the process has said that it is there since it was last asked.
    is_alive: bool,
    until: Instant,
}

#[derive(Debug)]
enum Stage {
    Offered(Box<HttpRequest>, Box<PeerSession>),
    /// The other process handles it.
    Taken,
}

/// A request of another process.
#[derive(Debug)]
struct Taken {
    from: Sender,
    /// The number of the next part of the answer.
    next: u64,
}

impl Endpoint {
    /// Returns the process in which the handler waits that this request brings answers to, if it is another one.
    pub(super) fn handler_elsewhere(
        &self,
        now: Instant,
        facts: &HttpFacts,
        peer: &PeerSession,
    ) -> Option<u64> {
        if !self.is_shared || self.handed_over.given.len() >= MAX_HANDED_OVER {
            return None;
        }
        let request = peer.machine.continued()?;
        let process = self.engine.process_of_round(now, request, facts.principal.as_deref())?;
        (process != self.engine.process()).then_some(process)
    }

    /// Offers a request to another process.
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        request: HttpRequest,
        peer: Box<PeerSession>,
        body: &[u8],
        to: u64,
    ) {
        let Ok(body) = String::from_utf8(body.to_vec()) else {
            return self.serve_alone(now, request, peer);
        };
        let id = request.exchange;
        let from = Sender { process: self.engine.process(), message: id.0 };
        let shared = SharedRequest::new(&request.facts, body);
        self.publish(&ProcessMessage::Offer { to, from, request: Box::new(shared) });
        let until = now + OFFERED;
        let stage = Stage::Offered(Box::new(request), peer);
        let given = Given { process: to, stage, next: 0, is_alive: false, until };
        self.handed_over.given.insert(id, given);
        self.sweep_at(Some(until));
    }

    /// Handles a request that another process offers, if its handler waits here.
    pub(super) fn take_over(&mut self, now: Instant, from: Sender, request: SharedRequest) {
        let Some((facts, body)) = request.open() else { return self.refuse_offer(from) };
        let Ok(mcp_headers) = McpHeaders::read(&facts.headers) else {
            return self.refuse_offer(from);
        };
        let frame = Frame::parse(body.as_bytes());
        let (accepts, request_id) =
            (Accepts::from_headers(&facts.headers), frame.request_id().cloned());
        let id = ExchangeId(u64::MAX - self.handed_over.last);
        let mut machine =
            ServerSession::for_exchange(Arc::clone(&self.session), mcp_headers.clone());
        machine.handle(session::Input::Parsed(frame));
        let is_here = machine
            .continued()
            .is_some_and(|request| self.engine.has_round(now, request, facts.principal.as_deref()));
        if !is_here || self.is_closing {
            return self.refuse_offer(from);
        }
        self.handed_over.last += 1;
        self.handed_over.taken.insert(id, Taken { from, next: 0 });
        self.publish(&ProcessMessage::Taken { from, is_here: true });
        let request = HttpRequest::handed_over(id, facts.into(), mcp_headers, accepts, request_id);
        let peer = Box::new(PeerSession::new(PeerId::Exchange(id), machine));
        self.serve_alone(now, request, peer);
    }

    /// Answers another process that asks whether its request is still handled here.
    pub(super) fn confirm_taken(&mut self, from: Sender) {
        let is_here = self.handed_over.taken.values().any(|taken| taken.from == from);
        self.publish(&ProcessMessage::Taken { from, is_here });
    }

    /// Handles the reply to an offer, or to the question whether the process of a request is there.
    pub(super) fn note_taken(&mut self, now: Instant, from: Sender, is_here: bool) {
        let Some(id) = self.own(from) else { return };
        let Some(mut given) = self.handed_over.given.remove(&id) else { return };
        match (std::mem::replace(&mut given.stage, Stage::Taken), is_here) {
            (Stage::Offered(request, peer), false) => self.serve_alone(now, *request, peer),
            (Stage::Offered(request, _), true) => {
                self.await_parts(now, *request);
                self.handed_over
                    .given
                    .insert(id, Given { is_alive: true, until: now + PATIENCE, ..given });
                self.sweep_at(Some(now + PATIENCE));
            }
            (Stage::Taken, false) => self.fail_given(now, id),
            (Stage::Taken, true) => {
                given.is_alive = true;
                self.handed_over.given.insert(id, given);
            }
        }
    }

    /// Handles a part of an answer from another process.
    pub(super) fn pass_part(&mut self, now: Instant, from: Sender, number: u64, part: SharedPart) {
        let Some(id) = self.own(from) else { return };
        let Some(given) = self.handed_over.given.get_mut(&id) else { return };
        if !matches!(given.stage, Stage::Taken) {
            return;
        }
        given.is_alive = true;
        // A part before it was lost, and with it the sense of this one.
        if given.next != number {
            return self.fail_given(now, id);
        }
        given.next += 1;
        let Some(mut part) = part.open() else { return self.fail_given(now, id) };
        let is_last = matches!(part, Part::End | Part::Head { more: false, .. });
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if let Part::Head { headers, .. } = &mut part {
            exchange.is_streaming = true;
            if let Some(cors) = exchange.cors.take() {
                headers.extend(*cors);
            }
        }
        self.outputs.push_back(EndpointOutput::Exchange(id, part));
        if is_last {
            self.exchanges.remove(&id);
            self.handed_over.given.remove(&id);
        }
    }

    /// Ends a request of another process whose client has left.
    pub(super) fn leave_taken(&mut self, now: Instant, from: Sender) {
        let taken = &self.handed_over.taken;
        let found = taken.iter().find(|(_, taken)| taken.from == from).map(|(id, _)| *id);
        if let Some(id) = found {
            self.handed_over.taken.remove(&id);
            self.handle_gone(now, id);
        }
    }

    /// Returns whether other processes have handed requests over to this one.
    pub(super) fn has_taken_over(&self) -> bool {
        !self.handed_over.taken.is_empty()
    }

    /// Sends the next outputs to other processes, up to one for the driver.
    pub(super) fn send_to_other_processes(&mut self) {
        while let Some(output) = self.outputs.pop_front() {
            if let Some(output) = self.output_for_driver(output) {
                return self.outputs.push_front(output);
            }
        }
    }

    /// Returns an output for the driver; `None` if it was one for another process.
    fn output_for_driver(&mut self, output: EndpointOutput) -> Option<EndpointOutput> {
        let (id, part) = match output {
            EndpointOutput::Exchange(id, part) => (id, part),
            EndpointOutput::Change(Reader::Exchange(id), bytes) => (id, Part::Bytes(bytes)),
            other => return Some(other),
        };
        let Some(taken) = self.handed_over.taken.get_mut(&id) else {
            return Some(EndpointOutput::Exchange(id, part));
        };
        let (from, number) = (taken.from, taken.next);
        taken.next += 1;
        if matches!(part, Part::End | Part::Head { more: false, .. }) {
            self.handed_over.taken.remove(&id);
        }
        self.publish(&ProcessMessage::Part { to: from, number, part: SharedPart::new(part) });
        None
    }

    /// Forgets a request whose client has left. Returns whether it was handed over.
    pub(super) fn stop_handing_over(&mut self, id: ExchangeId) -> bool {
        let Some(given) = self.handed_over.given.remove(&id) else { return false };
        let from = Sender { process: self.engine.process(), message: id.0 };
        self.publish(&ProcessMessage::Left { to: given.process, from });
        true
    }

    /// Handles the requests here that no process has taken, and fails those whose process is gone.
    pub(super) fn check_handed_over(&mut self, now: Instant) {
        let is_due = |given: &Given| given.until <= now;
        let due: Vec<_> = self
            .handed_over
            .given
            .iter()
            .filter(|(_, given)| is_due(given))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some(mut given) = self.handed_over.given.remove(&id) else { continue };
            let from = Sender { process: self.engine.process(), message: id.0 };
            match std::mem::replace(&mut given.stage, Stage::Taken) {
                Stage::Offered(request, peer) => {
                    self.publish(&ProcessMessage::Left { to: given.process, from });
                    self.serve_alone(now, *request, peer);
                }
                Stage::Taken if given.is_alive => {
                    self.publish(&ProcessMessage::Ask { to: given.process, from });
                    let until = now + PATIENCE;
                    self.handed_over.given.insert(id, Given { is_alive: false, until, ..given });
                }
                Stage::Taken => self.fail_given(now, id),
            }
        }
        let next = self.handed_over.given.values().map(|given| given.until).min();
        self.sweep_at(next);
    }

    /// Ends the requests that no process has taken yet, because the server stops.
    pub(super) fn end_offers(&mut self, reason: &Reason) {
        let is_offered = |given: &Given| matches!(given.stage, Stage::Offered(..));
        let given = self.handed_over.given.extract_if(|_, given| is_offered(given));
        let offered: Vec<_> = given.collect();
        for (_, given) in offered {
            if let Stage::Offered(request, _) = given.stage {
                self.refuse_for_now(*request, reason);
            }
        }
    }

    fn refuse_offer(&mut self, from: Sender) {
        self.publish(&ProcessMessage::Taken { from, is_here: false });
    }

    /// Returns the exchange of a request that this process has handed over.
    fn own(&self, from: Sender) -> Option<ExchangeId> {
        (from.process == self.engine.process()).then_some(ExchangeId(from.message))
    }

    /// Keeps what is needed to pass the answer of another process on.
    fn await_parts(&mut self, now: Instant, request: HttpRequest) {
        let id = request.exchange;
        let exchange = Exchange {
            // The other process keeps the stream alive.
            accepts: Accepts { json: true, stream: false },
            is_streaming: false,
            ..exchange(now, request, ExchangeOwner::HandedOver)
        };
        self.exchanges.insert(id, exchange);
    }

    /// Fails a request whose process is gone.
    fn fail_given(&mut self, now: Instant, id: ExchangeId) {
        self.handed_over.given.remove(&id);
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        let error = ErrorObject::new(code::INTERNAL_ERROR, GONE);
        let request: Option<Id> = exchange.request_id.clone();
        let frame =
            wire::error_frame(Wire::for_revision(Revision::LATEST), request.as_ref(), &error);
        if exchange.is_streaming {
            let mut bytes = Vec::new();
            sse::event(&mut bytes, None, &frame);
            self.stream(now, id, &mut exchange, bytes, false);
        } else {
            let (status, head): (_, HeaderMap) =
                (StatusCode::INTERNAL_SERVER_ERROR, reply::json_head());
            self.respond(id, &mut exchange, status, head, frame, false);
        }
    }
}
