//! A client's processing of responses: lists, tools, questions, events, and misbehaving servers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{
    client::{Client, Operation, Target},
    error::{Error, ErrorKind},
    protocol::{
        CompletionTarget, ElicitAction, ElicitRequestParams, ElicitResult, LoggingLevel, Prompt,
        ResourceContents, Revision, Tool, json as raw_json,
    },
};
use serde_json::{Value, json};

use crate::support::stream::{self, error, pause, receive, result, server};

const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn text(message: &Value, text: &str) -> Value {
    result(message, &json!({"content": [{"type": "text", "text": text}]}))
}

async fn connect(target: Target) -> Client {
    Client::connect(target).await.expect("connects")
}

#[tokio::test(start_paused = true)]
async fn lists_fetch_every_page() {
    let (target, _) = server("2026-07-28", |message| {
        let page = match message["params"]["cursor"].as_str() {
            None => json!({"prompts": [{"name": "a"}], "nextCursor": "1"}),
            Some("1") => json!({"prompts": [{"name": "b"}]}),
            _ => return vec![error(message, -32602)],
        };
        vec![result(message, &page)]
    });
    let client = connect(target).await;
    let names: Vec<_> = client
        .list::<Prompt>()
        .await
        .expect("lists")
        .into_iter()
        .map(|prompt| prompt.name)
        .collect();
    assert_eq!(names, ["a", "b"]);
    let page = client.list_page::<Prompt>(Some("1".into())).await.expect("a page");
    assert_eq!((page.items[0].name.as_str(), page.next_cursor), ("b", None));
    let refused = client.list_page::<Prompt>(Some("x".into())).await.expect_err("a bad cursor");
    assert_eq!(refused.code, Some(-32602));
}

