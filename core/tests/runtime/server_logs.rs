//! The `tracing` output of a Rust server.

use std::{
    fmt,
    sync::{Arc, Mutex, mpsc},
};

use gudgeon::{Resource, Server, ToolError, server::middleware};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tower_service::Service as _;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::{duplex::Peer, memory};

/// Keeps the messages of events, with their levels, and the fields of those that have a name.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, String)>>>, Arc<Mutex<Vec<Value>>>);

#[derive(Default)]
struct Message(String, Map<String, Value>);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.1.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.1.insert(field.name().into(), value.into());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target().starts_with("gudgeon") {
            let mut message = Message::default();
            event.record(&mut message);
            if message.1.contains_key("event") {
                let target = event.metadata().target();
                message.1.insert("target".into(), target.into());
                self.1.lock().unwrap().push(message.1.into());
            }
            self.0.lock().unwrap().push((*event.metadata().level(), message.0));
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Lines {
    fn at(&self, level: Level) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|entry| entry.0 == level).map(|entry| entry.1.clone()).collect()
    }

    /// Returns the named events since the last call.
    fn take_events(&self) -> Vec<Value> {
        std::mem::take(&mut self.1.lock().unwrap())
    }
}

#[derive(Debug)]
struct Crash;

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

impl std::error::Error for Crash {}

#[tokio::test(start_paused = true)]
async fn timing_and_logging_report_each_request_and_its_outcome() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let server = Server::new("shelf")
        .tool("open", || async { "open" })
        .tool("fail", || async { Err::<String, _>(ToolError::new("it is locked")) })
        .middleware(["tools/call"], middleware::timing())
        .middleware(["tools/call"], middleware::logging(true));
    let mut peer = Peer::legacy(&server).await;
    peer.call("open", json!({})).await;
    peer.call("fail", json!({})).await;
    let logged = lines.at(Level::INFO);
    assert_eq!(logged[0], r#"tools/call open {"name":"open","arguments":{}}"#);
    assert_eq!(logged[1], "tools/call open is done");
    assert!(
        logged[2].starts_with("tools/call open took ") && logged[2].ends_with(" ms"),
        "{}",
        logged[2]
    );
    assert_eq!(logged[4], "tools/call fail failed: it is locked");
    assert_eq!(logged.len(), 6, "{logged:?}");
}

