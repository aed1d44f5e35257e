//! The client over HTTP against legacy servers: the handshake, streams, resumption, cancellation.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Client, Revision,
    client::Target,
    error::{Error, ErrorKind},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::support::http::{
    Answer, BodyStep, Mock, Seen, discovery, event, event_with_id, eventually, initialized,
    text_result, tool, tool_list,
};

pub(super) async fn connect(mock: &Mock) -> Result<Client, Error> {
    Client::connect(Target::url(&mock.url)?).await
}

/// Answers `server/discover` as servers of before do.
pub(super) fn legacy(request: &Seen) -> Answer {
    match &*request.rpc() {
        "server/discover" => Answer::text(400, "Bad Request: no session"),
        "initialize" => {
            request.result(initialized("2025-11-25")).with("Mcp-Session-Id", "session-1")
        }
        "GET" | "DELETE" => Answer::empty(405),
        "tools/list" => request.result(tool_list(&[tool("echo", json!({"type": "object"}))])),
        "tools/call" => request.result(text_result("done")),
        method if method.starts_with("notifications/") => Answer::empty(202),
        "" | "null" => Answer::empty(202),
        _ => request.error(200, -32601, Value::Null),
    }
}

#[tokio::test(start_paused = true)]
async fn any_error_of_a_legacy_server_to_the_probe_is_accepted() {
    for answer in [
        Answer::empty(400),
        Answer::text(500, "oops"),
        Answer::json(200, json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        Answer::json(
            400,
            json!({"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Missing session ID"}}),
        ),
        Answer::json(
            400,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Server not initialized"}}),
        ),
        Answer::text(200, "hello"),
        Answer::empty(202),
    ] {
        let shown = format!("{answer:?}");
        let mock = Mock::start(move |request| match &*request.rpc() {
            "server/discover" => answer.clone(),
            _ => legacy(request),
        })
        .await;
        let client = connect(&mock).await.unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(client.server().revision, Revision::V2025_11_25);
    }
}

#[tokio::test(start_paused = true)]
async fn initialize_may_be_answered_by_an_event_stream() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "initialize" => {
            let result = request.response(initialized("2025-03-26"));
            Answer::events(vec![event(&result)]).with("mcp-session-id", "s")
        }
        _ => legacy(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    assert_eq!(client.session_id().as_deref(), Some("s"));
    assert_eq!(client.server().revision, Revision::V2025_03_26);
}

/// 2025-03-26, "Batching": implementations MUST support receiving batches.
#[tokio::test(start_paused = true)]
async fn a_batch_may_contain_the_response() {
    for is_stream in [false, true] {
        let mock = Mock::start(move |request| match &*request.rpc() {
            "initialize" => request.result(initialized("2025-03-26")),
            "tools/call" => {
                let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info", "data": 1}});
                let batch = json!([log, request.response(text_result("done"))]);
                match is_stream {
                    true => Answer::events(vec![event_with_id("e-1", &batch)]),
                    false => Answer::json(200, batch),
                }
            }
            _ => legacy(request),
        })
        .await;
        let (told, logs) = std::sync::mpsc::channel();
        let builder = Client::builder(Target::url(&mock.url).unwrap());
        let client = builder
            .on_log(move |message| drop(told.send(message.data)))
            .connect()
            .await
            .expect("connects");
        assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "done");
        assert_eq!(logs.try_recv().expect("told before the answer").get(), "1");
    }
}

#[tokio::test(start_paused = true)]
async fn the_standalone_stream_is_open_before_the_first_call_and_carries_questions() {
    let answered = Arc::new(Mutex::new(Value::Null));
    let answer = Arc::clone(&answered);
    let is_open = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&is_open);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "GET" => {
            open.store(true, Ordering::SeqCst);
            let question = json!({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"});
            Answer::events(vec![
                BodyStep::Bytes(": hi\n\n".into()),
                event(&question),
                BodyStep::Hold,
            ])
        }
        "tools/call" => {
            assert!(open.load(Ordering::SeqCst));
            legacy(request)
        }
        "POST" => {
            *answer.lock().unwrap() = request.body.clone();
            Answer::empty(202)
        }
        _ => legacy(request),
    })
    .await;
    let client = Client::builder(Target::url(&mock.url).unwrap())
        .options(|options| options.roots = Some(vec!["file:///tmp".into()]))
        .connect()
        .await
        .unwrap();
    client.call_tool("echo", json!({})).await.unwrap();
    eventually(|| !answered.lock().unwrap().is_null()).await;
    let answer = answered.lock().unwrap().clone();
    assert_eq!(
        (&answer["id"], &answer["result"]["roots"][0]["uri"]),
        (&json!("q1"), &json!("file:///tmp"))
    );
    client.close().await;
    eventually(|| mock.dropped() == 1).await;
}

