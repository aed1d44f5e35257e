//! Work for JavaScript: written as JSON by the threads that find it, taken and parsed once per batch.
//!
//! An entry is an array that begins with its [`Kind`]; `call/batch.ts` describes the members that follow.

use std::{collections::VecDeque, sync::Arc};

use gudgeon::{
    bindings::{
        upstreams::Upstreams,
        waiting::{AskedTogether, Waiting},
    },
    driver::Work,
    engine::{AnsweredRequest, Effect, HostRequest, Run, RunId, SpanDescription, Ticket},
    error::Fault,
    log_events::LogEvent,
    protocol::{
        Id, Question,
        json::{self, ObjectWriter},
    },
    router::{Failure, Handler, visibility_question},
    server::native_subject,
    session::server::CallContext,
};
use rustc_hash::FxHashMap;

use crate::{
    big_integers::marked,
    handler::{VisibilityFilter, index},
    large_text::LargeText,
    large_texts::LargeTexts,
    spans,
};

/// The target size of a batch; the last entry may exceed it.
const BATCH: usize = 1024 * 1024;
/// The number of batches that may be taken before a run with large strings that came earlier.
const MAX_OVERTAKING: usize = 16;
/// The largest integer that JavaScript represents exactly.
const SAFE_DIGITS: usize = 15;

/// The first member of an entry, the same numbers as in `call/batch.ts`.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Run = 0,
    Answer = 1,
    Resume = 2,
    Cancel = 3,
    Report = 4,
    Span = 5,
    End = 6,
}

/// Slots from this one on are requests of the core to its host, by their tickets. JavaScript represents them exactly, and
/// runs are never so many.
const HOST_SLOTS: u64 = 1 << 52;

/// The function that runs in a slot: a handler, or one that answers a request of the core.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    Run(RunId),
    Host(Ticket),
}

/// A handler that runs, or whose entry waits.
#[derive(Debug)]
struct Call {
    context: CallContext,
    /// The handler around which the middleware runs, if that is a native one.
    native: Option<Handler>,
    /// The place of the entry that starts it; `None` if that has a batch of its own.
    start: Option<EntryPosition>,
    /// The URI of the resource that is read, if the program traces.
    uri: Option<String>,
}

/// The place of an entry.
#[derive(Debug, Clone, Copy)]
struct EntryPosition {
    /// The number of its batch, counted from the first that was ever made.
    batch: u64,
    /// The place of its [`Kind`] in the batch, in bytes.
    kind: usize,
}

/// The queued batches, and the data of each running handler.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    /// Batches in the order in which they came.
    waiting: VecDeque<String>,
    /// The number of the first of them.
    first: u64,
    /// Runs with large strings, each a batch of its own, with its slot. The event loop is busy with one for long. Used only
    /// with `later_first`.
    large_runs: VecDeque<(u64, String)>,
    /// True if batches that come later may be taken before a run with large strings.
    later_first: bool,
    /// The number of batches that were taken before the first of `large_runs` although they came later.
    overtaken_by: usize,
    /// The handler that answers which components a caller sees.
    visibility_filter: VisibilityFilter,
    /// They know the middleware around native handlers.
    upstreams: Option<Arc<Upstreams>>,
    calls: FxHashMap<u64, Call>,
    /// The large strings of inputs that JavaScript has not taken, by slot.
    large_texts: FxHashMap<u64, LargeTexts>,
    /// The handlers that wait for answers, by the numbers of their questions.
    waiting_handlers: Waiting<u64>,
}

impl Batches {
    pub(crate) fn new(visibility_filter: VisibilityFilter, later_first: bool) -> Self {
        Self { later_first, visibility_filter, ..Self::default() }
    }

