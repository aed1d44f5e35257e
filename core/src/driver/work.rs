//! The interface between a server and the shell that runs its handlers.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    engine::{
        DispatchJob, Effect, HandlerEvent, HostReply, HostRequest, MAX_UNDER_LOCK, Run, RunId,
        Ticket,
    },
    error::Fault,
    protocol::{LoggingLevel, Question, Raw},
    router::{Components, Failure, Reply, ResultBuilder},
    session::{
        asking::AskId,
        server::{CallContext, ListKind, Log, Progress},
    },
};

/// Work for the shell.
#[derive(Debug)]
#[must_use = "handlers that are not run are never answered"]
pub struct Work<H> {
    pub runs: Vec<Run<H>>,
    pub cancels: Vec<RunId>,
    /// Handlers that go on for another request, and its circumstances. They come before their answers.
    pub resumes: Vec<(RunId, CallContext)>,
    /// Answers to questions that running handlers asked.
    pub answers: Vec<(RunId, AskId, Result<Raw, Fault>)>,
    /// Requests to the host; [`Backend::host_reply`] takes the replies.
    pub host_requests: Vec<(Ticket, HostRequest)>,
    /// Requests to the host whose replies are not needed any more, perhaps of the same work.
    pub host_cancels: Vec<Ticket>,
    /// Large requests to be dispatched outside the lock.
    pub(super) dispatches: Vec<(Ticket, Box<DispatchJob<H>>)>,
    /// Lines for the log.
    pub reports: Vec<String>,
    /// Lines for the log, for who looks closely.
    pub details: Vec<String>,
    /// The server is to be ticked at this time, earlier than it was before.
    pub wake: Option<Instant>,
}

/// A handler that several threads share. Hosts choose the type; nothing here looks into it.
pub trait SharedHandler: Clone + fmt::Debug + Send + Sync + 'static {}

impl<T: Clone + fmt::Debug + Send + Sync + 'static> SharedHandler for T {}

impl<H> Default for Work<H> {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            cancels: Vec::new(),
            resumes: Vec::new(),
            answers: Vec::new(),
            host_requests: Vec::new(),
            host_cancels: Vec::new(),
            dispatches: Vec::new(),
            reports: Vec::new(),
            details: Vec::new(),
            wake: None,
        }
    }
}

impl<H> Work<H> {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.cancels.is_empty()
            && self.resumes.is_empty()
            && self.answers.is_empty()
            && self.host_requests.is_empty()
            && self.host_cancels.is_empty()
            && self.dispatches.is_empty()
            && self.reports.is_empty()
            && self.details.is_empty()
            && self.wake.is_none()
    }

    /// Adds what another step asks for.
    pub fn extend(&mut self, other: Self) {
        self.runs.extend(other.runs);
        self.cancels.extend(other.cancels);
        self.resumes.extend(other.resumes);
        self.answers.extend(other.answers);
        self.host_requests.extend(other.host_requests);
        self.host_cancels.extend(other.host_cancels);
        self.dispatches.extend(other.dispatches);
        self.reports.extend(other.reports);
        self.details.extend(other.details);
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
    }

    pub(crate) fn add(&mut self, effect: Effect<H>) {
        match effect {
            Effect::Run(run) => self.runs.push(run),
            Effect::Cancel(run) => self.cancels.push(run),
            Effect::Resume { run, context } => self.resumes.push((run, context)),
            Effect::Answered { run, ask, outcome } => self.answers.push((run, ask, outcome)),
            Effect::Host(ticket, request) => self.host_requests.push((ticket, request)),
            Effect::Dispatch(ticket, job) => self.dispatches.push((ticket, job)),
            Effect::CancelHost(ticket) => self.host_cancels.push(ticket),
            Effect::Report(text) => self.reports.push(text),
            Effect::Detail(text) => self.details.push(text),
        }
    }
}

/// The interface of a server for handlers and timers. Nothing here blocks.
pub trait Backend<H>: fmt::Debug + Send + Sync {
    /// Hears what a running handler says. Others may start or go on because of it.
    fn hear(&self, run: RunId, event: HandlerEvent) -> Work<H>;
    /// The same, of what neither starts handlers nor ends them.
    fn note(&self, run: RunId, event: HandlerEvent);
    /// Takes the host's reply to a request. Handlers may start because of it.
    fn host_reply(&self, ticket: Ticket, reply: HostReply) -> Work<H>;
    /// The page with this id, to which a user was sent, is done.
    fn page_done(&self, page: &str);
    /// The client is to come back for this call's answer, after so long if given; where it can't, nothing happens.
    fn close_stream(&self, run: RunId, retry: Option<Duration>);
    /// Replaces the components that the server registers; the lists are those that differ.
    fn set_components(&self, components: Arc<Components<H>>, changed: Vec<ListKind>);
    /// The resource with this URI has changed.
    fn updated(&self, uri: &str);
    /// To be called when the deadline has come.
    fn tick(&self) -> Work<H>;
    fn deadline(&self) -> Option<Instant>;
    /// Everything in flight is to be stopped.
    fn close(&self) -> Work<H>;
    /// Returns what converts the reply of a running handler; `None` once its call has ended.
    fn result_builder(&self, run: RunId) -> Option<ResultBuilder<H>>;
    /// Requests that were read and not yet answered.
    fn in_flight(&self) -> usize;

    /// A handler has finished. Others may start in its place.
    fn done(&self, run: RunId, outcome: Result<Reply, Failure>) -> Work<H> {
        let event = match outcome {
            // A large reply is escaped, checked and copied outside the lock.
            Ok(reply) if reply.len() > MAX_UNDER_LOCK => match self.result_builder(run) {
                Some(builder) => HandlerEvent::Resolved(builder.resolve(reply)),
                None => HandlerEvent::Done(Ok(reply)),
            },
            outcome => HandlerEvent::Done(outcome),
        };
        self.hear(run, event)
    }

    fn progress(&self, run: RunId, progress: Progress) {
        self.note(run, HandlerEvent::Progress(progress));
    }

    fn log(&self, run: RunId, level: LoggingLevel, logger: Option<String>, data: Raw) {
        self.note(run, HandlerEvent::Log(Log { level, logger, data }));
    }

    /// A running handler asks the client, with params in the newest vocabulary; [`Work::answers`] brings the answer.
    fn ask(&self, run: RunId, ask: AskId, question: Question) -> Work<H> {
        self.hear(run, HandlerEvent::Ask { ask, question })
    }

    /// A running handler rejects the client's answer because of this problem, and asks again under
    /// another number. [`Work::answers`] brings the answer, or the error that it was asked often enough.
    fn ask_again(&self, run: RunId, ask: AskId, question: Question, problem: String) -> Work<H> {
        self.hear(run, HandlerEvent::AskAgain { ask, question, problem })
    }

    /// A handler has asked all that it wants to ask now. `blocks`: it holds a thread while it waits.
    fn waits(&self, run: RunId, blocks: bool) -> Work<H> {
        self.hear(run, HandlerEvent::Waits { blocks })
    }

    /// A step of a handler's gave this, and is not to be done again.
    fn step(&self, run: RunId, key: &str, value: Raw) {
        self.note(run, HandlerEvent::Step { key: key.to_owned(), value });
    }
}