/// Returns a server that sends 500 requests before it answers a call.
async fn asking(accept: impl Fn() -> Answer + Send + Sync + 'static) -> Mock {
    Mock::start(move |request| match &*request.rpc() {
        "tools/call" => {
            let pings =
                (0..500).map(|id| event(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
            let result =
                json!({"jsonrpc": "2.0", "id": request.body["id"], "result": text_result("done")});
            Answer::events(pings.chain([event(&result)]).collect())
        }
        _ if request.body.get("result").is_some() => accept(),
        _ => legacy(request),
    })
    .await
}

fn answers(mock: &Mock) -> usize {
    mock.seen().iter().filter(|request| request.body.get("result").is_some()).count()
}

#[tokio::test(start_paused = true)]
async fn answers_that_a_server_does_not_accept_are_bounded() {
    let mock = asking(|| Answer::empty(202).hold()).await;
    let client = connect(&mock).await.unwrap();
    let hurried = client.with_options(|options| options.timeout = Some(Duration::from_secs(3)));
    let error = hurried.call_tool("echo", json!({})).await.unwrap_err();
    assert_eq!((error.kind, answers(&mock)), (ErrorKind::Timeout, 64));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn all_answers_arrive_however_many_requests_a_server_sends() {
    let mock = asking(|| Answer::empty(202)).await;
    let client = connect(&mock).await.unwrap();
    client.call_tool("echo", json!({})).await.unwrap();
    eventually(|| answers(&mock) == 500).await;
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_standalone_stream_that_ends_is_opened_again_where_it_broke() {
    let gets = AtomicUsize::new(0);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "GET" => match gets.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::events(vec![BodyStep::Bytes("id: e1\nretry: 100\ndata:\n\n".into())]),
            1 => Answer::empty(503),
            2 => Answer::events(vec![BodyStep::Bytes("id: e2\ndata:\n\n".into()), BodyStep::Break]),
            _ => Answer::events(vec![BodyStep::Hold]),
        },
        _ => legacy(request),
    })
    .await;
    let _client = connect(&mock).await.unwrap();
    eventually(|| mock.requests("GET").len() == 4).await;
    let gets = mock.requests("GET");
    let last: Vec<_> = gets.iter().map(|request| request.header("last-event-id")).collect();
    assert_eq!(last, [None, Some("e1"), Some("e1"), Some("e2")]);
    assert!(gets[1].at - gets[0].at >= Duration::from_millis(90));
}

#[tokio::test(start_paused = true)]
async fn a_broken_response_stream_is_resumed_after_the_servers_retry_time() {
    let pending = Arc::new(Mutex::new(None::<Value>));
    let slot = Arc::clone(&pending);
    let mock =
        Mock::start(move |request| match (&*request.rpc(), request.header("last-event-id")) {
            ("tools/call", _) => {
                *slot.lock().unwrap() = Some(request.response(text_result("resumed")));
                let priming = BodyStep::Bytes("id: p-1\nretry: 500\ndata: \n\n".into());
                Answer::events(vec![priming, BodyStep::Wait(50)])
            }
            ("GET", Some("p-1")) => {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": 1}});
                Answer::events(vec![event_with_id("p-2", &progress), BodyStep::Break])
            }
            ("GET", Some("p-2")) => {
                let result = slot.lock().unwrap().take().expect("asked once");
                Answer::events(vec![event_with_id("p-3", &result)])
            }
            _ => legacy(request),
        })
        .await;
    let client = connect(&mock).await.unwrap();
    let start = Instant::now();
    assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "resumed");
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    let gets = mock.requests("GET");
    let last: Vec<_> = gets.iter().map(|request| request.header("last-event-id")).collect();
    assert_eq!(last, [None, Some("p-1"), Some("p-2")]);
    let call = &mock.requests("tools/call")[0];
    let waited = gets[1].at - call.at;
    assert!(waited >= Duration::from_millis(500), "{waited:?}");
}

