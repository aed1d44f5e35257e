//! Work for JavaScript: written as JSON by the threads that find it, taken and parsed once per batch.
//!
//! An entry is an array that begins with its [`Kind`]; `call/batch.ts` describes the members that follow.

use std::{collections::VecDeque, sync::Arc};

use gudgeon::{
    bindings::waiting::{AskedTogether, Waiting},
    driver::Work,
    engine::{HostRequest, Run, RunId, Ticket},
    error::Fault,
    protocol::{
        Id, Question,
        json::{self, ObjectWriter},
    },
    router::Failure,
    session::server::CallContext,
};
use rustc_hash::FxHashMap;

use crate::handler::{Handler, VisibilityFilter};

/// The target size of a batch; the last entry may exceed it.
const BATCH: usize = 1024 * 1024;
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
    Detail = 5,
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

/// The queued batches, and the data of each running handler.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    waiting: VecDeque<String>,
    /// The handler that answers which components a caller sees.
    visibility_filter: VisibilityFilter,
    calls: FxHashMap<u64, CallContext>,
    /// The handlers that wait for answers, by the numbers of their questions.
    waiting_handlers: Waiting<u64>,
}

impl Batches {
    pub(crate) fn new(visibility_filter: VisibilityFilter) -> Self {
        Self { visibility_filter, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn push(&mut self, work: Work<Handler>) {
        for (call, context) in work.resumes {
            self.push_resume(call, context);
        }
        for (call, ask, outcome) in work.answers {
            if let Some(number) = self.waiting_handlers.settle(call, ask, outcome) {
                let entry = self.entry(Kind::Answer);
                push_number(entry, call.0);
                push_number(entry, number);
                self.close();
            }
        }
        for run in work.runs {
            self.push_run(run);
        }
        for (ticket, request) in work.host_requests {
            self.push_host_request(ticket, request);
        }
        for call in work.cancels {
            self.cancel(call.0);
        }
        for ticket in work.host_cancels {
            self.cancel(HOST_SLOTS + ticket.0);
        }
        for report in work.reports {
            self.push_text(Kind::Report, &report);
        }
        for detail in work.details {
            self.push_text(Kind::Detail, &detail);
        }
    }

    pub(crate) fn push_end(&mut self) {
        self.entry(Kind::End);
        self.close();
    }

    /// The next batch as a JSON array.
    pub(crate) fn take(&mut self) -> Option<String> {
        let mut batch = self.waiting.pop_front()?;
        batch.push(']');
        Some(batch)
    }

    /// Returns the bytes of the queued batches.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.waiting.iter().map(String::len).sum()
    }

    pub(crate) fn context(&self, slot: u64) -> Option<&CallContext> {
        self.calls.get(&slot)
    }

    /// Begins to ask questions of a handler; `None` if it has ended.
    pub(crate) fn ask(
        &mut self,
        slot: u64,
        questions: Vec<Question>,
    ) -> Option<Arc<AskedTogether>> {
        let context = self.calls.get(&slot)?;
        Some(self.waiting_handlers.ask(RunId(slot), questions, context))
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
        self.calls.remove(&slot).map(|_| match slot.checked_sub(HOST_SLOTS) {
            None => Origin::Run(RunId(slot)),
            Some(ticket) => Origin::Host(Ticket(ticket)),
        })
    }

    /// Returns the number of running handlers.
    pub(crate) fn running(&self) -> usize {
        self.calls.len()
    }

    fn push_run(&mut self, run: Run<Handler>) {
        self.push_start(run.id.0, run.handler.id, &run.input, run.context);
    }

    fn push_host_request(&mut self, ticket: Ticket, request: HostRequest) {
        let (handler, input, context) = match request {
            HostRequest::FilterVisible { context, components } => (
                self.visibility_filter.get().map(|it| it.id),
                components.question(context.principal.as_deref()),
                context,
            ),
        };
        // Without a filter nothing is answered: the components stay hidden, once the time limit of the request has come.
        if let Some(handler) = handler {
            self.push_start(HOST_SLOTS + ticket.0, handler, &input, context);
        }
    }

    fn push_start(&mut self, slot: u64, handler: u32, input: &str, context: CallContext) {
        let entry = self.entry(Kind::Run);
        push_number(entry, slot);
        entry.push(',');
        entry.push_str(&handler.to_string());
        entry.push(',');
        entry.push_str(input);
        push_request(entry, &context);
        self.close();
        self.calls.insert(slot, context);
    }

    fn cancel(&mut self, slot: u64) {
        if self.calls.remove(&slot).is_some() {
            drop(self.waiting_handlers.forget(RunId(slot)));
            push_number(self.entry(Kind::Cancel), slot);
            self.close();
        }
    }

    fn push_resume(&mut self, call: RunId, context: CallContext) {
        let Some(known) = self.calls.get_mut(&call.0) else { return };
        known.clone_from(&context);
        let entry = self.entry(Kind::Resume);
        push_number(entry, call.0);
        push_request(entry, &context);
        self.close();
    }

    fn push_text(&mut self, kind: Kind, text: &str) {
        let entry = self.entry(kind);
        entry.push(',');
        json::push_string(entry, text);
        self.close();
    }

    /// Begins an entry in the last batch, or in a new one if that is full.
    fn entry(&mut self, kind: Kind) -> &mut String {
        if self.waiting.back().is_none_or(|it| it.len() > BATCH) {
            self.waiting.push_back(String::with_capacity(1024));
        }
        let last = self.waiting.len() - 1;
        let batch = &mut self.waiting[last];
        batch.push(if batch.is_empty() { '[' } else { ',' });
        batch.push('[');
        batch.push(char::from(b'0' + kind as u8));
        batch
    }

    fn close(&mut self) {
        if let Some(batch) = self.waiting.back_mut() {
            batch.push(']');
        }
    }
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
mod tests {
    use gudgeon::{
        error::FaultKind,
        protocol::{Method, Request, Revision},
        router::{Components, List, ServerFacts},
        session::{
            asking::{Answers, AskId},
            server::ClientIdentity,
        },
    };

    use super::*;
    use crate::handler::Dropped;

    fn run(call: u64, id: &str) -> Run<Handler> {
        Run {
            handler: Dropped::default().handler(7),
            input: r#"{"a":1}"#.into(),
            id: RunId(call),
            context: context(id),
            is_notification: false,
            middleware_frame: None,
        }
    }

    fn context(id: &str) -> CallContext {
        CallContext {
            request_id: Id::parse(id),
            revision: Revision::LATEST,
            dialect: None,
            meta: None,
            client: Arc::new(ClientIdentity::default()),
            weight: 0,
            wants_progress: false,
            answers: Answers::default(),
            principal: None,
            remote: None,
            checks_headers: false,
            http: None,
        }
    }

    fn work(runs: Vec<Run<Handler>>) -> Work<Handler> {
        Work { runs, ..Work::default() }
    }

    /// Sends questions of the first run.
    fn waits(batches: &mut Batches, keys: &[&str]) -> Arc<AskedTogether> {
        let question = |key: &&str| Question {
            key: (*key).into(),
            method: Method::ListRoots,
            params: json::raw("{}".into()),
        };
        let capabilities = Some(json::raw(r#"{"roots":{}}"#.into()));
        let client = ClientIdentity { capabilities, ..ClientIdentity::default() };
        batches.calls.get_mut(&0).unwrap().client = Arc::new(client);
        let asked = batches.ask(0, keys.iter().map(question).collect()).unwrap();
        assert_eq!(asked.set().send().len(), keys.len());
        assert!(batches.wait(&asked));
        asked
    }

    #[test]
    fn a_batch_is_one_json_array_in_order() {
        let mut batches = Batches::default();
        batches.push(work(vec![run(0, "5"), run(1, "12345678901234567890"), run(2, "\"x\"")]));
        batches.push(Work {
            cancels: vec![RunId(1)],
            reports: vec!["a\"b".into()],
            details: vec!["c".into()],
            ..Work::default()
        });
        batches.push_end();
        assert_eq!(
            batches.take().unwrap(),
            concat!(
                r#"[[0,0,7,{"a":1},"2026-07-28",5],[0,1,7,{"a":1},"2026-07-28","12345678901234567890"],"#,
                r#"[0,2,7,{"a":1},"2026-07-28","x"],[3,1],[4,"a\"b"],[5,"c"],[6]]"#,
            )
        );
        assert!(batches.take().is_none());
        assert_eq!(batches.running(), 2);
    }

    #[test]
    fn a_handler_resumes_once_all_its_questions_are_answered() {
        let mut batches = Batches::default();
        batches.push(work(vec![run(0, "5")]));
        assert!(batches.ask(9, Vec::new()).is_none());
        let asked = waits(&mut batches, &["a", "b"]);
        let answer = |call, ask, outcome| (RunId(call), AskId(ask), outcome);
        let answers = vec![
            answer(0, 0, Ok(json::raw(r#"{"roots":[]}"#.into()))),
            answer(9, 0, Ok(json::raw("{}".into()))),
        ];
        batches.push(Work { answers, ..Work::default() });
        assert_eq!(batches.take().unwrap(), r#"[[0,0,7,{"a":1},"2026-07-28",5]]"#);
        let answers = vec![answer(0, 1, Err(Fault::new(FaultKind::Handler, "not here")))];
        batches.push(Work { answers, ..Work::default() });
        assert_eq!(batches.take().unwrap(), "[[1,0,0]]");
        let outcomes = asked.set().take();
        let fault = outcomes[1].1.clone().unwrap_err();
        assert_eq!(refusal(fault), r#"{"kind":"notSupported","message":"not here"}"#);
    }

    #[test]
    fn a_handler_resumes_for_another_request_before_its_answers_arrive() {
        let mut batches = Batches::default();
        batches.push(work(vec![run(0, "5")]));
        waits(&mut batches, &["a"]);
        batches.push(Work {
            resumes: vec![(RunId(0), context("6")), (RunId(9), context("7"))],
            answers: vec![(RunId(0), AskId(0), Ok(json::raw("{}".into())))],
            ..Work::default()
        });
        assert_eq!(
            batches.take().unwrap(),
            r#"[[0,0,7,{"a":1},"2026-07-28",5],[2,0,"2026-07-28",6],[1,0,0]]"#
        );
        assert_eq!(batches.context(0).unwrap().request_id, Id::parse("6"));
        assert_eq!(batches.finish(0), Some(Origin::Run(RunId(0))));
        assert_eq!(batches.running(), 0);
    }

    #[test]
    fn a_cancelled_call_is_not_finished_again() {
        let mut batches = Batches::default();
        batches.push(work(vec![run(0, "5")]));
        assert_eq!(batches.finish(0), Some(Origin::Run(RunId(0))));
        assert_eq!(batches.finish(0), None);
        batches.push(Work { cancels: vec![RunId(0)], ..Work::default() });
        assert_eq!(batches.take().unwrap(), r#"[[0,0,7,{"a":1},"2026-07-28",5]]"#);
    }

    #[test]
    fn a_request_to_the_host_has_a_slot_of_its_own() {
        let dropped = Dropped::default();
        let batches = || {
            let filter = VisibilityFilter::default();
            filter.set(dropped.handler(3)).expect("the first filter");
            Batches::new(filter)
        };
        let mut components: Components<Handler> = Components::new(
            ServerFacts::declared(br#"{"name":"t","version":""}"#).expect("a declaration"),
        );
        let tool = br#"{"name":"a","inputSchema":{"type":"object"},"guarded":true}"#;
        components.declare(List::Tools, tool, dropped.handler(4)).expect("a tool");
        let asked = || {
            let list = Request::ListTools { cursor: None };
            let components = components.unresolved(&list).expect("a component with a predicate");
            let request = HostRequest::FilterVisible { context: context("5"), components };
            Work { host_requests: vec![(Ticket(1), request)], ..Work::default() }
        };
        let slot = HOST_SLOTS + 1;
        let mut answered = batches();
        answered.push(asked());
        let entry = format!(
            r#"[0,{slot},3,{{"principal":null,"components":[["tool","a"]]}},"2026-07-28",5]"#
        );
        assert_eq!(answered.take().unwrap(), format!("[{entry}]"));
        assert_eq!(answered.finish(slot), Some(Origin::Host(Ticket(1))));
        assert_eq!(answered.finish(slot), None);
        let mut cancelled = batches();
        cancelled.push(asked());
        cancelled.push(Work { host_cancels: vec![Ticket(1)], ..Work::default() });
        assert_eq!(cancelled.take().unwrap(), format!("[{entry},[3,{slot}]]"));
        assert_eq!(cancelled.finish(slot), None);
    }

    #[test]
    fn large_inputs_have_batches_of_their_own() {
        let mut batches = Batches::default();
        for call in 0..3 {
            let input = format!("{{\"a\":\"{}\"}}", "x".repeat(BATCH));
            batches.push(work(vec![Run { input, ..run(call, "5") }]));
        }
        let sizes: Vec<_> =
            std::iter::from_fn(|| batches.take()).map(|it| it.len() / BATCH).collect();
        assert_eq!(sizes, [1, 1, 1]);
    }
}