    /// Runs middleware around the native handlers of these servers.
    pub(crate) fn with_upstreams(self, upstreams: Arc<Upstreams>) -> Self {
        Self { upstreams: Some(upstreams), ..self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.large_runs.is_empty()
    }

    /// Keeps the large strings of inputs, whose runs are pushed next.
    pub(crate) fn keep(&mut self, large_texts: Vec<(RunId, LargeTexts)>) {
        self.large_texts.extend(large_texts.into_iter().map(|(run, texts)| (run.0, texts)));
    }

    pub(crate) fn push(&mut self, work: Work) {
        for effect in work {
            match effect {
                Effect::Run(run) => self.push_run(*run),
                Effect::Resume { run, context } => self.push_resume(run, *context),
                Effect::Answered { run, ask, outcome } => {
                    if let Some(number) = self.waiting_handlers.settle(run, ask, *outcome) {
                        let entry = self.entry(Kind::Answer);
                        push_number(entry, run.0);
                        push_number(entry, number);
                        self.close();
                    }
                }
                Effect::Host(ticket, request) => self.push_host_request(ticket, *request),
                Effect::Cancel(run) => self.cancel(run.0),
                Effect::CancelHost(ticket) => self.cancel(HOST_SLOTS + ticket.0),
                // The native host looks after resources of other servers.
                Effect::Subscribed { .. } => (),
                Effect::Span(request) => self.push_span(&request),
                Effect::Log(event) => self.push_report(&event),
            }
        }
    }

    /// Adds the end, which comes last.
    pub(crate) fn push_end(&mut self) {
        for (slot, batch) in std::mem::take(&mut self.large_runs) {
            self.waiting.push_back(batch);
            let start = self.place_in_last_batch(0);
            if let Some(call) = self.calls.get_mut(&slot) {
                call.start = Some(start);
            }
        }
        self.entry(Kind::End);
        self.close();
    }

    /// Takes the next batch, a JSON array.
    pub(crate) fn take(&mut self) -> Option<String> {
        let has_large_run = !self.large_runs.is_empty();
        let is_next = self.waiting.is_empty() || self.overtaken_by == MAX_OVERTAKING;
        let mut batch = if has_large_run && is_next {
            self.overtaken_by = 0;
            self.large_runs.pop_front()?.1
        } else {
            self.overtaken_by = if has_large_run { self.overtaken_by + 1 } else { 0 };
            let batch = self.waiting.pop_front()?;
            self.first += 1;
            batch
        };
        batch.push(']');
        Some(batch)
    }

    /// Takes a large string of an input: the one with this index among the names in the entry of its run.
    pub(crate) fn take_text(&mut self, slot: u64, index: usize) -> Option<LargeText> {
        let texts = self.large_texts.get_mut(&slot)?;
        let text = texts.take(index);
        if texts.bytes() == 0 {
            self.large_texts.remove(&slot);
        }
        text
    }

    /// Returns the bytes that JavaScript has not taken.
    pub(crate) fn queued_bytes(&self) -> usize {
        let large = self.large_runs.iter().map(|(_, batch)| batch.len());
        let batches: usize = self.waiting.iter().map(String::len).chain(large).sum();
        batches + self.large_texts.values().map(LargeTexts::bytes).sum::<usize>()
    }

    pub(crate) fn context(&self, slot: u64) -> Option<&CallContext> {
        self.calls.get(&slot).map(|call| &call.context)
    }

    /// Returns the span of the call for this method, of the tool or prompt `name`.
    pub(crate) fn span(
        &self,
        slot: u64,
        method: &str,
        name: Option<&str>,
    ) -> Option<SpanDescription> {
        let call = self.calls.get(&slot)?;
        Some(SpanDescription::new(method, name, call.uri.as_deref(), &call.context))
    }

    /// Returns the native handler that the middleware in this slot runs around.
    pub(crate) fn native_handler(&self, slot: u64) -> Option<&Handler> {
        self.calls.get(&slot)?.native.as_ref()
    }

    /// Begins to ask questions of a handler; `None` if it has ended.
    pub(crate) fn ask(
        &mut self,
        slot: u64,
        questions: Vec<Question>,
    ) -> Option<Arc<AskedTogether>> {
        let call = self.calls.get(&slot)?;
        Some(self.waiting_handlers.ask(RunId(slot), questions, &call.context))
    }

    /// Registers a handler that waits for answers. Returns `false` if it has ended.
    pub(crate) fn wait(&mut self, asked: &Arc<AskedTogether>) -> bool {
        let is_running = self.calls.contains_key(&asked.run().0);
        if is_running {
            self.waiting_handlers.wait(asked, asked.number());
        }
        is_running
    }

    /// Removes a handler that has ended. Returns what it ran for unless that was cancelled.
    pub(crate) fn finish(&mut self, slot: u64) -> Option<Origin> {
        drop(self.waiting_handlers.forget(RunId(slot)));
        self.large_texts.remove(&slot);
        self.calls.remove(&slot).map(|_| match slot.checked_sub(HOST_SLOTS) {
            None => Origin::Run(RunId(slot)),
            Some(ticket) => Origin::Host(Ticket(ticket)),
        })
    }

    /// Returns the number of running handlers.
    pub(crate) fn running(&self) -> usize {
        self.calls.len()
    }

    fn push_run(&mut self, run: Run) {
        let Run { id, handler, input, context, subject, .. } = run;
        match index(&handler) {
            Some(handler) => self.push_start(id.0, handler, None, &input, context),
            None => {
                if let Some(around) = self.around(&handler) {
                    self.push_start(id.0, around, Some(handler), &input, context);
                }
            }
        }
        if let Some(subject) = subject
            && let Some(call) = self.calls.get_mut(&id.0)
        {
            call.uri = subject.uri;
        }
    }

    /// Returns the index of the handler that runs middleware around a native one.
    fn around(&self, handler: &Handler) -> Option<u32> {
        index(&self.upstreams.as_ref()?.around(native_subject(handler)?)?)
    }

    fn push_host_request(&mut self, ticket: Ticket, request: HostRequest) {
        let (handler, input, context) = match request {
            HostRequest::FilterVisible { context, components } => (
                self.visibility_filter.get().and_then(index),
                visibility_question(context.principal.as_deref(), &components),
                context,
            ),
        };
        // Without a filter nothing is answered: the components stay hidden, once the time limit of the request has come.
        if let Some(handler) = handler {
            self.push_start(HOST_SLOTS + ticket.0, handler, None, &input, context);
        }
    }

    fn push_start(
        &mut self,
        slot: u64,
        handler: u32,
        native: Option<Handler>,
        input: &str,
        context: CallContext,
    ) {
        let names = self.large_texts.get(&slot).map(LargeTexts::names);
        let start = if self.later_first && names.is_some() {
            let mut batch = String::with_capacity(input.len() + 256);
            write_start(&mut batch, slot, handler, input, &context, names.as_deref());
            self.large_runs.push_back((slot, batch));
            None
        } else {
            let batch = self.last_batch();
            let written = batch.len();
            write_start(batch, slot, handler, input, &context, names.as_deref());
            Some(self.place_in_last_batch(written))
        };
        self.calls.insert(slot, Call { context, native, start, uri: None });
    }

    fn cancel(&mut self, slot: u64) {
        let Some(call) = self.calls.remove(&slot) else { return };
        drop(self.waiting_handlers.forget(RunId(slot)));
        self.large_texts.remove(&slot);
        if !self.take_back(slot, call.start) {
            push_number(self.entry(Kind::Cancel), slot);
            self.close();
        }
    }

    /// Takes back the entry that starts a handler. Returns `false` if JavaScript has it already.
    fn take_back(&mut self, slot: u64, start: Option<EntryPosition>) -> bool {
        if let Some(at) = self.large_runs.iter().position(|(waiting, _)| *waiting == slot) {
            self.large_runs.remove(at);
            return true;
        }
        let Some(EntryPosition { batch, kind }) = start else { return false };
        let waiting = batch.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        let Some(batch) = waiting.and_then(|at| self.waiting.get_mut(at)) else { return false };
        // It cancels the call now. What follows the slot is not read then.
        batch.replace_range(kind..=kind, &(Kind::Cancel as u8).to_string());
        true
    }

    /// Returns the place of an entry that begins after so many bytes of the last batch.
    fn place_in_last_batch(&self, bytes: usize) -> EntryPosition {
        // An entry follows a bracket or a comma, and begins with a bracket.
        EntryPosition { batch: self.first + self.waiting.len() as u64 - 1, kind: bytes + 2 }
    }

    fn push_resume(&mut self, call: RunId, context: CallContext) {
        let Some(known) = self.calls.get_mut(&call.0) else { return };
        known.context.clone_from(&context);
        let entry = self.entry(Kind::Resume);
        push_number(entry, call.0);
        push_request(entry, &context);
        self.close();
    }

    fn push_report(&mut self, event: &LogEvent) {
        let entry = self.entry(Kind::Report);
        entry.push(',');
        json::push_string(entry, event.detail());
        entry.push(',');
        json::push(entry, &event.fields());
        self.close();
    }

    fn push_span(&mut self, request: &AnsweredRequest) {
        let entry = self.entry(Kind::Span);
        entry.push(',');
        entry.push_str(&spans::as_json(&request.span()));
        entry.push(',');
        json::push(entry, &request.error.as_ref().map(|error| &*error.message));
        entry.push(',');
        json::push(entry, &(request.duration.as_secs_f64() * 1000.0));
        self.close();
    }

    /// Begins an entry in the last batch.
    fn entry(&mut self, kind: Kind) -> &mut String {
        let batch = self.last_batch();
        begin(batch, kind);
        batch
    }

    /// Returns the last batch, or a new one if that is full.
    fn last_batch(&mut self) -> &mut String {
        if self.waiting.back().is_none_or(|batch| batch.len() > BATCH) {
            self.waiting.push_back(String::with_capacity(1024));
        }
        let last = self.waiting.len() - 1;
        &mut self.waiting[last]
    }

    fn close(&mut self) {
        if let Some(batch) = self.waiting.back_mut() {
            batch.push(']');
        }
    }
}

/// Begins an entry in a batch.
fn begin(batch: &mut String, kind: Kind) {
    batch.push(if batch.is_empty() { '[' } else { ',' });
    batch.push('[');
    batch.push(char::from(b'0' + kind as u8));
}

/// Writes the entry of a handler that starts. `names` are those of its large strings, as JSON.
fn write_start(
    batch: &mut String,
    slot: u64,
    handler: u32,
    input: &str,
    context: &CallContext,
    names: Option<&str>,
) {
    begin(batch, Kind::Run);
    push_number(batch, slot);
    batch.push(',');
    batch.push_str(&handler.to_string());
    batch.push(',');
    batch.push_str(&marked(input));
    push_request(batch, context);
    if let Some(names) = names {
        batch.push(',');
        batch.push_str(names);
    }
    batch.push(']');
}

fn push_number(entry: &mut String, number: u64) {
    entry.push(',');
    entry.push_str(&number.to_string());
}

/// Writes the revision and the id of a request.
fn push_request(entry: &mut String, context: &CallContext) {
    entry.push_str(",\"");
    entry.push_str(context.spoken());
    entry.push_str("\",");
    push_id(entry, context.request_id.as_ref());
}

/// Writes the reason why a question has no answer.
pub(crate) fn refusal(fault: Fault) -> String {
    let mut refusal = ObjectWriter::with_capacity(96);
    let data = match Failure::from(fault) {
        Failure::MissingCapability { message, data } => {
            refusal.raw("kind", r#""missingCapability""#).member("message", &message);
            data
        }
        Failure::NotSupported(message) => {
            refusal.raw("kind", r#""notSupported""#).member("message", &message);
            None
        }
        Failure::Declined(question) => {
            refusal.raw("kind", r#""declined""#).member("message", &question);
            None
        }
        Failure::Protocol { code, message, data } => {
            refusal.raw("kind", r#""protocol""#).member("code", &code).member("message", &message);
            data
        }
        _ => {
            refusal.raw("kind", r#""cancelled""#);
            None
        }
    };
    if let Some(data) = data {
        refusal.raw("data", data.get());
    }
    refusal.finish()
}

/// Writes an id; integers that JavaScript can't represent become strings.
fn push_id(entry: &mut String, id: Option<&Id>) {
    match id.map(Id::as_json) {
        None => entry.push_str("null"),
        Some(text) if text.starts_with('"') || text.len() <= SAFE_DIGITS => entry.push_str(text),
        Some(number) => json::push_string(entry, number),
    }
}

#[cfg(test)]
mod tests;
