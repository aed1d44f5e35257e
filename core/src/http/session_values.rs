//! The values of `ctx.session` in the store. They are read before a handler of the session starts, and stored before its reply is
//! sent, so that the client's next request finds them at any process.
//!
//! Servers whose handlers do not use `ctx.session` read no values: the first handler that leaves some says so in the store. A process
//! that has not found this there believes for a moment that there are no values, so the first values are stored after such a moment.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::{
    Endpoint,
    sealed_id::LIFETIME,
    stored::{self, Awaiting, StoreTicket},
};
use crate::{
    engine::{Effect, HandlerEvent, Run, RunId},
    http::EndpointOutput,
    router::{Failure, Reply},
    session::server::{SessionValues, ValueChanges},
    store::{Expect, StoreOperation, StoreReply},
};

/// The key under which is stored that handlers use `ctx.session`.
const IN_USE: &str = "session-values";
/// The number of attempts to store values that other processes change at the same time.
const MAX_ATTEMPTS: u32 = 50;
/// The time for which a handler waits for values. After that, handlers do not wait until the store has replied again, because most of
/// them need none.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time for which a process may believe that no handler uses `ctx.session`.
const BELIEF: Duration = Duration::from_millis(250);

/// The values of all sessions for which handlers run.
#[derive(Debug, Default)]
pub(super) struct StoredValues {
    in_use: InUse,
    /// The reason for which the store does not give values.
    problem: Option<Arc<str>>,
    /// The time at which an operation began that shows whether the store replies, and whether handlers use `ctx.session`.
    asked: Option<Instant>,
    runs: FxHashMap<RunId, RunValues>,
    /// The handlers that wait for values, with the time at which they wait no longer.
    waiting: VecDeque<(Instant, StoreTicket)>,
    /// Values that are stored at a later time.
    delayed: VecDeque<(Instant, Box<Storing>)>,
    /// The sessions whose values are being stored, and what is to be stored after that. The process stores one change after another, so
    /// that its handlers do not conflict with each other.
    storing: FxHashMap<String, VecDeque<Box<Storing>>>,
}

/// The knowledge whether handlers of the server, in any process, use `ctx.session`.
#[derive(Clone, Copy, Debug, Default)]
enum InUse {
    #[default]
    Unknown,
    /// None does, which may be believed until this time.
    No(Instant),
    /// Some do. From this time on no process believes the contrary.
    Yes(Instant),
}

/// The values with which a handler began and, once it has ended, what was changed.
#[derive(Debug)]
struct RunValues {
    session: Arc<str>,
    first: Arc<SessionValues>,
    left: Option<Result<ValueChanges, String>>,
}

/// The step that waits for a reply of the store.
#[derive(Debug)]
pub(super) enum ValuesStep {
    /// Finding out whether handlers use `ctx.session`.
    Ask,
    /// Reading the values for a handler that is to start.
    Read(Box<Run>),
    /// Storing that handlers use `ctx.session`.
    Announce(Box<Storing>),
    /// Storing what a handler has changed.
    Store(Box<Storing>),
    /// Reading the values again, which another process has changed at the same time.
    ReadAgain(Box<Storing>),
}

/// The changes that a handler made to values, and its outcome, which is sent once they are stored.
#[derive(Debug)]
pub(super) struct Storing {
    run: RunId,
    outcome: Result<Reply, Failure>,
    key: String,
    /// The values with which the handler began.
    first: Arc<SessionValues>,
    changes: ValueChanges,
    attempts: u32,
}

impl Endpoint {
    /// Gives handlers that are to start the values of their sessions. Where there may be any, they wait for the store.
    pub(super) fn give_session_values(&mut self, now: Instant) {
        while let Some(effect) = self.engine.next_effect() {
            match effect {
                Effect::Run(run) => self.give_values(now, run),
                effect => {
                    if let Effect::Cancel(run) = &effect {
                        self.values.runs.remove(run);
                    }
                    self.outputs.push_back(EndpointOutput::Effect(effect));
                }
            }
        }
        while let Some((end, ticket)) = self.values.waiting.front().copied() {
            if self.stored.awaits(ticket) {
                if now < end {
                    break;
                }
                if let Some(Awaiting::Values(ValuesStep::Read(run))) = self.give_up(ticket) {
                    let reason = format!("the store does not reply within {PATIENCE:?}");
                    self.start_without_values(run, reason);
                }
            }
            self.values.waiting.pop_front();
        }
        while self.values.delayed.front().is_some_and(|(end, _)| *end <= now)
            && let Some((_, storing)) = self.values.delayed.pop_front()
        {
            self.put_first(storing);
        }
    }

    /// Notes what a handler has changed in the values of its session, or why that can't be stored. It is stored when the handler's end
    /// is reported.
    pub(super) fn note_left_values(&mut self, run: RunId, left: Result<ValueChanges, String>) {
        if let Some(run) = self.values.runs.get_mut(&run) {
            run.left = Some(left);
        }
    }

