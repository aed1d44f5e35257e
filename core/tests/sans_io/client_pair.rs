//! A client session against a real service, in every revision, with a manual clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::support::{Handler, kept};
use gudgeon::{
    engine::HandlerEvent,
    error::ErrorKind,
    protocol::{ClientCapabilities, Implementation, MethodName, Raw, Revision, Tool, json},
    router::{Components, Definition, RegisteredTool, Reply, ServerFacts},
    service,
    session::{
        client::{ClientConfig, Input, Output, RequestOptions},
        server::Progress,
    },
    test_pair::{Pair, Sent},
};
use serde_json::Value;

fn components(revisions: &[Revision]) -> Arc<Components> {
    let mut components = Components::new(ServerFacts {
        instructions: Some("be kind".into()),
        revisions: revisions.iter().rev().copied().collect(),
        ..ServerFacts::from(Implementation::new("pair", "1"))
    });
    for name in ["quick", "slow"] {
        let schema = json::raw(r#"{"type":"object"}"#.into());
        let component = RegisteredTool::new(Tool::new(name, schema), kept(Handler::Named(name)))
            .expect("a good tool");
        components.tools.add(component, true).expect("a new name");
    }
    Arc::new(components)
}

fn config(revisions: &[Revision]) -> ClientConfig {
    ClientConfig {
        info: Implementation::new("probe", "1"),
        capabilities: ClientCapabilities::default(),
        revisions: revisions.to_vec(),
        last_revision: None,
        dialect: None,
        probe_timeout: Some(Duration::from_secs(5)),
        connect_timeout: None,
        log_level: None,
    }
}

fn pair(ours: &[Revision], theirs: &[Revision]) -> Pair {
    Pair::new(Instant::now(), config(ours), components(theirs), |run| {
        match Handler::from_kept(&run.handler) {
            Handler::Named("quick") => Some(Ok(Reply::Text("done".into()))),
            _ => None,
        }
    })
}

fn value(raw: &Raw) -> Value {
    serde_json::from_str(raw.get()).expect("JSON")
}

#[test]
fn every_revision_is_spoken() {
    for revision in Revision::ALL {
        let mut pair = pair(&[revision], &Revision::ALL);
        let server = pair.connect().expect("connects");
        assert_eq!((server.revision, server.info.name.as_str()), (revision, "pair"));
        assert_eq!(server.instructions.as_deref(), Some("be kind"));
        let tools = value(&pair.request("tools/list", "{}").expect("lists"));
        assert_eq!(tools["tools"][0]["name"], "quick");
        let result = value(&pair.request("tools/call", r#"{"name":"quick"}"#).expect("answers"));
        assert_eq!(result["content"][0]["text"], "done");
        assert!(pair.request("ping", "{}").is_ok());
        let refused = pair.request("prompts/list", "{}").expect_err("no prompts");
        assert_eq!(refused.kind, ErrorKind::Unsupported);
    }
}

#[test]
fn every_pair_of_eras_follows_the_compatibility_matrix() {
    let all = &Revision::ALL[..];
    let (legacy, modern) = (&all[..4], &all[4..]);
    for (ours, theirs, outcome) in [
        (modern, modern, Some(Revision::V2026_07_28)),
        (modern, legacy, None),
        (all, modern, Some(Revision::V2026_07_28)),
        (all, legacy, Some(Revision::V2025_11_25)),
        (all, all, Some(Revision::V2026_07_28)),
        (legacy, modern, None),
        (legacy, all, Some(Revision::V2025_11_25)),
        (legacy, legacy, Some(Revision::V2025_11_25)),
    ] {
        let mut pair = pair(ours, theirs);
        let spoken = pair.connect().ok().map(|server| server.revision);
        assert_eq!(spoken, outcome, "{ours:?} and {theirs:?}: {:#?}", pair.wire);
    }
}

#[test]
fn a_call_that_times_out_is_cancelled_on_the_server() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut pair = pair(&[revision], &Revision::ALL);
        pair.connect().expect("connects");
        let options =
            RequestOptions { timeout: Some(Duration::from_secs(3)), ..RequestOptions::default() };
        let key = pair.send("tools/call", r#"{"name":"slow"}"#, options);
        assert_eq!(pair.running.len(), 1);
        pair.advance(Duration::from_secs(2));
        let call = pair.running[0].id;
        let step = Progress { progress: 1.0, total: None, message: None };
        pair.handle_server(service::Input::Handler(call, HandlerEvent::Progress(step)));
        assert!(matches!(pair.events.pop_front(), Some(Output::Progress(..))));
        pair.advance(Duration::from_secs(2));
        assert!(pair.outcome(key).is_none(), "progress gave it more time");
        pair.advance(Duration::from_secs(1));
        let failure = pair.outcome(key).expect("over").expect_err("too late");
        assert_eq!(failure.kind, ErrorKind::Timeout);
        assert!(pair.running.is_empty(), "the handler was told to stop");
        let last = pair.wire.last().expect("something was said");
        assert!(matches!(last, Sent::ByClient(frame) if frame.contains("notifications/cancelled")));
    }
}

#[test]
fn a_vendors_notification_is_delivered_in_both_eras() {
    for revision in Revision::ALL {
        let mut components = Components::clone(&components(&[revision]));
        components
            .add(Definition::Notification("acme/told".into()), kept(Handler::Named("told")))
            .expect("a new name");
        let mut pair =
            Pair::new(Instant::now(), config(&[revision]), Arc::new(components), |_| None);
        pair.connect().expect("both speak it");
        pair.handle_client(Input::Notify {
            method: MethodName::Vendor("acme/told".into()),
            params: r#"{"x":1}"#,
        });
        let received: Vec<_> = pair.running.iter().map(|run| &*run.input).collect();
        assert_eq!(received.len(), 1, "{revision}");
        assert!(received[0].contains(r#""x":1"#), "{revision}: {}", received[0]);
    }
}

#[test]
fn a_slow_handler_answers_later() {
    let mut pair = pair(&Revision::ALL, &Revision::ALL);
    pair.connect().expect("connects");
    let key = pair.send("tools/call", r#"{"name":"slow"}"#, RequestOptions::default());
    let quick = pair.request("tools/call", r#"{"name":"quick"}"#);
    assert!(quick.is_ok() && pair.outcome(key).is_none());
    let run = pair.running.pop().expect("runs");
    pair.finish(&run, Ok(Reply::Text("at last".into())));
    let result = value(&pair.outcome(key).expect("over").expect("answers"));
    assert_eq!(result["content"][0]["text"], "at last");
}
