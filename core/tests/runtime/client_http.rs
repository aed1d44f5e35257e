//! The client over HTTP in the modern era, against servers that behave as real ones do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Client, Revision,
    client::Target,
    error::{Error, ErrorKind},
    protocol::Tool,
    transport::memory_network::HOST,
};
use serde_json::{Value, json};

use crate::support::{
    http::{
        Answer, BodyStep, Mock, Seen, discovery, event, eventually, text_result, tool, tool_list,
    },
    ports::reserve_port,
};

async fn connect(mock: &Mock) -> Result<Client, Error> {
    Client::connect(Target::url(&mock.url)?).await
}

fn tools(request: &Seen) -> Answer {
    request.result(tool_list(&[tool("echo", json!({"type": "object"}))]))
}

fn modern(request: &Seen) -> Answer {
    match &*request.rpc() {
        "server/discover" => request.result(discovery()),
        "tools/list" => tools(request),
        "tools/call" => request.result(text_result("done")),
        "resources/read" => request.result(
            json!({"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"}),
        ),
        _ => request.error(404, -32601, Value::Null),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_slowly_is_not_taken_for_a_legacy_one() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "server/discover" => {
            let answer = request.response(discovery()).to_string();
            let (before, after) = answer.split_at(1);
            let steps = vec![
                BodyStep::Bytes(before.into()),
                BodyStep::Wait(50_000),
                BodyStep::Bytes(after.into()),
            ];
            Answer { steps, ..Answer::json(200, Value::Null) }
        }
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2026_07_28);
    assert_eq!(mock.methods(), ["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn sending_messages_each_is_one_post_with_the_metadata_of_its_body() {
    let mock = Mock::start(modern).await;
    let client = connect(&mock).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2026_07_28);
    assert_eq!(client.session_id(), None);
    assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "done");
    client.read_resource("file:///a%20b").await.unwrap();
    client.close().await;

    assert_eq!(mock.methods(), ["server/discover", "tools/list", "tools/call", "resources/read"]);
    for request in mock.seen() {
        assert_eq!((&*request.method, &*request.path), ("POST", "/mcp"));
        assert_eq!(request.header("host"), Some(&*format!("{HOST}:{}", mock.port)));
        assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), Some(&*request.rpc()));
        assert_eq!(request.header("mcp-session-id"), None);
    }
    assert_eq!(mock.requests("tools/call")[0].header("mcp-name"), Some("echo"));
    assert_eq!(mock.requests("resources/read")[0].header("mcp-name"), Some("file:///a%20b"));
    assert_eq!(mock.requests("tools/list")[0].header("mcp-name"), None);
}

#[tokio::test(start_paused = true)]
async fn sequential_calls_share_one_connection_for_json_and_event_streams() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" if request.body["id"].as_u64() > Some(5) => {
            Answer::events(vec![event(&request.response(text_result("streamed")))])
        }
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    for _ in 0..10 {
        client.call_tool("echo", json!({})).await.unwrap();
    }
    assert_eq!(mock.requests("tools/call").len(), 10);
    // A reply whose end comes late may make the next call open a second one.
    assert!(mock.connections() <= 2, "{}", mock.connections());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_closed_while_it_was_idle_is_replaced() {
    let mock = Mock::start(|request| {
        let mut answer = modern(request);
        // The connection ends after each reply, without a word before.
        answer.headers.push(("Connection".into(), "close".into()));
        answer
    })
    .await;
    let client = connect(&mock).await.unwrap();
    for _ in 0..3 {
        client.call_tool("echo", json!({})).await.unwrap();
    }
    assert_eq!(mock.connections(), 5);
}