    /// Stores the values that a handler left before its end is handled. Returns the event if there is nothing to store.
    pub(super) fn store_values_first(
        &mut self,
        now: Instant,
        run: RunId,
        event: HandlerEvent,
    ) -> Option<HandlerEvent> {
        if self.values.runs.is_empty() {
            return Some(event);
        }
        let HandlerEvent::Done(outcome) = event else { return Some(event) };
        let Some(RunValues { session, first, left: Some(left) }) = self.values.runs.remove(&run)
        else {
            return Some(HandlerEvent::Done(outcome));
        };
        let changes = match left {
            Ok(changes) => changes,
            Err(reason) => return Some(HandlerEvent::Done(not_stored(outcome, &reason))),
        };
        let Some(key) = key(&session).filter(|_| !changes.is_empty()) else {
            return Some(HandlerEvent::Done(outcome));
        };
        let storing = Box::new(Storing { run, outcome, key, first, changes, attempts: 0 });
        if matches!(self.values.in_use, InUse::Yes(_)) {
            self.store_when_known(now, storing);
            return None;
        }
        let announce = StoreOperation::Put {
            key: IN_USE.to_owned(),
            value: Vec::new(),
            ttl: Duration::from_secs(LIFETIME),
            expect: Expect::Any,
        };
        self.ask_store(announce, Awaiting::Values(ValuesStep::Announce(storing)));
        None
    }

    /// Handles the store's reply to a step.
    pub(super) fn handle_values(&mut self, now: Instant, step: ValuesStep, reply: StoreReply) {
        match (step, reply) {
            (ValuesStep::Ask, reply) => {
                if let (Some(asked), StoreReply::Found(found)) = (self.values.asked.take(), reply) {
                    self.values.problem = None;
                    match found {
                        Some(_) => self.note_use(now),
                        None => self.note_disuse(asked),
                    }
                }
            }
            (ValuesStep::Read(run), StoreReply::Found(found)) => {
                let values = SessionValues::from_store(found).map_err(|_| unreadable().into());
                self.start_with_values(run, values);
            }
            (ValuesStep::Read(run), reply) => self.start_without_values(run, failed(reply)),
            (ValuesStep::Announce(storing), StoreReply::Stored(_)) => {
                self.note_use(now);
                self.store_when_known(now, storing);
            }
            (ValuesStep::Store(storing), StoreReply::Stored(_)) => {
                self.put_next(&storing.key);
                self.handle_end(now, storing.run, storing.outcome);
            }
            (ValuesStep::Store(storing), StoreReply::Conflict)
                if storing.attempts < MAX_ATTEMPTS =>
            {
                let key = storing.key.clone();
                let step = ValuesStep::ReadAgain(storing);
                self.ask_store(StoreOperation::Get { key }, Awaiting::Values(step));
            }
            (ValuesStep::ReadAgain(storing), StoreReply::Found(found)) => {
                match SessionValues::from_store(found) {
                    Ok(current) => self.put_values(&current, storing),
                    Err(_) => self.end_without_values(now, *storing, &unreadable()),
                }
            }
            (ValuesStep::Announce(storing), reply) => {
                let outcome = not_stored(storing.outcome, &failed(reply));
                self.handle_end(now, storing.run, outcome);
            }
            (ValuesStep::Store(storing) | ValuesStep::ReadAgain(storing), reply) => {
                self.end_without_values(now, *storing, &failed(reply));
            }
        }
    }

    /// Removes the values of a session that its client has ended.
    pub(super) fn remove_values(&mut self, session: &str) {
        if matches!(self.values.in_use, InUse::Yes(_))
            && let Some(key) = key(session)
        {
            self.tell_store(StoreOperation::Delete { key });
        }
    }

    fn give_values(&mut self, now: Instant, run: Box<Run>) {
        let Some(key) = session(&run).and_then(|session| key(session)) else {
            return self.outputs.push_back(EndpointOutput::Effect(Effect::Run(run)));
        };
        match self.values.in_use {
            InUse::No(until) if now < until => {
                return self.start_with_values(run, Ok(SessionValues::default()));
            }
            InUse::Yes(_) if self.values.problem.is_none() => (),
            _ => self.ask_for_use(now),
        }
        if let Some(problem) = self.values.problem.clone() {
            return self.start_with_values(run, Err(problem));
        }
        let step = Awaiting::Values(ValuesStep::Read(run));
        let ticket = self.ask_store(StoreOperation::Get { key }, step);
        self.values.waiting.push_back((now + PATIENCE, ticket));
    }

    /// Finds out whether handlers of this server use `ctx.session`, and whether the store replies.
    fn ask_for_use(&mut self, now: Instant) {
        if self.values.asked.is_none() {
            self.values.asked = Some(now);
            let key = IN_USE.to_owned();
            self.ask_store(StoreOperation::Get { key }, Awaiting::Values(ValuesStep::Ask));
        }
    }

