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

fn run(call: u64, id: &str) -> Run {
    Run {
        handler: Dropped::default().handler(7),
        input: r#"{"a":1}"#.into(),
        id: RunId(call),
        context: context(id),
        is_notification: false,
        middleware_frame: None,
        subject: None,
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
        cause: None,
        session_values: None,
    }
}

fn work(runs: Vec<Run>) -> Work {
    runs.into_iter().map(|run| Effect::Run(Box::new(run))).collect()
}

fn one(effect: Effect) -> Work {
    [effect].into_iter().collect()
}

/// Sends questions of the first run.
fn waits(batches: &mut Batches, keys: &[&str]) -> Arc<AskedTogether> {
    let question = |key: &&str| Question {
        key: (*key).into(),
        method: Method::ListRoots,
        params: json::raw("{}".into()),
    };
    let capabilities = Some(json::raw(r#"{"roots":{}}"#.into()));
    let client = ClientIdentity::new(None, capabilities);
    batches.calls.get_mut(&0).unwrap().context.client = Arc::new(client);
    let asked = batches.ask(0, keys.iter().map(question).collect()).unwrap();
    assert_eq!(asked.set().send().len(), keys.len());
    assert!(batches.wait(&asked));
    asked
}

#[test]
fn a_batch_is_one_json_array_in_order() {
    let mut batches = Batches::default();
    batches.push(work(vec![run(0, "5"), run(1, "12345678901234567890"), run(2, "\"x\"")]));
    let rest = [Effect::Cancel(RunId(1)), Effect::Log(Box::new(LogEvent::problem("a\"b")))];
    batches.push(rest.into_iter().collect());
    batches.push_end();
    assert_eq!(
        batches.take().unwrap(),
        concat!(
            r#"[[0,0,7,{"a":1},"2026-07-28",5],[3,1,7,{"a":1},"2026-07-28","12345678901234567890"],"#,
            r#"[0,2,7,{"a":1},"2026-07-28","x"],[4,"a\"b",{"event":"server.problem"}],[6]]"#,
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
    let answer = |call, ask, outcome| Effect::Answered {
        run: RunId(call),
        ask: AskId(ask),
        outcome: Box::new(outcome),
    };
    batches.push(one(answer(0, 0, Ok(json::raw(r#"{"roots":[]}"#.into())))));
    batches.push(one(answer(9, 0, Ok(json::raw("{}".into())))));
    assert_eq!(batches.take().unwrap(), r#"[[0,0,7,{"a":1},"2026-07-28",5]]"#);
    batches.push(one(answer(0, 1, Err(Fault::new(FaultKind::Handler, "not here")))));
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
    let outcome = Box::new(Ok(json::raw("{}".into())));
    let effects = [
        Effect::Resume { run: RunId(0), context: Box::new(context("6")) },
        Effect::Resume { run: RunId(9), context: Box::new(context("7")) },
        Effect::Answered { run: RunId(0), ask: AskId(0), outcome },
    ];
    batches.push(effects.into_iter().collect());
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
    batches.push(one(Effect::Cancel(RunId(0))));
    assert_eq!(batches.take().unwrap(), r#"[[0,0,7,{"a":1},"2026-07-28",5]]"#);
}

#[test]
fn a_call_that_is_cancelled_before_javascript_has_it_does_not_begin() {
    for has_ended in [false, true] {
        let mut batches = Batches::new(VisibilityFilter::default(), true);
        batches.push(work(vec![run(0, "5")]));
        batches.take();
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(BATCH));
        let runs = [(1, "{}"), (2, &*large), (3, "{}"), (4, "{}")];
        let started = |(call, input): (u64, &str)| Run { input: input.into(), ..run(call, "5") };
        batches.push(work(runs.map(started).into()));
        push_large(&mut batches, 5);
        if has_ended {
            batches.push_end();
        }
        let cancels = [0, 1, 3, 5].map(|call| Effect::Cancel(RunId(call)));
        batches.push(cancels.into_iter().collect());
        let mut entries: Vec<(u8, Option<u64>)> = Vec::new();
        while let Some(batch) = batches.take() {
            let read: Vec<Vec<serde_json::Value>> = serde_json::from_str(&batch).expect("entries");
            entries.extend(read.iter().map(|entry| {
                let kind = entry[0].as_u64().expect("a kind").try_into().expect("a small number");
                (kind, entry.get(1).and_then(serde_json::Value::as_u64))
            }));
        }
        let begun = entries.iter().filter(|(kind, _)| *kind == Kind::Run as u8);
        let begun: Vec<_> = begun.filter_map(|(_, slot)| *slot).collect();
        assert_eq!(begun, [2, 4], "{has_ended}");
        let told = (Kind::Cancel as u8, Some(0));
        assert!(entries.contains(&told), "its handler runs: {entries:?}");
    }
}

#[test]
fn a_request_to_the_host_has_a_slot_of_its_own() {
    let dropped = Dropped::default();
    let batches = || {
        let filter = VisibilityFilter::default();
        filter.set(dropped.handler(3)).expect("the first filter");
        Batches::new(filter, true)
    };
    let mut components: Components = Components::new(
        ServerFacts::declared(br#"{"name":"t","version":""}"#).expect("a declaration"),
    );
    let tool = br#"{"name":"a","inputSchema":{"type":"object"},"guarded":true}"#;
    components.declare(List::Tools, tool, dropped.handler(4)).expect("a tool");
    let asked = || {
        let list = Request::ListTools { cursor: None };
        let components = components.unresolved(&list).expect("a component with a predicate");
        let request = HostRequest::FilterVisible { context: context("5"), components };
        one(Effect::Host(Ticket(1), Box::new(request)))
    };
    let slot = HOST_SLOTS + 1;
    let mut answered = batches();
    answered.push(asked());
    let entry =
        format!(r#"[0,{slot},3,{{"principal":null,"components":[["tool","a"]]}},"2026-07-28",5]"#);
    assert_eq!(answered.take().unwrap(), format!("[{entry}]"));
    assert_eq!(answered.finish(slot), Some(Origin::Host(Ticket(1))));
    assert_eq!(answered.finish(slot), None);
    let mut cancelled = batches();
    cancelled.push(asked());
    cancelled.push(one(Effect::CancelHost(Ticket(1))));
    let entry = entry.replacen("[0", "[3", 1);
    assert_eq!(cancelled.take().unwrap(), format!("[{entry}]"), "it does not begin");
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
        std::iter::from_fn(|| batches.take()).map(|batch| batch.len() / BATCH).collect();
    assert_eq!(sizes, [1, 1, 1]);
}

/// Pushes a run with a large string, which is returned.
fn push_large(batches: &mut Batches, call: u64) -> String {
    let text = "x".repeat(BATCH);
    let input = format!(r#"{{"b":1,"a":"{text}"}}"#);
    let mut started = Run { input, ..run(call, "5") };
    let texts = LargeTexts::take_out_of(&mut started.input).expect("a large string");
    batches.keep(vec![(started.id, texts)]);
    batches.push(work(vec![started]));
    text
}

/// Takes a batch; returns the slot of its first entry.
fn first_slot(batches: &mut Batches) -> Option<u64> {
    let entries: Vec<Vec<serde_json::Value>> = serde_json::from_str(&batches.take()?).ok()?;
    entries.first()?.get(1)?.as_u64()
}

#[test]
fn runs_with_large_strings_are_overtaken_where_there_are_several_clients() {
    for overtakes in [false, true] {
        let mut batches = Batches::new(VisibilityFilter::default(), overtakes);
        push_large(&mut batches, 0);
        batches.take();
        push_large(&mut batches, 1);
        batches.push(work(vec![run(2, "5")]));
        assert_eq!(first_slot(&mut batches), Some(if overtakes { 2 } else { 1 }));
        assert_eq!(batches.is_empty(), !overtakes);
    }
}

#[test]
fn a_run_with_large_strings_waits_for_a_bounded_number_of_batches() {
    let mut batches = Batches::new(VisibilityFilter::default(), true);
    push_large(&mut batches, 0);
    push_large(&mut batches, 1);
    let mut slots = Vec::new();
    for call in 2..50 {
        batches.push(work(vec![run(call, "5")]));
        slots.push(first_slot(&mut batches));
    }
    let at = |slot| slots.iter().position(|first| *first == Some(slot));
    assert_eq!((at(0), at(1)), (Some(MAX_OVERTAKING), Some(2 * MAX_OVERTAKING + 1)));
}

#[test]
fn the_end_comes_last_and_what_was_cancelled_before_it_began_does_not_come() {
    let mut batches = Batches::new(VisibilityFilter::default(), true);
    push_large(&mut batches, 0);
    push_large(&mut batches, 1);
    batches.push(one(Effect::Cancel(RunId(0))));
    batches.push_end();
    assert_eq!(batches.take().unwrap(), r#"[[0,1,7,{"b":1,"a":""},"2026-07-28",5,["a"]],[6]]"#);
    assert!(batches.is_empty());
    assert_eq!(batches.take_text(0, 0), None);
}

#[test]
fn large_strings_are_named_and_kept_until_they_are_taken_or_the_run_ends() {
    let mut batches = Batches::default();
    let text = push_large(&mut batches, 0);
    assert!(batches.queued_bytes() > BATCH);
    assert_eq!(batches.take().unwrap(), r#"[[0,0,7,{"b":1,"a":""},"2026-07-28",5,["a"]]]"#);
    assert_eq!(batches.take_text(0, 0), Some(LargeText::new(text)));
    assert_eq!((batches.queued_bytes(), batches.take_text(1, 0)), (0, None));
    for call in 1..3 {
        push_large(&mut batches, call);
    }
    batches.push(one(Effect::Cancel(RunId(1))));
    batches.finish(2);
    batches.take();
    assert_eq!((batches.queued_bytes(), batches.large_texts.len()), (0, 0));
    assert_eq!((batches.take_text(1, 0), batches.take_text(2, 0)), (None, None));
}

#[test]
fn numeric_ids_that_a_double_can_not_hold_become_strings() {
    for (id, written) in [
        ("123456789012345", "123456789012345"),
        ("1234567890123456", r#""1234567890123456""#),
        ("9007199254740993", r#""9007199254740993""#),
        ("-12345678901234567890", r#""-12345678901234567890""#),
        (r#""12345678901234567890""#, r#""12345678901234567890""#),
    ] {
        let mut entry = String::new();
        push_id(&mut entry, Id::parse(id).as_ref());
        assert_eq!(entry, written);
    }
}
