//! Limits of unsolicited messages: logs, progress, and subscriptions of clients that do not read.

use std::time::Duration;

use gudgeon::{
    engine::{HandlerEvent, Run},
    protocol::{LoggingLevel, Resource, json::to_raw},
    router::{Failure, RegisteredResource, Reply, RoundLimits},
    service::Input,
    session::server::{Log, Progress},
};
use serde_json::{Value, json};

use crate::support::{
    Handler,
    asker::{self, Server},
    kept,
};

fn server() -> Server {
    Server::with_components(RoundLimits::default(), |components| {
        let resource = Resource::new("mem://a", "a");
        let component = RegisteredResource::new(resource, kept(Handler::Plain)).unwrap();
        components.resources.add(component, true).unwrap();
    })
}

fn log(run: &Run, level: LoggingLevel, text: &str) -> Input<'static> {
    let data = to_raw(&json!(text));
    Input::Handler(run.id, HandlerEvent::Log(Log { level, logger: None, data }))
}

fn done(server: &mut Server, run: &Run) {
    server.done(run, Ok(Reply::Text("done".into())));
}

fn messages(said: &[Value]) -> Vec<&Value> {
    said.iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| &message["params"])
        .collect()
}

fn listen(server: &mut Server, id: u64) {
    server.receive(
        &json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["mem://a"]},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }}),
    );
}

#[test]
fn a_flood_of_log_messages_is_cut_and_its_client_is_told_by_how_many() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    server.receive(&asker::legacy(1));
    let run = server.running();
    for number in 0..1_500 {
        let level = if number == 1_200 { LoggingLevel::Critical } else { LoggingLevel::Info };
        server.handle(log(&run, level, &number.to_string()));
    }
    let said = std::mem::take(&mut server.sent);
    assert_eq!(messages(&said).len(), 1_000);
    // A hundred more after a second, with a notice of the suppressed ones.
    assert!(
        server.deadline().is_some_and(|deadline| deadline == server.now + Duration::from_secs(1))
    );
    server.now += Duration::from_secs(1);
    server.handle(Input::Tick);
    let notices = server.next_sent()["params"].clone();
    assert_eq!(notices["level"], "critical", "as grave as the gravest that was left out");
    assert!(
        notices["data"].as_str().unwrap().starts_with("500 log messages were left out"),
        "{notices}"
    );
    assert!(server.deadline().is_none());
    for number in 0..200 {
        server.handle(log(&run, LoggingLevel::Info, &number.to_string()));
    }
    let said = std::mem::take(&mut server.sent);
    let notices = messages(&said);
    assert_eq!((notices.len(), &notices[0]["data"]), (100, &json!("0")));
    // Once nothing is in flight any more, it need not wait for that.
    done(&mut server, &run);
    assert_eq!(server.next_sent()["id"], 1);
    let notices = server.next_sent()["params"]["data"].clone();
    assert!(notices.as_str().unwrap().starts_with("100 log messages"), "{notices}");
    // After a pause the full burst is allowed again.
    server.now += Duration::from_secs(3_600);
    server.receive(&asker::legacy(2));
    let run = server.running();
    for _ in 0..1_000 {
        server.handle(log(&run, LoggingLevel::Info, "again"));
    }
    done(&mut server, &run);
    assert_eq!(messages(&server.sent).len(), 1_000);
}

#[test]
fn only_log_messages_at_the_clients_level_count() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    let set = |server: &mut Server, level: &str| {
        server.receive(&json!({"jsonrpc": "2.0", "id": 9, "method": "logging/setLevel", "params": {"level": level}}));
        assert_eq!(server.next_sent()["result"], json!({}));
    };
    server.receive(&asker::legacy(1));
    let run = server.running();
    for (level, received) in [
        ("debug", 8),
        ("info", 7),
        ("notice", 6),
        ("warning", 5),
        ("error", 4),
        ("critical", 3),
        ("alert", 2),
        ("emergency", 1),
    ] {
        set(&mut server, level);
        for level in LoggingLevel::ALL {
            server.handle(log(&run, level, "x"));
        }
        let said = std::mem::take(&mut server.sent);
        assert_eq!(messages(&said).len(), received, "{level}");
    }
    // Messages below the level do not count and are not reported as dropped.
    for _ in 0..5_000 {
        server.handle(log(&run, LoggingLevel::Debug, "x"));
    }
    set(&mut server, "debug");
    server.handle(log(&run, LoggingLevel::Debug, "y"));
    done(&mut server, &run);
    let said = std::mem::take(&mut server.sent);
    assert_eq!(messages(&said), [&json!({"level": "debug", "data": "y"})]);
    // Dropped messages below the new level are not reported.
    server.receive(&asker::legacy(2));
    let run = server.running();
    for _ in 0..2_000 {
        server.handle(log(&run, LoggingLevel::Info, "x"));
    }
    server.sent.clear();
    set(&mut server, "error");
    done(&mut server, &run);
    assert_eq!(server.next_sent()["id"], 2);
    server.now += Duration::from_secs(2);
    server.handle(Input::Tick);
    assert!(server.sent.is_empty(), "{:?}", server.sent);
}