    /// Notes that handlers of the server use `ctx.session`.
    fn note_use(&mut self, now: Instant) {
        if !matches!(self.values.in_use, InUse::Yes(_)) {
            self.values.in_use = InUse::Yes(now + BELIEF);
        }
    }

    /// Notes that no handler of the server used `ctx.session` when the store was asked, at this time or later.
    fn note_disuse(&mut self, asked: Instant) {
        if !matches!(self.values.in_use, InUse::Yes(_)) {
            self.values.in_use = InUse::No(asked + BELIEF);
        }
    }

    /// Starts a handler with the values of its session, unless its call was cancelled while it waited for them.
    fn start_with_values(&mut self, mut run: Box<Run>, values: Result<SessionValues, Arc<str>>) {
        if !self.awaits(run.id) && !run.is_notification {
            return;
        }
        let values = values.map(Arc::new);
        if let (Ok(values), Some(session)) = (&values, session(&run)) {
            let (session, first) = (Arc::clone(session), Arc::clone(values));
            self.values.runs.insert(run.id, RunValues { session, first, left: None });
        }
        run.context.session_values = Some(Box::new(values));
        self.outputs.push_back(EndpointOutput::Effect(Effect::Run(run)));
    }

    /// Starts a handler although the store does not reply. Those after it do not wait, until the store has replied.
    fn start_without_values(&mut self, run: Box<Run>, reason: String) {
        let reason = Arc::from(reason);
        self.values.problem = Some(Arc::clone(&reason));
        self.start_with_values(run, Err(reason));
    }

    /// Stores the values that a handler has changed once all processes know that there are values.
    fn store_when_known(&mut self, now: Instant, storing: Box<Storing>) {
        match self.values.in_use {
            InUse::Yes(from) if now < from => self.values.delayed.push_back((from, storing)),
            _ => self.put_first(storing),
        }
    }

    /// Stores the values that a handler has changed, on top of those with which it began, once others of its session are stored.
    fn put_first(&mut self, storing: Box<Storing>) {
        if let Some(waiting) = self.values.storing.get_mut(&storing.key) {
            return waiting.push_back(storing);
        }
        self.values.storing.insert(storing.key.clone(), VecDeque::new());
        self.put_values(&Arc::clone(&storing.first), storing);
    }

    /// Goes on with what is to be stored next for a session.
    fn put_next(&mut self, key: &str) {
        let next = self.values.storing.get_mut(key).and_then(VecDeque::pop_front);
        match next {
            Some(next) => self.put_values(&Arc::clone(&next.first), next),
            None => {
                self.values.storing.remove(key);
            }
        }
    }

    /// Stores the values that a handler has changed, on top of these.
    fn put_values(&mut self, current: &SessionValues, mut storing: Box<Storing>) {
        let mut values = current.values.clone();
        values.change(&storing.changes);
        storing.attempts += 1;
        let put = StoreOperation::Put {
            key: storing.key.clone(),
            value: values.to_json().into_bytes(),
            ttl: Duration::from_secs(LIFETIME),
            expect: match current.version {
                0 => Expect::Absent,
                version => Expect::Version(version),
            },
        };
        self.ask_store(put, Awaiting::Values(ValuesStep::Store(storing)));
    }

    fn end_without_values(&mut self, now: Instant, storing: Storing, reason: &str) {
        self.put_next(&storing.key);
        self.handle_end(now, storing.run, not_stored(storing.outcome, reason));
    }

    fn handle_end(&mut self, now: Instant, run: RunId, outcome: Result<Reply, Failure>) {
        let event = HandlerEvent::Done(outcome);
        if let Some(delivery) = self.engine.handle_event(now, false, run, event) {
            self.deliver_event(now, delivery);
        }
    }
}

impl StoredValues {
    /// Returns the time at which a handler waits no longer for its values, or values are to be stored.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.front().map(|(end, _)| *end);
        let delayed = self.delayed.front().map(|(end, _)| *end);
        waiting.into_iter().chain(delayed).min()
    }
}

/// Returns the id of the session whose values a handler may use.
fn session(run: &Run) -> Option<&Arc<str>> {
    run.context.http.as_ref()?.session_id.as_ref()
}

fn key(session: &str) -> Option<String> {
    stored::name("values", session)
}

/// Returns the failure of a handler whose values are not stored; one that it had already stays.
fn not_stored(outcome: Result<Reply, Failure>, reason: &str) -> Result<Reply, Failure> {
    outcome.and(Err(Failure::Exception {
        kind: "SessionNotStored".into(),
        message: format!(
            "the handler has ended, but its values of ctx.session may not be stored: {reason}"
        ),
        traceback: String::new(),
    }))
}

fn failed(reply: StoreReply) -> String {
    match reply {
        StoreReply::Failed(reason) => format!("the store failed: {reason}"),
        StoreReply::Conflict => "other processes change them all the time".into(),
        _ => unreadable(),
    }
}

fn unreadable() -> String {
    "the store has something else in their place".into()
}
