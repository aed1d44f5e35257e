//! The interface between a server and the shell that runs its handlers.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    engine::{
        Computation, Computed, Effect, HandlerEvent, HostReply, HostRequest, Run, RunId, Ticket,
    },
    error::Fault,
    protocol::{LoggingLevel, Question, Raw},
    router::{Components, Failure, Reply},
    session::{
        asking::{Answers, AskId},
        server::{CallContext, ListKind, Log, Progress},
    },
};

/// Work for the shell. A run whose call was cancelled before the shell took it is not in it, nor is a request to the host
/// that is not needed any more.
#[derive(Debug)]
#[must_use = "handlers that are not run are never answered"]
pub struct Work<H> {
    pub runs: Vec<Run<H>>,
    /// Most work has nothing else, and is quicker to move and to drop then.
    pub others: Option<Box<Others>>,
    /// The new time of the next tick, which is earlier than before.
    pub wake: Option<Instant>,
}

/// Work beside runs.
#[derive(Debug, Default)]
pub struct Others {
    /// Handlers to stop; those of runs in the same work are of notifications.
    pub cancels: Vec<RunId>,
    /// Suspended handlers that continue for another request, with its context. They come before their answers.
    pub resumes: Vec<(RunId, CallContext)>,
    /// Answers to questions that running handlers asked.
    pub answers: Vec<(RunId, AskId, Result<Raw, Fault>)>,
    /// Requests to the host; [`Backend::host_reply`] takes the replies.
    pub host_requests: Vec<(Ticket, HostRequest)>,
    /// Requests to the host whose replies are not needed any more.
    pub host_cancels: Vec<Ticket>,
    /// Lines for the log.
    pub reports: Vec<String>,
    /// Lines for the log at debug level.
    pub details: Vec<String>,
}

/// A handler that several threads share. The host chooses its type.
pub trait SharedHandler: Clone + fmt::Debug + Send + Sync + 'static {}

impl<T: Clone + fmt::Debug + Send + Sync + 'static> SharedHandler for T {}

impl<H> Default for Work<H> {
    fn default() -> Self {
        Self { runs: Vec::new(), others: None, wake: None }
    }
}

impl<H> From<Others> for Work<H> {
    fn from(others: Others) -> Self {
        Self { others: Some(Box::new(others)), ..Self::default() }
    }
}

impl<H> Work<H> {
    /// Makes work of lines for the log.
    pub fn reporting(reports: Vec<String>) -> Self {
        match reports.is_empty() {
            true => Self::default(),
            false => Others { reports, ..Others::default() }.into(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.others.is_none() && self.wake.is_none()
    }

    /// Adds the work of another input.
    pub fn extend(&mut self, other: Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other;
            return;
        }
        self.runs.extend(other.runs);
        if let Some(mut others) = other.others {
            for run in std::mem::take(&mut others.cancels) {
                self.cancel(run);
            }
            for ticket in std::mem::take(&mut others.host_cancels) {
                self.cancel_host(ticket);
            }
            self.others().extend(*others);
        }
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
    }

    /// Stops a handler. One that has not begun does not begin, except for a notification, which nobody takes back.
    fn cancel(&mut self, run: RunId) {
        match self.runs.iter().position(|waiting| waiting.id == run) {
            Some(place) if !self.runs[place].is_notification => {
                self.runs.remove(place);
            }
            _ => self.others().cancels.push(run),
        }
    }

    fn cancel_host(&mut self, ticket: Ticket) {
        let others = self.others();
        match others.host_requests.iter().position(|(waiting, _)| *waiting == ticket) {
            Some(place) => drop(others.host_requests.remove(place)),
            None => others.host_cancels.push(ticket),
        }
    }

    fn others(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }
}

impl Others {
    fn extend(&mut self, other: Self) {
        self.cancels.extend(other.cancels);
        self.resumes.extend(other.resumes);
        self.answers.extend(other.answers);
        self.host_requests.extend(other.host_requests);
        self.host_cancels.extend(other.host_cancels);
        self.reports.extend(other.reports);
        self.details.extend(other.details);
    }
}

/// The work of one input, and computations that may take long.
#[derive(Debug)]
#[must_use = "what is not computed is never answered"]
pub struct Step<H> {
    pub(super) work: Work<H>,
    pub(super) computations: Vec<Computation<H>>,
}

impl<H: Clone> Step<H> {
    pub(super) fn new(work: Work<H>) -> Self {
        Self { work, computations: Vec::new() }
    }

    /// Returns the work that is ready, and the rest, which may take long, if there is any.
    pub(crate) fn split(self) -> (Work<H>, Option<Self>) {
        let Self { work, computations } = self;
        let rest = (!computations.is_empty()).then(|| Self { work: Work::default(), computations });
        (work, rest)
    }

    pub(super) fn add(&mut self, effect: Effect<H>) {
        let Self { work, computations } = self;
        match effect {
            Effect::Run(run) => work.runs.push(run),
            Effect::Cancel(run) => work.cancel(run),
            Effect::Resume { run, context } => work.others().resumes.push((run, context)),
            Effect::Answered { run, ask, outcome } => {
                work.others().answers.push((run, ask, outcome));
            }
            Effect::Host(ticket, request) => work.others().host_requests.push((ticket, request)),
            Effect::Compute(computation) => computations.push(*computation),
            Effect::CancelHost(ticket) => work.cancel_host(ticket),
            Effect::Report(text) => work.others().reports.push(text),
            Effect::Detail(text) => work.others().details.push(text),
        }
    }