#[test]
fn in_the_modern_era_a_call_gets_the_log_level_that_it_requested() {
    let mut server = server();
    let mut call = asker::modern(1, &json!({}), &json!({}));
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    server.receive(&call);
    let run = server.running();
    for _ in 0..1_200 {
        server.handle(log(&run, LoggingLevel::Info, "x"));
        server.handle(log(&run, LoggingLevel::Error, "x"));
    }
    done(&mut server, &run);
    let said = std::mem::take(&mut server.sent);
    let notices = messages(&said);
    assert_eq!(notices.len(), 1_001);
    assert!(notices[1_000]["data"].as_str().unwrap().starts_with("200 log messages"));
    server.receive(&asker::modern(2, &json!({}), &json!({})));
    let run = server.running();
    server.handle(log(&run, LoggingLevel::Emergency, "nobody asked"));
    done(&mut server, &run);
    assert_eq!(server.next_sent()["id"], 2);
}

#[test]
fn progress_that_steps_back_is_dropped_and_reported_once_a_call() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    for id in [1, 2] {
        let mut call = asker::legacy(id);
        call["params"]["_meta"] = json!({"progressToken": "t"});
        server.receive(&call);
        let run = server.running();
        for progress in [1.0, 3.0, 2.0, f64::NAN, 3.0, 3.5, f64::INFINITY] {
            let step = Progress { progress, total: None, message: None };
            server.handle(Input::Handler(run.id, HandlerEvent::Progress(step)));
        }
        let notices: Vec<_> =
            server.sent.drain(..).map(|message| message["params"]["progress"].clone()).collect();
        assert_eq!(notices, [json!(1), json!(3), json!(3.5)]);
        let report = server.reports.pop().unwrap();
        assert_eq!(
            report,
            "the progress of tools/call must increase, and 2 came after 3: it was dropped, and so will be any other \
             such step of this call"
        );
        assert!(server.reports.is_empty());
        done(&mut server, &run);
        server.sent.clear();
    }
}

#[test]
fn a_finished_call_sends_neither_progress_nor_logs() {
    for is_cancelled in [false, true] {
        let mut server = server();
        let mut call = asker::modern(1, &json!({}), &json!({}));
        let meta = &mut call["params"]["_meta"];
        meta["io.modelcontextprotocol/logLevel"] = json!("debug");
        meta["progressToken"] = json!("t");
        server.receive(&call);
        let run = server.running();
        let sent_after = |server: &mut Server, progress| {
            let step = Progress { progress, total: None, message: None };
            server.handle(Input::Handler(run.id, HandlerEvent::Progress(step)));
            server.handle(log(&run, LoggingLevel::Emergency, "still here"));
            std::mem::take(&mut server.sent).len()
        };
        assert_eq!(sent_after(&mut server, 1.0), 2);
        if is_cancelled {
            let method = "notifications/cancelled";
            let cancelled = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}});
            server.receive(&cancelled);
            assert_eq!(sent_after(&mut server, 2.0), 0, "its handler has not heard of it yet");
            done(&mut server, &run);
            assert!(server.sent.is_empty());
        } else {
            done(&mut server, &run);
            assert_eq!(server.next_sent()["id"], 1);
        }
        assert_eq!(sent_after(&mut server, 3.0), 0);
    }
}

#[test]
fn a_subscription_of_a_client_that_does_not_read_is_ended_with_a_reason() {
    let mut server = server();
    listen(&mut server, 5);
    assert_eq!(server.next_sent()["method"], "notifications/subscriptions/acknowledged");
    server.handle(Input::Updated("mem://a"));
    assert_eq!(server.next_sent()["method"], "notifications/resources/updated");
    server.handle(Input::CutSubscriptions);
    assert_eq!(
        server.next_sent(),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": 5},
            "requestId": 5,
            "reason": "the client leaves too much unread: listen again, and read what has changed",
        }})
    );
    server.handle(Input::Updated("mem://a"));
    assert!(server.sent.is_empty(), "nothing comes after it");
    assert_eq!(server.in_flight(), 0);
    // The id can be reused for a new, independent subscription.
    listen(&mut server, 5);
    assert_eq!(server.next_sent()["method"], "notifications/subscriptions/acknowledged");
    server.handle(Input::Updated("mem://a"));
    assert_eq!(server.next_sent()["params"]["uri"], "mem://a");
}

#[test]
fn a_client_that_does_not_read_gets_neither_progress_nor_logs() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    let mut call = asker::legacy(1);
    call["params"]["_meta"] = json!({"progressToken": "t"});
    server.receive(&call);
    let run = server.running();
    server.handle(Input::Lagging(true));
    for number in 0..50 {
        let step = Progress { progress: f64::from(number), total: None, message: None };
        server.handle(Input::Handler(run.id, HandlerEvent::Progress(step)));
        server.handle(log(&run, LoggingLevel::Error, "x"));
    }
    assert!(server.sent.is_empty());
    server.handle(Input::Lagging(false));
    server.now += Duration::from_secs(1);
    done(&mut server, &run);
    let said = std::mem::take(&mut server.sent);
    assert_eq!(said[0]["id"], 1);
    let notices = messages(&said)[0]["data"].as_str().unwrap().to_owned();
    assert!(notices.starts_with("50 log messages"), "{notices}");
}

#[test]
fn subscriptions_end_with_their_result_when_the_server_does_and_so_do_later_ones() {
    let mut server = server();
    listen(&mut server, 1);
    server.next_sent();
    server.handle(Input::ShutDown);
    assert_eq!(server.next_sent()["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    listen(&mut server, 2);
    assert_eq!(server.next_sent()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(server.next_sent()["id"], 2);
    assert_eq!(server.in_flight(), 0);
    server.receive(&asker::modern(3, &json!({}), &json!({})));
    let run = server.running();
    server.done(&run, Err(Failure::Exposed("no".into())));
    assert_eq!(server.next_sent()["id"], 3);
}
