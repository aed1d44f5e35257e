//! Clients whose server goes away and comes back: the requests that are repeated, and the event.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{
    Client, LoggingLevel,
    client::{Change, Event, Retry},
    error::{Error, ErrorKind},
    protocol::Tool,
    transport::Command,
};
use serde_json::json;

use crate::support::stream::{listening_server, result};

/// A legacy server that exits with status 4 when the tool `die` is called, and once, if the file `mark` does not exist
/// yet, when `safe` or `unsafe` is. If `mute` is in the name of the file, it does not answer `tools/list`.
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
    elif method == "tools/list" and "mute" in mark:
        continue
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

async fn connected(test: &str, retry: Retry) -> (Client, Attempts) {
    let mark = std::env::temp_dir().join(format!("gudgeon-{test}-{}", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    let attempts = Attempts::default();
    let seen = Arc::clone(&attempts);
    let command = Command::new("python3").args(["-c".into(), SERVER.into(), mark.into_os_string()]);
    let builder = Client::builder(command).on_event(move |event| {
        if let Event::Reconnected { attempt, reason, server } = event {
            assert_eq!(server.info.name, "script");
            seen.lock().expect("lives").push((attempt, reason.message.clone()));
        }
    });
    let builder = builder.options(|options| (options.restart, options.retry) = (true, retry));
    (builder.connect().await.expect("connects"), attempts)
}

async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    client.call_tool(tool, ()).await.map(|result| result.text())
}

#[tokio::test]
async fn a_safe_request_is_repeated_and_the_log_level_is_set_again() {
    let (client, attempts) = connected("safe", Retry::default()).await;
    client.list::<Tool>().await.expect("lists");
    client.set_log_level(LoggingLevel::Error).await.expect("sets");
    assert_eq!(call(&client, "safe").await.expect("is repeated"), "error");
    let lost = call(&client, "die").await.expect_err("is not repeated");
    assert_eq!(lost.kind, ErrorKind::Lost);
    call(&client, "unsafe").await.expect("is started again before");
    let attempts = attempts.lock().expect("lives").clone();
    assert_eq!(attempts.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [2, 1]);
    assert!(attempts.iter().all(|(_, reason)| reason.contains("status 4")), "{attempts:?}");
    client.close().await;
    let closed = client.ping().await.expect_err("is closed");
    assert_eq!((closed.kind, attempts.len()), (ErrorKind::Lost, 2));
}

#[tokio::test]
async fn a_tool_that_was_never_listed_is_looked_up_before_it_is_repeated() {
    let (client, _) = connected("unlisted", Retry::default()).await;
    call(&client, "safe").await.expect("is repeated");
    let (client, _) = connected("unlisted-unsafe", Retry::default()).await;
    let lost = call(&client, "unsafe").await.expect_err("is not repeated");
    assert_eq!(lost.kind, ErrorKind::Lost);
}

#[tokio::test]
async fn the_limits_decide_about_repeating() {
    let (client, attempts) = connected("never", Retry { attempts: 1, ..Retry::default() }).await;
    client.list::<Tool>().await.expect("lists");
    let lost = call(&client, "safe").await.expect_err("is not repeated");
    assert_eq!(lost.kind, ErrorKind::Lost);
    call(&client, "safe").await.expect("is started again before");
    let all = Retry { attempts: 2, only_safe: false, ..Retry::default() };
    let (client, _) = connected("all", all).await;
    call(&client, "unsafe").await.expect("is repeated");
    assert_eq!(attempts.lock().expect("lives").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_made_again_and_given_up_if_the_server_ends_at_once() {
    let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
    let server = listening_server(capabilities, "2025-11-25", |request| {
        vec![match request["method"].as_str() {
            Some("tools/call") => "hang up".into(),
            _ => result(request, &json!({})),
        }]
    });
    let client = Client::connect(server).await.expect("connects");
    let change = Change::Updated("a://b".into());
    let mut changes = client.subscribe([change.clone()]).await.expect("opens");
    for _ in 0..3 {
        assert!(call(&client, "die").await.is_err());
        assert_eq!(changes.next().await.expect("a change").expect("no error"), change);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(call(&client, "die").await.is_err());
    assert_eq!(changes.next().await.expect("a change").expect("no error"), change);
    assert!(call(&client, "die").await.is_err());
    let lost = changes.next().await.expect("an error").expect_err("it is given up");
    assert_eq!(lost.kind, ErrorKind::Lost);
    assert!(changes.next().await.is_none());
}

#[tokio::test]
async fn a_lost_call_does_not_wait_for_a_server_that_lists_no_tools() {
    let (client, _) = connected("unlisted-mute", Retry::default()).await;
    // The time limit of a call is 60 s.
    let bound = Duration::from_secs(30);
    let lost = tokio::time::timeout(bound, call(&client, "safe")).await.expect("ends before");
    assert_eq!(lost.expect_err("is not repeated").kind, ErrorKind::Lost);
}