/// A call whose reply breaks off, and what it fails of where a GET that takes it up is answered with this status.
async fn lost_call(resumed: u16) -> (Mock, Error) {
    let mock =
        Mock::start(move |request| match (&*request.rpc(), request.header("last-event-id")) {
            ("tools/call", _) => {
                Answer::events(vec![BodyStep::Bytes("id: p-1\nretry: 20\ndata: \n\n".into())])
            }
            ("GET", Some(_)) => Answer::empty(resumed),
            _ => legacy(request),
        })
        .await;
    let client = connect(&mock).await.unwrap();
    let error = client.call_tool("echo", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost);
    (mock, error)
}

#[tokio::test(start_paused = true)]
async fn a_response_stream_that_can_not_be_resumed_fails_the_call_without_repeating_it() {
    let (mock, error) = lost_call(404).await;
    assert!(error.to_string().contains("tools/call"), "{error}");
    assert_eq!(mock.requests("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn attempts_to_resume_are_bounded() {
    let (mock, error) = lost_call(502).await;
    assert!(error.to_string().contains("HTTP 502"), "{error}");
    assert_eq!(mock.requests("GET").len(), 1 + 5);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_often_is_resumed_as_long_as_it_brings_events() {
    let pending = Arc::new(Mutex::new(None::<Value>));
    let slot = Arc::clone(&pending);
    let mock =
        Mock::start(move |request| match (&*request.rpc(), request.header("last-event-id")) {
            ("tools/call", _) => {
                *slot.lock().unwrap() = Some(request.response(text_result("resumed")));
                Answer::events(vec![BodyStep::Bytes("id: 0\nretry: 20\ndata: \n\n".into())])
            }
            ("GET", Some("20")) => {
                let result = slot.lock().unwrap().take().expect("asked once");
                Answer::events(vec![event_with_id("21", &result)])
            }
            ("GET", Some(last)) => {
                let next = last.parse::<u32>().unwrap() + 1;
                let message = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": next}});
                Answer::events(vec![event_with_id(&next.to_string(), &message), BodyStep::Break])
            }
            _ => legacy(request),
        })
        .await;
    let client = connect(&mock).await.unwrap();
    assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "resumed");
    assert_eq!(mock.requests("GET").len(), 1 + 21);
}

#[tokio::test(start_paused = true)]
async fn cancelling_tells_a_legacy_server() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => Answer::events(vec![BodyStep::Bytes(": wait\n\n".into()), BodyStep::Hold]),
        _ => legacy(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    mock.drop_received("tools/call", client.call_tool("echo", json!({}))).await;
    eventually(|| mock.requests("notifications/cancelled").len() == 1).await;
    let id = mock.requests("tools/call")[0].body["id"].clone();
    assert_eq!(mock.requests("notifications/cancelled")[0].body["params"]["requestId"], id);
    eventually(|| mock.dropped() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_cancels_its_question() {
    let told = Arc::new(Mutex::new(Vec::<Value>::new()));
    let source = Arc::clone(&told);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "tools/call" => {
            let form = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
            let asked = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form});
            Answer::events(vec![event(&asked), BodyStep::Feed(Arc::clone(&source))])
        }
        "notifications/cancelled" => {
            let params = json!({"requestId": "q"});
            let withdrawn = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            told.lock().unwrap().push(withdrawn);
            Answer::empty(202)
        }
        _ => legacy(request),
    })
    .await;
    let (asked, mut receiver) = mpsc::unbounded_channel();
    let builder = Client::builder(Target::url(&mock.url).unwrap()).on_elicit(move |_| {
        // Dropped with the question.
        let (guard, withdrawn) = oneshot::channel::<()>();
        asked.send(withdrawn).unwrap();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let client = builder.connect().await.unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("echo", json!({})).await }
    });
    let withdrawn = receiver.recv().await.expect("asked");
    call.abort();
    let withdrawn = tokio::time::timeout(Duration::from_secs(10), withdrawn).await;
    withdrawn.expect("taken back").unwrap_err();
    eventually(|| mock.dropped() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_no_legacy_requests() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "server/discover" => request.result(discovery()),
        _ => legacy(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    client.close().await;
    assert_eq!(mock.methods(), ["server/discover"]);
}
