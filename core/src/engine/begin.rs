//! The beginning of a call: its answer, or a handler that runs or is queued.

use std::time::Instant;

use super::{
    CallEvent, Effect, Engine, Run,
    computation::MAX_UNDER_LOCK,
    host::HostRequest,
    id::{CallId, Origin, PeerId},
    key_ring::KeyRing,
    request_state::{Binding, Opened, Refused, RoundId},
    spans::SpanStart,
    state::{Continuation, Queued, ReplayState, Running, Start, State},
};
use crate::{
    error::Fault,
    protocol::{Inputs, Principal, Raw, Request},
    router::{self, Dispatch, Job, RequestScope, Visibility},
    session::{
        asking::{Answers, Journal},
        server::{Call, CallContext},
    },
};

/// The part of a request that its dispatch does not change.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) context: CallContext,
    /// The round that the request continues.
    pub(super) round: Option<RoundId>,
    /// The request as it is replayed when its handler asks the client.
    pub(super) replayed: Option<Request>,
    /// `true` for reads whose result may be shared with others: the request contains no answers of the user.
    pub(super) may_share: bool,
    /// Set if the host traces.
    pub(super) span: Option<Box<SpanStart>>,
}

impl Engine {
    /// Begins a request. If it concerns components with restricted visibility, the host is asked first.
    pub(crate) fn begin(&mut self, now: Instant, peer: PeerId, call: Call) -> (CallId, CallEvent) {
        let id = self.calls.number();
        let origin = Origin { call: id, peer, key: call.key, client: call.context.client_key() };
        let components = &self.components;
        let touched = components.is_guarded().then(|| components.unresolved(&call.request));
        let Some(Some(components)) = touched else {
            return (id, self.begin_visible(now, origin, call, Visibility::public()));
        };
        let (weight, context) = (call.context.weight, call.context.clone());
        let request = HostRequest::FilterVisible { context, components: components.clone() };
        let continuation = Continuation::Visibility { call: Box::new(call), components };
        (id, self.ask_host(now, origin, weight, request, continuation))
    }

    /// Begins a request whose sender may see these components.
    pub(super) fn begin_visible(
        &mut self,
        now: Instant,
        origin: Origin,
        call: Call,
        visibility: Visibility,
    ) -> CallEvent {
        let Call { request, mut context, raw_params, .. } = call;
        let span = self.span_start(now, &request);
        let may_share = matches!(
            &request,
            Request::ReadResource { inputs: Inputs { responses: None, state: None }, .. }
        );
        let round = match self.opened(now, &request, context.principal.as_deref()) {
            Ok(None) => None,
            Ok(Some(Opened { answers, round })) => {
                context.answers = answers;
                round
            }
            Err(fault) => {
                let answer = Err(fault);
                if let Some(span) = span {
                    self.trace_answer(now, *span, context, &answer);
                }
                return CallEvent::Answered(answer);
            }
        };
        let principal = context.principal.as_deref();
        let visibility = self.components.hide_by_scope(visibility, principal, is_remote(&context));
        // Other calls need no replay state.
        let replayed = context.can_be_asked().then(|| request.clone());
        let opening = Opening { context, round, replayed, may_share, span };
        let is_large = opening.context.weight > MAX_UNDER_LOCK;
        if is_large || self.components.checks_slowly_for(&request) {
            return self.dispatch_outside(now, origin, request, raw_params, visibility, opening);
        }
        let scope = opening.scope(&visibility, self.sealing.keys(), raw_params.as_ref());
        let dispatch = router::dispatch(&self.components, request, scope);
        self.begin_dispatched(now, origin, opening, dispatch)
    }

    /// Continues a request that was dispatched.
    pub(super) fn begin_dispatched(
        &mut self,
        now: Instant,
        origin: Origin,
        opening: Opening,
        dispatch: Dispatch,
    ) -> CallEvent {
        let Opening { context, round, replayed, may_share, span } = opening;
        let job = match dispatch {
            Dispatch::Answer(answer) => {
                if let Some(span) = span {
                    self.trace_answer(now, *span, context, &answer);
                }
                return CallEvent::Answered(answer);
            }
            Dispatch::Listen(filter) => return CallEvent::Listening(filter),
            Dispatch::Run(job) => job,
        };
        if let Some(round) = round
            && let Some(begun) = self.continue_round(now, origin, round, &job, &context)
        {
            return begun;
        }
        let replay = replayed.map(|request| Box::new(ReplayState::new(request, &job, &context)));
        let subject = span.as_ref().map(|span| Box::new(span.subject.clone()));
        let start = Start { job, context, replay, read: None, subject };
        if may_share {
            let traced = span.map(|span| (span, start.context.clone()));
            let event = self.admit_read(now, origin, start);
            if let (CallEvent::Answered(answer), Some((span, context))) = (&event, traced) {
                self.trace_answer(now, *span, context, answer);
            }
            return event;
        }
        self.admit(now, origin, start);
        CallEvent::Nothing
    }