#[tokio::test(start_paused = true)]
async fn parameters_are_mirrored_as_the_listed_schema_says() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "query": {"type": "string"},
    }});
    let mock = Mock::start(move |request| match &*request.rpc() {
        "tools/list" => request.result(tool_list(&[
            tool("sql", schema.clone()),
            tool("broken", json!({"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}})),
        ])),
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let arguments = json!({"region": "Hello, 世界", "count": 42, "dry": false, "query": "select"});
    client.call_tool("sql", arguments).await.unwrap();
    client.call_tool("sql", json!({"region": "", "count": null})).await.unwrap();
    let calls = mock.requests("tools/call");
    assert_eq!(mock.requests("tools/list").len(), 1, "listed once, before the first call");
    assert_eq!(calls[0].header("mcp-param-region"), Some("=?base64?SGVsbG8sIOS4lueVjA==?="));
    assert_eq!(calls[0].header("mcp-param-count"), Some("42"));
    assert_eq!(calls[0].header("mcp-param-dry"), Some("false"));
    assert_eq!(calls[0].header("mcp-param-query"), None);
    assert_eq!(calls[1].header("mcp-param-region"), Some(""));
    assert_eq!(calls[1].header("mcp-param-count"), None);

    for count in [json!(1_u64 << 53), json!(1.5)] {
        let refused = client.call_tool("sql", json!({"count": count})).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Misuse, "{refused}");
        assert!(refused.message.contains("'count'"), "{refused}");
    }
    assert_eq!(mock.requests("tools/call").len(), 2, "what no header can say is not sent");

    let listed = client.list::<Tool>().await.unwrap();
    let names: Vec<_> = listed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["sql"], "a tool with an invalid annotation is left out");
}

#[tokio::test(start_paused = true)]
async fn a_header_mismatch_makes_the_client_list_the_tools_again_and_repeat_once() {
    let lists = AtomicUsize::new(0);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "tools/list" => {
            let header = if lists.fetch_add(1, Ordering::Relaxed) == 0 { "Old" } else { "New" };
            let property = json!({"type": "string", "x-mcp-header": header});
            let schema = json!({"type": "object", "properties": {"a": property}});
            request.result(tool_list(&[tool("echo", schema)]))
        }
        "tools/call" if request.header("mcp-param-new").is_none() => {
            request.error(400, -32020, Value::Null)
        }
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    client.call_tool("echo", json!({"a": "x"})).await.unwrap();
    assert_eq!(mock.methods()[1..], ["tools/list", "tools/call", "tools/list", "tools/call"]);
    let ids: Vec<_> =
        mock.requests("tools/call").iter().map(|request| request.body["id"].clone()).collect();
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_mismatches_is_asked_twice_and_no_more() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => request.error(400, -32020, Value::Null),
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let error = client.call_tool("echo", json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Protocol, Some(-32020)));
    assert_eq!(mock.requests("tools/call").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_version_is_tried_again_if_the_server_lists_it() {
    let first = AtomicUsize::new(0);
    let mock = Mock::start(move |request| {
        if first.fetch_add(1, Ordering::Relaxed) == 0 {
            let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
            return request.error(400, -32022, data);
        }
        modern(request)
    })
    .await;
    let client = connect(&mock).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2026_07_28);
    assert_eq!(mock.methods(), ["server/discover", "server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_rejecting_its_own_version_is_given_up() {
    let mock = Mock::start(|request| {
        request.error(400, -32022, json!({"supported": ["2026-07-28"], "requested": "2026-07-28"}))
    })
    .await;
    let error = connect(&mock).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert_eq!(mock.methods(), ["server/discover", "server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn cancellation_closes_the_response_stream_without_a_notification() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => Answer::events(vec![BodyStep::Bytes(": wait\n\n".into()), BodyStep::Hold]),
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    mock.drop_received("tools/call", client.call_tool("echo", json!({}))).await;
    eventually(|| mock.dropped() == 1).await;
    assert!(mock.requests("notifications/cancelled").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_closes_the_response_stream_too() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => Answer::json(200, Value::Null).hold(),
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let hurried = client.with_options(|options| options.timeout = Some(Duration::from_millis(500)));
    let error = hurried.call_tool("echo", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    eventually(|| mock.dropped() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_come_on_the_response_stream_before_the_result() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => {
            let token = &request.body["params"]["_meta"]["progressToken"];
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1}});
            Answer::events(vec![
                BodyStep::Bytes(": comment\r\n\r\nid: 1\r\ndata:\r\n\r\n".into()),
                event(&progress),
                event(&request.response(text_result("done"))),
            ])
        }
        _ => modern(request),
    })
    .await;
    let steps = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&steps);
    let client = Client::builder(Target::url(&mock.url).unwrap())
        .on_progress(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .connect()
        .await
        .unwrap();
    assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "done");
    assert_eq!(steps.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_fails_its_call_only() {
    let calls = AtomicUsize::new(0);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "tools/call" => match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::events(vec![BodyStep::Bytes("id: 1\ndata:\n\n".into())]),
            1 => Answer::events(vec![BodyStep::Bytes(": x\n\n".into()), BodyStep::Break]),
            2 => Answer::json(200, json!({"jsonrpc": "2.0", "id": 99, "result": {}})),
            3 => Answer::empty(202),
            4 => Answer::text(500, "<html>out of\n memory</html>"),
            5 => Answer::text(200, "hello"),
            _ => modern(request),
        },
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let mut errors = Vec::new();
    for _ in 0..6 {
        errors.push(client.call_tool("echo", json!({})).await.unwrap_err());
    }
    let kinds: Vec<_> = errors.iter().map(|error| error.kind).collect();
    let (lost, protocol) = (ErrorKind::Lost, ErrorKind::Protocol);
    assert_eq!(kinds, [lost, lost, protocol, protocol, lost, protocol]);
    assert_eq!(errors[4].http_status, Some(500));
    let text = errors[4].to_string();
    assert!(text.starts_with(&mock.url), "{text}");
    assert!(text.contains("tools/call: HTTP 500"), "{text}");
    assert!(text.contains("<html>out of memory</html>"), "{text}");
    assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "done");
    assert!(mock.requests("GET").is_empty(), "streams of the modern era are not resumable");
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_fails_its_call_and_nothing_else() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => {
            let long = request.response(text_result(&"x".repeat(20_000)));
            match request.body["params"]["arguments"]["events"].as_bool() {
                Some(true) => Answer::events(vec![event(&long)]),
                _ => Answer::json(200, long),
            }
        }
        _ => modern(request),
    })
    .await;
    let target = Target::url(&mock.url).unwrap();
    let client = Client::builder(target)
        .options(|options| options.max_message = 10_000)
        .connect()
        .await
        .unwrap();
    for arguments in [json!({"events": true}), json!({})] {
        let error = client.call_tool("echo", arguments).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
        assert!(error.to_string().contains("10000 bytes (max_message"), "{error}");
    }
    client.list::<Tool>().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_no_message_fails_its_call() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => {
            let mut response = request.response(text_result("wrong"));
            response["method"] = Value::Null;
            match request.body["params"]["arguments"]["events"].as_bool() {
                Some(true) => Answer::events(vec![event(&response), BodyStep::Hold]),
                _ => Answer::json(200, response),
            }
        }
        _ => modern(request),
    })
    .await;
    let target = Target::url(&mock.url).unwrap();
    let builder =
        Client::builder(target).options(|options| options.timeout = Some(Duration::from_secs(5)));
    let client = builder.connect().await.unwrap();
    for arguments in [json!({"events": true}), json!({})] {
        let error = client.call_tool("echo", arguments).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
        assert!(error.to_string().contains("can't be read"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_user_go_with_every_request_and_to_no_other_origin() {
    let thief = Mock::start(modern).await;
    let elsewhere = format!("http://localhost:{}/mcp", thief.port);
    let mock = Mock::start(move |request| match (&*request.rpc(), &*request.path) {
        ("server/discover", "/mcp") => Answer::empty(307).with("Location", "/mcp/"),
        ("tools/call", _) => Answer::empty(307).with("Location", &elsewhere),
        _ => modern(request),
    })
    .await;
    let client = Client::builder(Target::url(&mock.url).unwrap())
        .options(|options| {
            options.headers = vec![
                ("Authorization".into(), "Bearer secret".into()),
                ("X-Tenant".into(), "a".into()),
            ];
        })
        .connect()
        .await
        .unwrap();
    let error = client.call_tool("echo", json!({})).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("a different origin"), "{text}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    assert!(thief.seen().is_empty());
    for request in mock.seen() {
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        assert_eq!(request.header("x-tenant"), Some("a"));
    }
    let paths: Vec<_> = mock.seen().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/mcp", "/mcp/", "/mcp/", "/mcp/"], "the new place is remembered");
}

#[tokio::test(start_paused = true)]
async fn headers_that_can_not_be_sent_are_refused_without_showing_their_value() {
    for (name, value, problem) in [
        ("Authorization", "Bearer\nsecret", "line end"),
        ("bad name", "secret", "not a valid header name"),
        ("Content-Length", "secret", "leave it out"),
    ] {
        let target = Target::url("http://127.0.0.1:9/mcp").unwrap();
        let error = Client::builder(target)
            .options(|options| options.headers = vec![(name.into(), value.into())])
            .connect()
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        assert!(error.to_string().contains(problem), "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    let target = Target::url("tcp://127.0.0.1:9").unwrap();
    let error = Client::builder(target)
        .options(|options| options.headers = vec![("a".into(), "b".into())])
        .connect()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("takes no headers"), "{error}");
}

#[tokio::test]
async fn connection_errors_are_reported_with_the_fix() {
    let (port, _reserved) = reserve_port();
    let target = Target::url(&format!("http://127.0.0.1:{port}/mcp?key=secret")).unwrap();
    let error = Client::connect(target).await.unwrap_err();
    assert_eq!((error.kind, error.phase), (ErrorKind::Connect, Some("connect")));
    let text = error.to_string();
    assert!(text.contains(&format!("http://127.0.0.1:{port}/mcp?…")), "{text}");
    assert!(text.contains("is the server running?") && !text.contains("secret"), "{text}");

    let mock = Mock::start(|_| Answer::text(401, "who are you?")).await;
    let error = connect(&mock).await.unwrap_err();
    assert_eq!((error.kind, error.http_status), (ErrorKind::Auth, Some(401)));
    assert!(error.to_string().contains("the option auth"), "{error}");
    assert_eq!(mock.methods(), ["server/discover"]);
    let target = Target::url(&mock.url).unwrap();
    let builder = Client::builder(target)
        .options(|options| options.headers.push(("authorization".into(), "Bearer old".into())));
    let error = builder.connect().await.unwrap_err();
    assert!(error.to_string().contains("the server rejected the credentials"), "{error}");

    let mock = Mock::start(|_| Answer::text(404, "nothing here")).await;
    let error = connect(&mock).await.unwrap_err();
    assert_eq!(mock.methods(), ["server/discover", "initialize", "GET"]);
    assert!(error.to_string().contains("/mcp"), "{error}");

    // A server at another path answers with an error of JSON-RPC.
    let mock = Mock::start(|request| request.error(404, -32600, Value::Null)).await;
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let builder = Client::builder(Target::url(&mock.url).unwrap())
            .options(|options| options.revisions = vec![revision]);
        let error = builder.connect().await.unwrap_err();
        assert_eq!(error.http_status, Some(404), "{error}");
        assert!(error.hint.as_ref().is_some_and(|hint| hint.starts_with("check the path")));
    }

    let garbage = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Target::url(&format!("http://{}/", garbage.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        while let Ok((mut stream, _)) = garbage.accept().await {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9\r\n\r\n").await;
        }
    });
    let error = Client::connect(target).await.unwrap_err();
    assert!(error.to_string().contains("not HTTP/1.1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_are_answered_each_with_its_own() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => {
            let text = request.body["params"]["arguments"]["n"].to_string();
            request.result(text_result(&text))
        }
        _ => modern(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let calls = (0..200).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let text = client.call_tool("echo", json!({"n": n})).await.unwrap().text();
            assert_eq!(text, n.to_string());
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn cookies_of_a_server_are_sent_back_to_it_and_to_nobody_else() {
    let sticky = |request: &Seen| {
        let mut answer = modern(request);
        for cookie in ["node=7; Path=/; HttpOnly", "other=x; Path=/elsewhere", "safe=x; Secure"] {
            answer.headers.push(("set-cookie".into(), cookie.into()));
        }
        answer
    };
    let (mock, other) = (Mock::start(sticky).await, Mock::start(modern).await);
    let client = connect(&mock).await.unwrap();
    client.call_tool("echo", json!({})).await.unwrap();
    let cookies: Vec<_> =
        mock.seen().iter().map(|seen| seen.header("cookie").map(str::to_owned)).collect();
    assert_eq!(cookies.first(), Some(&None));
    assert!(cookies[1..].iter().all(|cookie| cookie.as_deref() == Some("node=7")), "{cookies:?}");
    // Another client has none of them.
    connect(&mock).await.unwrap();
    assert!(mock.seen().last().is_some_and(|seen| seen.header("cookie").is_none()));
    connect(&other).await.unwrap();
    assert!(other.seen().iter().all(|seen| seen.header("cookie").is_none()));
}