#[tokio::test(start_paused = true)]
async fn a_cyclic_list_is_an_error() {
    let (target, _) = server("2025-11-25", |message| {
        vec![result(message, &json!({"tools": [], "nextCursor": "again"}))]
    });
    let failure = connect(target).await.list::<Tool>().await.expect_err("circles");
    assert!(failure.message.contains("again") && failure.target.is_some(), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_list_share_one_time_limit() {
    let mut next = 0;
    let (target, _) = server("2025-11-25", move |message| {
        next += 1;
        vec![pause(10), result(message, &json!({"tools": [], "nextCursor": next.to_string()}))]
    });
    let client = connect(target).await.with_options(|options| {
        options.timeout = Some(Duration::from_secs(1));
    });
    let late = client.list::<Tool>().await.expect_err("the list does not end");
    assert_eq!(late.kind, ErrorKind::Timeout, "{late:?}");
    assert!(late.message.contains("tools/list") && late.message.contains("pages"), "{late:?}");
}

/// One tool whose result is wrapped; counts how often it was listed.
fn wrapping(counter: Arc<Mutex<usize>>) -> Target {
    server("2025-11-25", move |message| match message["method"].as_str() {
        Some("tools/list") => {
            *counter.lock().expect("no panic") += 1;
            let schema = json!({"type": "object", "x-gudgeon-wrapped": true,
                "properties": {"result": {"type": "integer"}}});
            vec![result(
                message,
                &json!({"tools": [{"name": "add", "inputSchema": {"type": "object",
                    "required": ["a"]}, "outputSchema": schema}]}),
            )]
        }
        _ => vec![result(message, &json!({"content": [], "structuredContent": {"result": 3}}))],
    })
    .0
}

#[tokio::test(start_paused = true)]
async fn data_is_unwrapped_and_the_list_is_fetched_once_for_it() {
    let counter = Arc::new(Mutex::new(0));
    let client = connect(wrapping(Arc::clone(&counter))).await;
    for _ in 0..3 {
        let sum = client.call_tool("add", json!({"a": 1})).await.expect("answers");
        assert_eq!(sum.data::<i64>().expect("a number"), 3);
    }
    assert_eq!(*counter.lock().expect("no panic"), 1);
}

#[tokio::test(start_paused = true)]
async fn structured_content_is_required_where_the_revision_has_it() {
    for (revision, is_required) in [("2025-03-26", false), ("2025-06-18", true)] {
        let (target, _) = server(revision, |message| match message["method"].as_str() {
            Some("tools/list") => {
                let schema = json!({"type": "array"});
                let tool = json!({"name": "t", "inputSchema": {}, "outputSchema": schema});
                vec![result(message, &json!({"tools": [tool]}))]
            }
            _ => vec![text(message, "[1]")],
        });
        let client = connect(target).await;
        client.list::<Tool>().await.expect("lists");
        match client.call_tool("t", ()).await {
            Ok(result) => {
                assert_eq!(
                    (result.data::<Vec<u8>>().expect("numbers"), is_required),
                    (vec![1], false)
                );
            }
            Err(error) => {
                assert!(
                    is_required && error.message.contains("no structured content"),
                    "{error:?}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_are_checked_before_sending_if_enabled() {
    let target = wrapping(Arc::default());
    let client = Client::builder(target)
        .options(|options| options.validate = true)
        .connect()
        .await
        .expect("connects");
    let refused = client.call_tool("add", json!({"b": 1})).await.expect_err("a is missing");
    assert_eq!(refused.kind, ErrorKind::Misuse);
    client.call_tool("add", json!({"a": 1})).await.expect("answers");
    let refused = client.call_tool("add", [1]).await.expect_err("no object");
    assert!(refused.message.contains("must be an object"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_result_against_its_schema_is_an_error_unless_the_schema_changed() {
    let mut lists = 0;
    let (target, _) = server("2025-11-25", move |message| {
        if message["method"] != "tools/list" {
            let value = message["params"]["arguments"]["n"].clone();
            return vec![result(
                message,
                &json!({"content": [], "structuredContent": {"n": value}}),
            )];
        }
        lists += 1;
        let kind = if lists == 1 { "integer" } else { "string" };
        let schema = json!({"type": "object", "properties": {"n": {"type": kind}}});
        vec![result(
            message,
            &json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]}),
        )]
    });
    let client = connect(target).await;
    client.list::<Tool>().await.expect("lists");
    client.call_tool("t", json!({"n": "x"})).await.expect("the schema was stale");
    let failure = client.call_tool("t", json!({"n": 1})).await.expect_err("forbidden");
    assert_eq!(failure.kind, ErrorKind::Protocol);
    let lenient = client.with_options(|options| options.raise_on_error = false);
    let result = lenient.call_tool("t", json!({"n": 1})).await.expect("the result as it is");
    assert_eq!(result.data::<Value>().expect("JSON"), json!({"n": 1}));
    assert!(failure.message.contains("output schema"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_an_error_unless_told_not_to() {
    let (target, _) = server("2026-07-28", |message| {
        vec![result(
            message,
            &json!({"isError": true, "content": [{"type": "text", "text": "no luck"}]}),
        )]
    });
    let client = connect(target).await;
    let failure = client.call_tool("t", ()).await.expect_err("failed");
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Tool, "no luck"));
    assert!(failure.into_details().data.is_some_and(|data| data.get().contains("isError")));
    let client = client.with_options(|options| options.raise_on_error = false);
    let result = client.call_tool("t", ()).await.expect("a result");
    assert_eq!((result.is_error, result.text().as_str()), (Some(true), "no luck"));
}

/// Asks for a name first: in a result, or by a request of its own.
fn asking(revision: &'static str) -> (Target, stream::Received) {
    let mut waiting = Value::Null;
    let question = json!({"mode": "form", "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}}});
    server(revision, move |message| {
        if message.get("method").is_none() {
            let answer = message["result"]["content"]["value"].as_str().unwrap_or("nobody");
            return vec![text(&waiting, answer)];
        }
        if message["method"] != "tools/call" {
            return vec![];
        }
        if revision != "2026-07-28" {
            waiting = message.clone();
            return vec![
                json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}),
            ];
        }
        match message["params"]["inputResponses"]["who"]["content"]["value"].as_str() {
            Some(name) => vec![text(message, name)],
            None if message["params"]["inputResponses"]["who"]["action"] == "decline" => {
                vec![text(message, "nobody")]
            }
            None => vec![result(
                message,
                &json!({"resultType": "input_required", "requestState": "s/1",
                "inputRequests": {"who": {"method": "elicitation/create", "params": question}}}),
            )],
        }
    })
}

#[tokio::test(start_paused = true)]
async fn one_callback_answers_questions_of_both_eras() {
    for era in ERAS {
        let (target, mut received) = asking(era);
        let client = Client::builder(target).on_elicit(|question| async move {
            let ElicitRequestParams::Form(form) = question else { panic!("expected a form") };
            assert_eq!(form.message, "Who?");
            Ok(ElicitResult {
                action: ElicitAction::Accept,
                content: Some(raw_json::raw(r#"{"value":"Ada"}"#.into())),
                result_type: None,
                meta: None,
            })
        });
        let client = client.connect().await.expect("connects");
        let answer = client.call_tool("greet", json!({"x": 1})).await.expect("answers");
        assert_eq!(answer.data::<String>().expect("a string"), "Ada");
        if era == "2026-07-28" {
            let first = receive(&mut received, "tools/call").await;
            let second = receive(&mut received, "tools/call").await;
            assert_ne!(first["id"], second["id"]);
            assert_eq!(second["params"]["requestState"], "s/1");
            assert_eq!(second["params"]["arguments"], json!({"x": 1}));
            assert!(first["params"].get("requestState").is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn declining_is_an_answer_in_both_eras() {
    for era in ERAS {
        let (target, _) = asking(era);
        let client = Client::builder(target)
            .on_elicit(|_| async { Err(Error::new(ErrorKind::Declined, "no")) })
            .connect()
            .await
            .expect("connects");
        assert_eq!(client.call_tool("greet", ()).await.expect("answers").text(), "nobody");
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_does_not_leave_the_server_waiting() {
    let (target, _) = asking("2025-11-25");
    let client = Client::builder(target)
        .on_elicit(|_| async { panic!("a bug of the user's") })
        .connect()
        .await
        .expect("connects");
    assert_eq!(client.call_tool("greet", ()).await.expect("answers").text(), "nobody");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_callback_is_an_error() {
    let (target, _) = asking("2026-07-28");
    let failure = connect(target).await.call_tool("greet", ()).await.expect_err("nobody");
    assert_eq!(failure.kind, ErrorKind::Protocol);
    assert!(failure.message.contains("elicitation/create"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_rounds_is_limited() {
    let (target, mut received) = server("2026-07-28", |message| {
        vec![result(message, &json!({"resultType": "input_required", "requestState": "x"}))]
    });
    let client = Client::builder(target)
        .options(|options| options.max_rounds = 3)
        .connect()
        .await
        .expect("connects");
    let failure = client.get_prompt("p", ()).await.expect_err("for ever");
    assert!(failure.message.contains("3 rounds") && failure.hint.is_some(), "{failure}");
    for _ in 0..4 {
        receive(&mut received, "prompts/get").await;
    }
    assert!(received.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_single_round_without_callbacks() {
    let (target, _) = asking("2026-07-28");
    let client = connect(target).await;
    let round = |answers: Option<&str>, state: Option<&str>| Operation::CallToolRound {
        name: "greet".into(),
        arguments: None,
        answers: answers.map(|answers| raw_json::raw(answers.into())),
        state: state.map(ToOwned::to_owned),
    };
    let first = client.call(round(None, None), client.options()).await.expect("a round");
    assert!(first.is_input_required && first.result.get().contains("s/1"));
    let answers = r#"{"who":{"action":"accept","content":{"value":"Eve"}}}"#;
    let last = client.call(round(Some(answers), Some("s/1")), client.options()).await;
    let last = last.expect("an answer");
    assert!(!last.is_input_required && last.result.get().contains("Eve"));
}

#[tokio::test(start_paused = true)]
async fn roots_are_sent_and_changes_notified() {
    let mut call = Value::Null;
    let (target, mut received) =
        server("2025-11-25", move |message| match message["method"].as_str() {
            None => vec![text(&call, &message["result"]["roots"].to_string())],
            Some("tools/call") => {
                call = message.clone();
                vec![json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})]
            }
            _ => vec![],
        });
    let builder =
        Client::builder(target).options(|options| options.roots = Some(vec!["file:///a".into()]));
    let client = builder.connect().await.expect("connects");
    let roots = client.call_tool("t", ()).await.expect("answers").text();
    assert_eq!(roots, r#"[{"uri":"file:///a"}]"#);
    client.set_roots(["file:///b"]).expect("connected");
    receive(&mut received, "notifications/roots/list_changed").await;
    let roots = client.call_tool("t", ()).await.expect("answers").text();
    assert_eq!(roots, r#"[{"uri":"file:///b"}]"#);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_names_target_method_tool_and_limit() {
    let (target, mut received) = server("2026-07-28", |_| vec![]);
    let client = connect(target).await;
    let client = client.with_options(|options| options.timeout = Some(Duration::from_millis(300)));
    let failure = client.call_tool("t", ()).await.expect_err("silence");
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert_eq!(failure.message, r#"stream: tools/call "t": no answer and no progress for 0.3 s"#);
    receive(&mut received, "notifications/cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it() {
    let (target, mut received) = server("2025-11-25", |_| vec![]);
    let client = connect(target).await;
    let call = client.call_tool("t", ());
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    let sent = receive(&mut received, "tools/call").await;
    let notified = receive(&mut received, "notifications/cancelled").await;
    assert_eq!(notified["params"]["requestId"], sent["id"]);
}

#[tokio::test(start_paused = true)]
async fn closing_cancels_pending_calls() {
    for era in ERAS {
        let (target, mut received) = server(era, |_| Vec::new());
        let client = connect(target).await;
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call_tool("slow", ()).await.expect_err("closed") }
        });
        let id = receive(&mut received, "tools/call").await["id"].clone();
        client.close().await;
        let cancelled = receive(&mut received, "notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], id);
        assert_eq!(call.await.expect("ends").kind, ErrorKind::Lost);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_and_changes_reach_their_callbacks_in_order() {
    for era in ERAS {
        let (target, mut received) = server(era, |message| {
            let token = message["params"]["_meta"]["progressToken"].clone();
            let notification = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
            vec![
                notification(
                    "notifications/progress",
                    json!({"progressToken": token, "progress": 1}),
                ),
                notification("notifications/message", json!({"level": "error", "data": "x"})),
                notification(
                    "notifications/progress",
                    json!({"progressToken": token, "progress": 2}),
                ),
                notification("notifications/tools/list_changed", json!({})),
                text(message, "done"),
            ]
        });
        let notified = Arc::new(Mutex::new(Vec::new()));
        let note = |notified: &Arc<Mutex<Vec<String>>>| {
            let notified = Arc::clone(notified);
            move |what: String| notified.lock().expect("no panic").push(what)
        };
        let (step, log, list) = (note(&notified), note(&notified), note(&notified));
        let client = Client::builder(target)
            .on_progress(move |progress| step(format!("progress {}", progress.progress)))
            .on_log(move |message| log(format!("log {}", message.data.get())))
            .on_list_changed(move |kind| list(format!("{kind:?} changed")))
            .connect()
            .await
            .expect("connects");
        client.call_tool("t", ()).await.expect("answers");
        let notified = notified.lock().expect("no panic").clone();
        let level = &receive(&mut received, "tools/call").await["params"]["_meta"]["io.modelcontextprotocol/logLevel"];
        let mut expected = vec!["progress 1", "log \"x\"", "progress 2"];
        if era == "2026-07-28" {
            // Changes that no subscription asked for are none.
            assert_eq!(*level, "info");
        } else {
            expected.push("Tools changed");
            assert!(level.is_null());
        }
        assert_eq!(notified, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_set_in_both_eras() {
    let (target, mut received) = server("2025-11-25", |message| vec![result(message, &json!({}))]);
    let builder =
        Client::builder(target).options(|options| options.log_level = Some(LoggingLevel::Warning));
    let client = builder.connect().await.expect("connects");
    assert_eq!(receive(&mut received, "logging/setLevel").await["params"]["level"], "warning");
    client.ping().await.expect("answers");
    receive(&mut received, "ping").await;

    let (target, mut received) = server("2026-07-28", |message| vec![text(message, "")]);
    let client = connect(target).await;
    client.set_log_level(LoggingLevel::Error).await.expect("kept");
    client.call_tool("t", ()).await.expect("answers");
    client.ping().await.expect("answers");
    let sent = receive(&mut received, "tools/call").await;
    assert_eq!(sent["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "error");
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_ends_every_call() {
    for era in ERAS {
        let (target, _) = server(era, |_| vec![json!("hang up")]);
        let client = connect(target).await;
        let (one, other) = tokio::join!(client.call_tool("a", ()), client.list::<Prompt>());
        for failure in [one.expect_err("lost"), other.expect_err("lost")] {
            assert_eq!(failure.kind, ErrorKind::Lost);
            assert!(failure.message.contains("closed the connection"), "{failure}");
        }
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn completion_resources_and_vendor_methods() {
    let (target, mut received) = server("2025-11-25", |message| match message["method"].as_str() {
        Some("completion/complete") => {
            vec![result(message, &json!({"completion": {"values": ["red"]}}))]
        }
        Some("resources/read") => {
            vec![result(
                message,
                &json!({"contents": [{"uri": message["params"]["uri"], "text": "t"}]}),
            )]
        }
        Some("acme/x") => vec![result(message, &message["params"])],
        _ => vec![],
    });
    let client = connect(target).await;
    let target = CompletionTarget::Prompt("paint".into());
    let completion = client.complete(target, "colour", "r", ()).await.expect("completes");
    assert_eq!(completion.values, ["red"]);
    let sent = receive(&mut received, "completion/complete").await;
    assert_eq!(sent["params"]["ref"], json!({"type": "ref/prompt", "name": "paint"}));

    client.read_resource("docs://a").await.expect("reads");
    let read = client.read_template("docs://{name}", json!({"name": "a b"})).await.expect("reads");
    let [ResourceContents::Text(contents)] = &read.contents[..] else { panic!("{read:?}") };
    assert_eq!(contents.uri, "docs://a%20b");

    let echoed = client.request("acme/x", json!({"n": 1})).await.expect("answers");
    assert!(echoed.get().starts_with(r#"{"n":1"#), "{}", echoed.get());
    client.notify("notifications/acme", json!({"a": 1})).expect("connected");
    assert_eq!(receive(&mut received, "notifications/acme").await["params"], json!({"a": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_fails_its_call_and_the_stream_goes_on() {
    let (target, _) = server("2025-11-25", |message| {
        let size = message["params"]["arguments"]["size"].as_u64().unwrap_or_default();
        vec![text(message, &"x".repeat(usize::try_from(size).unwrap_or_default()))]
    });
    let client = Client::builder(target)
        .options(|options| options.max_message = 10_000)
        .connect()
        .await
        .expect("connects");
    let failure = client.call_tool("t", json!({"size": 20_000})).await.expect_err("too long");
    assert!(failure.message.contains("10000 bytes"), "{failure}");
    client.call_tool("t", json!({"size": 9_000})).await.expect("answers");
}

#[tokio::test(start_paused = true)]
async fn pinned_revisions_are_kept() {
    let (target, _) = server("2025-11-25", |_| vec![]);
    let builder =
        Client::builder(target).options(|options| options.revisions = vec![Revision::V2026_07_28]);
    let failure = builder.connect().await.expect_err("legacy");
    assert_eq!((failure.kind, failure.phase), (ErrorKind::Unsupported, Some("negotiate")));
    assert!(failure.message.starts_with("stream: "), "{failure}");
}