    /// Adds the step of another input.
    pub(super) fn extend(&mut self, other: Self) {
        self.work.extend(other.work);
        self.computations.extend(other.computations);
    }

    /// Runs the computations outside the lock; `handle` handles each result under it.
    #[inline]
    pub(super) fn finish(mut self, handle: impl FnMut(Computed<H>) -> Self) -> Work<H> {
        if !self.computations.is_empty() {
            self.compute(handle);
        }
        self.work
    }

    fn compute(&mut self, mut handle: impl FnMut(Computed<H>) -> Self) {
        while !self.computations.is_empty() {
            for computation in std::mem::take(&mut self.computations) {
                self.extend(handle(computation.run()));
            }
        }
    }
}

/// The interface of a server for handlers and timers. Nothing here blocks.
pub trait Backend<H>: Send + Sync {
    /// Handles an event of a running handler, after which others may start or continue.
    fn on_event(&self, run: RunId, event: HandlerEvent) -> Work<H>;
    /// Handles an event that neither starts nor ends handlers.
    fn on_report(&self, run: RunId, event: HandlerEvent);
    /// Handles the host's reply to a request, after which handlers may start.
    fn host_reply(&self, ticket: Ticket, reply: HostReply) -> Work<H>;
    /// Notifies the client that the interaction with this URL elicitation's id is complete.
    fn page_done(&self, page: &str);
    /// Closes the stream of a call, so that its client reconnects for the answer, after `retry` if given. Has no effect where
    /// streams are not resumable.
    fn close_stream(&self, run: RunId, retry: Option<Duration>);
    /// Replaces the server's components; `changed` are the lists that differ.
    fn set_components(&self, components: Arc<Components<H>>, changed: Vec<ListKind>);
    /// Notifies subscribers that the resource with this URI has changed.
    fn updated(&self, uri: &str);
    /// Handles the deadlines that have come.
    fn tick(&self) -> Work<H>;
    /// Returns the time of the next tick.
    fn deadline(&self) -> Option<Instant>;
    /// Stops everything in flight.
    fn close(&self) -> Work<H>;
    /// Returns the answers that came with the requests of a running handler.
    fn brought_answers(&self, run: RunId) -> Vec<Answers>;
    /// Returns the number of requests that were read and not yet answered.
    fn in_flight(&self) -> usize;
    /// Returns the names of the components whose handlers run, such as `tool "add"`, at most a few.
    fn running(&self) -> Vec<String>;

    /// Ends a handler's run with its outcome, after which others may start.
    fn done(&self, run: RunId, outcome: Result<Reply, Failure>) -> Work<H> {
        if let Ok(Reply::Questions(questions)) = &outcome {
            // They may be large, and are checked once.
            for answers in self.brought_answers(run) {
                answers.check_all(questions);
            }
        }
        self.on_event(run, HandlerEvent::Done(outcome))
    }

    /// Reports the progress of a running handler.
    fn progress(&self, run: RunId, progress: Progress) {
        self.on_report(run, HandlerEvent::Progress(progress));
    }

    /// Sends a log message of a running handler.
    fn log(&self, run: RunId, level: LoggingLevel, logger: Option<String>, data: Raw) {
        self.on_report(run, HandlerEvent::Log(Log { level, logger, data }));
    }

    /// Asks the client on behalf of a running handler, with params of the newest revision. [`Work::answers`] has the answer.
    fn ask(&self, run: RunId, ask: AskId, question: Question) -> Work<H> {
        // Its answer may have come with the request and be large; it is checked once.
        for answers in self.brought_answers(run) {
            answers.check(&question);
        }
        self.on_event(run, HandlerEvent::Ask { ask, question })
    }

    /// Rejects the client's answer because of this problem and asks again, under another number. [`Work::answers`] has the
    /// answer, or the error that the retry limit is reached.
    fn ask_again(&self, run: RunId, ask: AskId, question: Question, problem: String) -> Work<H> {
        self.on_event(run, HandlerEvent::AskAgain { ask, question, problem })
    }

    /// Suspends a handler until its questions are answered. `blocks`: it holds a thread while it waits.
    fn waits(&self, run: RunId, blocks: bool) -> Work<H> {
        self.on_event(run, HandlerEvent::Waits { blocks })
    }

    /// Records the result of a handler's step, which is not run again on replay.
    fn step(&self, run: RunId, key: &str, value: Raw) {
        self.on_report(run, HandlerEvent::Step { key: key.to_owned(), value });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_earlier_of_two_ticks_is_kept() {
        let now = crate::clock::now();
        let later = now + Duration::from_secs(1);
        for (first, second, kept) in [
            (Some(now), Some(later), Some(now)),
            (Some(later), Some(now), Some(now)),
            (None, Some(later), Some(later)),
            (Some(later), None, Some(later)),
            (None, None, None),
        ] {
            let mut work = Work::<()> { wake: first, ..Work::default() };
            work.extend(Work { wake: second, ..Work::default() });
            assert_eq!(work.wake, kept);
        }
    }
}