    /// Starts a handler, or queues it if its tool is at its limit.
    pub(super) fn admit(&mut self, now: Instant, origin: Origin, start: Start) {
        match start.job.result_builder.concurrency() {
            None => self.start(now, origin, start, None),
            Some((tool, limit)) => {
                if self.concurrency.enter(&tool, limit, origin.call) {
                    return self.start(now, origin, start, Some(tool));
                }
                let weight = start.weight();
                let queued = State::Queued(Box::new(Queued::Start(start)));
                self.calls.put(origin, weight, None, queued);
            }
        }
    }

    /// Starts a handler. `slot`: the tool whose limit it counts against.
    pub(super) fn start(
        &mut self,
        now: Instant,
        origin: Origin,
        start: Start,
        slot: Option<String>,
    ) {
        let weight = start.weight();
        let Start { job, context, replay, read, subject } = start;
        let Job { handler, input, result_builder, timeout, middleware_frame } = job;
        let run = self.calls.begin_run(origin.call);
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        let (wire, joined) = (context.wire(), Vec::new());
        let running = Running { run, result_builder, slot, timeout, wire, replay, read, joined };
        self.calls.put(origin, weight, deadline, State::Running(running));
        self.effects.push_back(Effect::Run(Box::new(Run {
            id: run,
            handler,
            input,
            context,
            is_notification: false,
            middleware_frame,
            subject,
        })));
    }

    /// Ends a run's place in the concurrency limit of its tool; the next queued call takes it.
    pub(super) fn leave(&mut self, now: Instant, slot: Option<String>) {
        let Some(tool) = slot else { return };
        let Some(next) = self.concurrency.leave(&tool) else { return };
        let Some(call) = self.calls.get(next) else { return self.leave(now, Some(tool)) };
        let origin = call.origin(next);
        match self.calls.remove(next).map(|call| (call.weight, call.state)) {
            Some((weight, State::Queued(queued))) => match *queued {
                Queued::Start(start) => self.start(now, origin, start, Some(tool)),
                Queued::Answered(suspended) => {
                    self.go_on(now, origin, weight, suspended, Some(tool));
                }
                Queued::Resumed(suspended, context) => {
                    self.resume(now, origin, weight, suspended, context, Some(tool));
                }
            },
            _ => debug_assert!(false, "only queued calls wait in line"),
        }
    }

    /// Opens the client's state, if there is any: answers of earlier rounds, and those of this request.
    fn opened(
        &mut self,
        now: Instant,
        request: &Request,
        principal: Option<&Principal>,
    ) -> Result<Option<Opened>, Fault> {
        let Some(inputs) = request.inputs() else { return Ok(None) };
        if let Inputs { responses: None, state: None } = inputs {
            return Ok(None);
        }
        let Some(binding) = Binding::from_request(request, principal) else { return Ok(None) };
        let limits = &self.limits();
        let opened = self.sealing.open(now, &binding, inputs, limits);
        opened.map(Some).map_err(|refused| self.refused(refused))
    }

    pub(super) fn refused(&mut self, refused: Refused) -> Fault {
        self.report(refused.report);
        refused.fault
    }
}

impl Opening {
    /// Returns the context that the request is dispatched in.
    pub(super) fn scope<'a>(
        &'a self,
        visibility: &'a Visibility,
        cursors: &'a KeyRing,
        raw_params: Option<&'a Raw>,
    ) -> RequestScope<'a> {
        let context = &self.context;
        RequestScope {
            visibility,
            principal: context.principal.as_deref(),
            headers: context.http.as_deref().map(|facts| &facts.headers),
            is_remote: is_remote(context),
            checks_headers: context.checks_headers,
            cursors,
            raw_params,
        }
    }
}

impl Start {
    /// Returns the bytes of input.
    pub(super) fn weight(&self) -> usize {
        self.job.input.len().max(self.context.weight)
    }
}

impl ReplayState {
    fn new(request: Request, job: &Job, context: &CallContext) -> Self {
        Self {
            request,
            handler: job.handler.clone(),
            input: job.input.clone(),
            middleware_frame: job.middleware_frame.clone(),
            context: context.clone(),
            recorded: Journal::default(),
            brought: Answers::default(),
            asked: Vec::new(),
            questions: 0,
            sent: Vec::new(),
            round: None,
        }
    }
}

/// Returns whether the request came over a network.
fn is_remote(context: &CallContext) -> bool {
    context.http.is_some() || context.remote.is_some()
}