#[tokio::test(start_paused = true)]
async fn a_text_of_a_client_stays_on_its_line() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let repeat = |request: middleware::Request, _: middleware::Next| async move {
        Err::<Value, _>(ToolError::new(request.params["name"].as_str().unwrap()))
    };
    let server = Server::new("shelf")
        .middleware(["tools/call"], middleware::timing())
        .middleware(["tools/call"], middleware::logging(true))
        .middleware(["tools/call"], repeat);
    let mut peer = Peer::legacy(&server).await;
    let name = "open\nERROR \u{1b}[2J\u{2028}";
    peer.request("tools/call", json!({ "name": name, "arguments": { "\u{202e}": "\u{1b}" } }))
        .await;
    let logged = lines.at(Level::INFO);
    assert_eq!(logged.len(), 3, "{logged:?}");
    for line in logged {
        assert!(line.starts_with(r"tools/call open\nERROR \u{1b}[2J\u{2028} "), "{line}");
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_uris_and_reasons_of_a_client_stay_on_their_lines() {
    #[derive(Deserialize, JsonSchema)]
    struct Read {
        #[expect(dead_code, reason = "only the URI counts")]
        path: String,
    }
    const HOSTILE: &str = "a\nERROR b\r\u{1b}[2J\u{9b}\u{2028}\u{202e}";

    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let crash = |_: Read| async { Err::<String, ToolError>(Crash.into()) };
    let server = Server::new("shelf")
        .add(Resource::template("x://{+path}", crash))
        .tool("wait", std::future::pending::<String>);
    let mut peer = Peer::legacy(&server).await;
    for uri in [format!("x://{HOSTILE}"), "x://a\u{202e}b".into(), "x://a%0AERROR".into()] {
        peer.request("resources/read", json!({ "uri": uri })).await;
    }
    for (method, name) in [("tools/call", "name"), ("prompts/get", "name"), (HOSTILE, "uri")] {
        peer.request(method, json!({ name: HOSTILE, "arguments": { HOSTILE: HOSTILE } })).await;
    }
    let id = peer.ask("tools/call", json!({ "name": "wait" })).await;
    peer.notify("notifications/cancelled", json!({ "requestId": id, "reason": HOSTILE })).await;
    peer.notify(HOSTILE, json!({})).await;
    peer.request("ping", json!({})).await;
    assert!(lines.at(Level::DEBUG).iter().any(|line| line.contains("was cancelled")));
    let reports = lines.at(Level::ERROR);
    assert!(reports.iter().any(|report| report.contains("x://a%0AERROR")), "{reports:?}");
    let logged = lines.0.lock().unwrap();
    for (_, line) in &*logged {
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handlers_error_is_logged_under_the_callers_reference_id() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let crash = || async { Err::<String, ToolError>(Crash.into()) };
    let mut peer = Peer::legacy(&Server::new("shelf").tool("crash", crash)).await;
    let result = peer.call("crash", json!({})).await;
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(!text.contains("a secret"), "{text}");
    let (_, reference) = text.split_once("(reference ").unwrap();
    let logged = lines.at(Level::ERROR).join("\n");
    assert!(
        logged.contains(reference.trim_end_matches(')')) && logged.contains("a secret"),
        "{logged}"
    );
    assert!(
        logged.ends_with("; the caller does not see why: return ToolError::new(text) to say it"),
        "{logged}"
    );
    let mut peer = Peer::legacy(
        &Server::new("shelf").options(|options| options.debug = true).tool("crash", crash),
    )
    .await;
    let result = peer.call("crash", json!({})).await;
    assert!(result["content"][0]["text"].as_str().unwrap().contains("a secret"), "{result}");
}

#[test]
fn features_that_known_hosts_reject_cause_a_warning() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let long = "x".repeat(100);
    let shelf = Server::new("shelf").tool(&*long, || async { "ok" });
    assert!(lines.at(Level::WARN).concat().contains(&long));
    drop(Server::new("house").mount("shelf", shelf));
    assert!(lines.at(Level::WARN)[1].contains(&format!("shelf_{long}")));
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_refused_are_logged_once_in_ten_seconds_for_each_reason() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let mut service = Server::new("shelf").tool("open", || async { "open" }).into_service();
    let mut send = async |host: &str, kind: &str| {
        let request = http::Request::post("http://127.0.0.1/mcp")
            .header("host", host)
            .header("authorization", "Bearer a-secret")
            .header("content-type", kind)
            .body("{}".to_owned())
            .unwrap();
        service.call(request).await.unwrap().status().as_u16()
    };
    for _ in 0..3 {
        assert_eq!(send("evil.example", "application/json").await, 421);
    }
    assert_eq!(send("127.0.0.1", "text/plain").await, 415);
    let [host, kind] = &lines.take_events()[..] else { panic!() };
    assert_eq!(
        *host,
        json!({"event": "http.refused", "target": "gudgeon::http", "reason": "host", "status": 421})
    );
    assert_eq!((&kind["reason"], &kind["status"]), (&json!("content_type"), &json!(415)));
    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    assert_eq!(send("evil.example", "application/json").await, 421);
    assert_eq!(lines.take_events()[0]["left_out"], 2);
    let logged = lines.at(Level::INFO);
    assert!(logged[0].starts_with(
        r#"refused a request with status 421: the request is for the host "evil.example""#
    ));
    assert!(logged[2].ends_with("(and 2 times more since the last such message)"), "{logged:?}");
    assert!(!logged.concat().contains("a-secret"), "{logged:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_says_where_it_listens_and_when_it_stops() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let listening = Server::new("shelf").listen(memory::HTTP).await.unwrap();
    let url = listening.url().to_owned();
    listening.shut_down().await;
    listening.shut_down().await;
    drop(listening);
    let events = lines.take_events();
    let named: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(named, ["server.started", "server.stopping", "server.stopped"]);
    assert!(events.iter().all(|event| event["url"] == *url && event["server"] == "shelf"));
    assert_eq!(lines.at(Level::INFO)[0], format!("shelf serves {url}"));
    drop(Server::new("shelf").listen(memory::HTTP).await.unwrap());
    assert_eq!(lines.take_events().last().unwrap()["event"], "server.stopped");
}

#[tokio::test(start_paused = true)]
async fn a_handlers_error_has_the_fields_of_its_event() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let crash = || async { Err::<String, ToolError>(Crash.into()) };
    let mut peer = Peer::legacy(&Server::new("shelf").tool("crash", crash)).await;
    let result = peer.call("crash", json!({})).await;
    let [failed] = &lines.take_events()[..] else { panic!() };
    assert_eq!((&failed["event"], &failed["tool"]), (&json!("call.failed"), &json!("crash")));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(&format!("(reference {})", failed["reference"].as_str().unwrap())));
}

/// Blocks at each event until it may go on.
struct Blocking {
    blocks: Mutex<mpsc::Sender<()>>,
    may_go_on: Mutex<mpsc::Receiver<()>>,
}

impl Subscriber for Blocking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("gudgeon")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        let _ = self.blocks.lock().unwrap().send(());
        // The test drops the other end.
        let _ = self.may_go_on.lock().unwrap().recv();
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn call_of(host: &str, tool: &str) -> http::Request<String> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "_meta": meta},
    });
    http::Request::post("http://127.0.0.1/mcp")
        .header("host", host)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(call.to_string())
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_blocks_holds_up_its_own_thread_only() {
    // An event of the checks before the endpoint, one of the endpoint itself, and one of a handler's error.
    for (host, tool) in [("evil.example", "open"), ("127.0.0.1", "nil"), ("127.0.0.1", "crash")] {
        let mut service = Server::new("shelf")
            .tool("open", || async { "open" })
            .tool("crash", || async { Err::<String, ToolError>(Crash.into()) })
            .into_service();
        let (blocks, is_blocked) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (mut blocked, runtime) = (service.clone(), tokio::runtime::Handle::current());
        let thread = std::thread::spawn(move || {
            let blocking =
                Blocking { blocks: Mutex::new(blocks), may_go_on: Mutex::new(may_go_on) };
            tracing::subscriber::with_default(blocking, || {
                runtime.block_on(blocked.call(call_of(host, tool))).unwrap().status()
            })
        });
        let patience = std::time::Duration::from_secs(60);
        tokio::task::spawn_blocking(move || is_blocked.recv_timeout(patience))
            .await
            .unwrap()
            .unwrap_or_else(|_| panic!("nothing was logged: {tool}"));
        for _ in 0..10 {
            let answer = service.call(call_of("127.0.0.1", "open"));
            let answer = tokio::time::timeout(patience, answer).await;
            assert_eq!(answer.expect("it waits for the log").unwrap().status(), 200);
        }
        drop(go_on);
        assert_eq!(thread.join().unwrap() == 421, host == "evil.example");
    }
}
