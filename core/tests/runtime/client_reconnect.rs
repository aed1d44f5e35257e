//! Clients of servers that are started factory: the requests that are repeated, and the event.

use std::sync::{Arc, Mutex};

use gudgeon::{
    bindings::{
        client_operation::operation,
        client_settings::ClientSettings,
        client_target::Place,
        reconnecting::{BuilderFactory, ReconnectingClient},
    },
    client::Change,
    error::{Error, ErrorKind, Language},
    protocol::SubscriptionFilter,
};
use serde_json::json;

/// A legacy server that exits with status 4 when the tool `die` is called, and once, if the file `mark` does not exist
/// yet, when `safe` or `unsafe` is.
const SERVER: &str = r#"
import json, os, sys
mark, level = sys.argv[1], "none"
for line in sys.stdin:
    message = json.loads(line)
    method, params = message["method"], message.get("params", {})
    result = {}
    if method == "initialize":
        result = dict(protocolVersion=params["protocolVersion"], serverInfo=dict(name="script", version="1"),
                      capabilities=dict(tools={}, logging={}, resources=dict(subscribe=True)))
    elif method == "server/discover":
        print(json.dumps(dict(jsonrpc="2.0", id=message["id"], error=dict(code=-32601, message="no"))), flush=True)
        continue
    elif method == "logging/setLevel":
        level = params["level"]
    elif method == "tools/list":
        result = dict(tools=[dict(name="safe", inputSchema={}, annotations=dict(readOnlyHint=True)),
                             dict(name="unsafe", inputSchema={}), dict(name="die", inputSchema={})])
    elif method == "tools/call":
        if params["name"] == "die":
            sys.exit(4)
        if not os.path.exists(mark):
            open(mark, "w").close()
            sys.exit(4)
        result = dict(content=[dict(type="text", text=level)])
    if "id" in message:
        print(json.dumps(dict(jsonrpc="2.0", id=message["id"], result=result)), flush=True)
"#;

type Attempts = Arc<Mutex<Vec<(u32, String)>>>;

async fn connected(test: &str, retry: &str) -> (Arc<ReconnectingClient>, Attempts) {
    let mark = std::env::temp_dir().join(format!("gudgeon-{test}-{}", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let entry = json!({ "command": "python3", "args": ["-c", SERVER, mark], "restart": true });
    let place = Place::read(Language::Rust, entry.to_string().as_bytes(), b"null").expect("reads");
    let settings =
        ClientSettings::parse(format!("{{\"retry\":{retry}}}").as_bytes()).expect("reads");
    let (first, retry) = (place.builder(&settings).expect("builds"), settings.retry());
    let factory: BuilderFactory = Box::new(move || place.builder(&settings));
    let attempts = Attempts::default();
    let seen = Arc::clone(&attempts);
    let client = ReconnectingClient::connect(first, Some(factory), retry, move |it| {
        assert_eq!(it.server.expect("a new server").info.name, "script");
        seen.lock().expect("lives").push((it.attempt, it.reason.message));
    });
    (client.await.expect("connects"), attempts)
}

async fn call(client: &ReconnectingClient, what: &str, params: &str) -> Result<String, Error> {
    let operation = operation(what, params.as_bytes())?;
    let reply = client.call(operation, client.current().options()).await?;
    Ok(reply.result.get().to_owned())
}

#[tokio::test]
async fn a_safe_request_is_repeated_and_the_log_level_is_set_again() {
    let (client, attempts) = connected("safe", r#""safe""#).await;
    call(&client, "listTools", "{}").await.expect("lists");
    call(&client, "setLogLevel", r#"{"level":"error"}"#).await.expect("sets");
    let text = call(&client, "callTool", r#"{"name":"safe"}"#).await.expect("is repeated");
    assert!(text.contains("\"error\""), "{text}");
    let lost = call(&client, "callTool", r#"{"name":"die"}"#).await.expect_err("is not repeated");
    assert_eq!(lost.kind, ErrorKind::Lost);
    call(&client, "callTool", r#"{"name":"unsafe"}"#).await.expect("is started again before");
    let attempts = attempts.lock().expect("lives").clone();
    assert_eq!(attempts.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [2, 1]);
    assert!(attempts.iter().all(|(_, reason)| reason.contains("status 4")), "{attempts:?}");
    client.close().await;
    let closed = call(&client, "ping", "{}").await.expect_err("is closed");
    assert_eq!((closed.kind, attempts.len()), (ErrorKind::Lost, 2));
}

#[tokio::test]
async fn the_limits_decide_about_repeating() {
    let (client, attempts) = connected("never", r#""never""#).await;
    call(&client, "listTools", "{}").await.expect("lists");
    let lost = call(&client, "callTool", r#"{"name":"safe"}"#).await.expect_err("is not repeated");
    assert_eq!(lost.kind, ErrorKind::Lost);
    call(&client, "callTool", r#"{"name":"safe"}"#).await.expect("is started again before");
    let (client, _) = connected("all", r#"{"attempts":2,"onlySafe":false}"#).await;
    call(&client, "callTool", r#"{"name":"unsafe"}"#).await.expect("is repeated");
    assert_eq!(attempts.lock().expect("lives").len(), 1);
}

#[tokio::test]
async fn a_subscription_is_made_again_and_given_up_if_the_server_ends_at_once() {
    let (client, attempts) = connected("subscribed", r#""safe""#).await;
    let changes =
        client.subscribe(SubscriptionFilter::default().uri("a://b")).await.expect("opens");
    for is_first in [true, false] {
        assert!(call(&client, "callTool", r#"{"name":"die"}"#).await.is_err());
        let next = loop {
            changes.ready().await;
            if let std::task::Poll::Ready(next) = changes.try_next() {
                break next;
            }
        };
        match next {
            Some(Ok(change)) => assert!(is_first && change == Change::Updated("a://b".into())),
            other => assert!(!is_first && matches!(other, Some(Err(_))), "{other:?}"),
        }
    }
    assert_eq!(attempts.lock().expect("lives").len(), 1);
    changes.close();
}
