//! How a client answers what a server asks: the same callbacks in every era, over a scripted server and over our own.
#![cfg(feature = "runtime")]

#[path = "support/stream.rs"]
mod stream;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Client, Context, Revision, Server, ToolError,
    client::{BoxFuture, Question, Target, ToolRound},
    error::{Error, ErrorKind},
    protocol::{
        ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitAction,
        ElicitRequestParams, ElicitResult, Raw, Role, Root, SamplingMessage, Tool,
        json as raw_json,
    },
};
use serde_json::{Value, json};
use stream::{result, server};
use tokio::sync::{Barrier, mpsc};

const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

fn accept(content: Option<Value>) -> ElicitResult {
    ElicitResult {
        action: ElicitAction::Accept,
        content: content.map(|it| raw_json::to_raw(&it)),
        result_type: None,
        meta: None,
    }
}

fn form(properties: &Value, required: &Value) -> Value {
    json!({"message": "Fill in", "requestedSchema": {
        "type": "object", "properties": properties, "required": required,
    }})
}

fn text(message: &Value, text: &str) -> Value {
    result(message, &json!({"content": [{"type": "text", "text": text}]}))
}

/// A server whose one tool asks these questions at once, by key, and answers with the client's answers as text.
fn asking(era: &'static str, questions: Vec<(&'static str, &'static str, Value)>) -> Target {
    let mut call = Value::Null;
    let mut answers = serde_json::Map::new();
    let script = move |it: &Value| {
        if it["method"] == "tools/call" && era == "2026-07-28" {
            if let Some(given) = it["params"]["inputResponses"].as_object() {
                return vec![text(it, &Value::Object(given.clone()).to_string())];
            }
            let asked: serde_json::Map<_, _> = questions
                .iter()
                .map(|(key, method, params)| {
                    ((*key).to_owned(), json!({"method": method, "params": params}))
                })
                .collect();
            return vec![result(
                it,
                &json!({"resultType": "input_required", "inputRequests": asked, "requestState": "s"}),
            )];
        }
        if it["method"] == "tools/call" {
            call = it.clone();
            let ask = |(key, method, params): &(&str, &str, Value)| json!({"jsonrpc": "2.0", "id": key, "method": method, "params": params});
            return questions.iter().map(ask).collect();
        }
        if it["method"].is_null() {
            let answer = if it["error"].is_null() { &it["result"] } else { &it["error"] };
            answers.insert(it["id"].as_str().unwrap_or_default().to_owned(), answer.clone());
            if answers.len() == questions.len() {
                return vec![text(&call, &Value::Object(std::mem::take(&mut answers)).to_string())];
            }
        }
        vec![]
    };
    server(era, script).0
}

async fn answers(client: &Client) -> Value {
    let called = tokio::time::timeout(PATIENCE, client.call_tool("t", ())).await;
    let text = called.expect("in time").expect("answers").text();
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn what_was_left_open_has_its_default_in_every_era() {
    let asked = form(
        &json!({
            "name": {"type": "string", "default": "Eve"}, "age": {"type": "integer", "default": 30},
            "size": {"type": "string", "enum": ["s", "m"], "default": "m"},
            "sure": {"type": "boolean", "default": true}, "note": {"type": "string"},
        }),
        &json!(["name"]),
    );
    for era in ERAS {
        for given in [None, Some(json!({"age": 3}))] {
            let target = asking(era, vec![("q", "elicitation/create", asked.clone())]);
            let age = given.as_ref().map_or(30, |_| 3);
            let builder = Client::builder(target).on_elicit(move |_| {
                let given = given.clone();
                async { Ok(accept(given)) }
            });
            let client = builder.connect().await.expect("connects");
            let filled = json!({"name": "Eve", "age": age, "size": "m", "sure": true});
            assert_eq!(
                answers(&client).await["q"],
                json!({"action": "accept", "content": filled}),
                "{era}"
            );
        }
    }
}

#[tokio::test]
async fn who_says_no_or_visits_a_page_fills_in_nothing() {
    let asked = form(&json!({"name": {"type": "string", "default": "Eve"}}), &json!([]));
    let page =
        json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": "1"});
    for era in ERAS {
        let questions = vec![
            ("form", "elicitation/create", asked.clone()),
            ("page", "elicitation/create", page.clone()),
        ];
        let builder = Client::builder(asking(era, questions)).on_elicit(|it| async move {
            match it {
                ElicitRequestParams::Form(_) => Err(Error::new(ErrorKind::Declined, "no")),
                ElicitRequestParams::Url(page) => {
                    assert_eq!(page.url, "https://a.example");
                    Ok(accept(None))
                }
            }
        });
        let client = builder.connect().await.expect("connects");
        let given = answers(&client).await;
        assert_eq!(given["form"], json!({"action": "decline"}), "{era}");
        assert_eq!(given["page"], json!({"action": "accept"}), "{era}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_form_is_not_sent() {
    let asked = form(&json!({"age": {"type": "integer", "minimum": 0}}), &json!(["age"]));
    for (era, given) in ERAS.iter().flat_map(|era| {
        [json!({"age": "x"}), json!({"age": -1}), json!({})].map(|given| (*era, given))
    }) {
        let target = asking(era, vec![("q", "elicitation/create", asked.clone())]);
        let builder = Client::builder(target).on_elicit(move |_| {
            let given = given.clone();
            async { Ok(accept(Some(given))) }
        });
        let client = builder.connect().await.expect("connects");
        let problem = if era == "2025-11-25" {
            // The server is told, and the call goes on.
            answers(&client).await["q"]["message"].to_string()
        } else {
            let failure = client.call_tool("t", ()).await.expect_err("not sent");
            assert_eq!((failure.kind, failure.code), (ErrorKind::Protocol, None));
            failure.message
        };
        assert!(
            problem.contains("Fill in") && problem.contains("does not fit the form"),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_form_that_can_not_be_read_is_filled_in_all_the_same() {
    let asked = json!({"message": "?", "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "nonsense"}, "b": {"default": 1}},
    }});
    let target = asking("2026-07-28", vec![("q", "elicitation/create", asked)]);
    let builder = Client::builder(target).on_elicit(|_| async { Ok(accept(None)) });
    let client = builder.connect().await.expect("connects");
    assert_eq!(answers(&client).await["q"]["content"], json!({"b": 1}));
}

#[tokio::test]
async fn questions_of_one_round_are_answered_at_once() {
    let ask = |key| (key, "elicitation/create", form(&json!({}), &json!([])));
    for era in ERAS {
        let both = Arc::new(Barrier::new(2));
        let builder = Client::builder(asking(era, vec![ask("a"), ask("b")])).on_elicit(move |_| {
            let both = Arc::clone(&both);
            async move {
                both.wait().await;
                Ok(accept(None))
            }
        });
        let client = builder.connect().await.expect("connects");
        let accepted = json!({"action": "accept", "content": {}});
        assert_eq!(answers(&client).await, json!({"a": accepted, "b": accepted}), "{era}");
    }
}

#[tokio::test]
async fn more_questions_than_are_asked_at_once_are_all_answered_under_their_keys() {
    let keys: Vec<&'static str> =
        (0..200).map(|it| Box::leak(format!("k{it}").into_boxed_str()) as &str).collect();
    let ask = |key: &&'static str| {
        let schema = json!({"type": "object", "properties": {"key": {"type": "string"}}});
        (*key, "elicitation/create", json!({"message": key, "requestedSchema": schema}))
    };
    let most = Arc::new(AtomicUsize::new(0));
    let (open, highest) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most));
    let builder = Client::builder(asking("2026-07-28", keys.iter().map(ask).collect())).on_elicit(
        move |it| {
            let (open, highest) = (Arc::clone(&open), Arc::clone(&highest));
            async move {
                let ElicitRequestParams::Form(form) = it else { panic!("a form") };
                highest.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                open.fetch_sub(1, Ordering::SeqCst);
                Ok(accept(Some(json!({"key": form.message}))))
            }
        },
    );
    let client = builder.connect().await.expect("connects");
    let given = answers(&client).await;
    for key in &keys {
        assert_eq!(given[key]["content"]["key"], **key);
    }
    assert!((2..=64).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[tokio::test]
async fn the_first_answer_that_fails_withdraws_the_other_questions() {
    struct Withdrawn(mpsc::UnboundedSender<()>);
    impl Drop for Withdrawn {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let ask = |key| {
        (key, "elicitation/create", json!({"message": key, "requestedSchema": {"type": "object"}}))
    };
    let (told, mut withdrawn) = mpsc::unbounded_channel();
    let asked = Arc::new(Barrier::new(2));
    let builder = Client::builder(asking("2026-07-28", vec![ask("waits"), ask("fails")]))
        .on_elicit(move |it| {
            let (guard, asked) = (Withdrawn(told.clone()), Arc::clone(&asked));
            async move {
                let ElicitRequestParams::Form(form) = it else { panic!("a form") };
                asked.wait().await;
                if form.message == "fails" {
                    std::mem::forget(guard);
                    return Err(Error::new(ErrorKind::Misuse, "out of ink"));
                }
                let _until_withdrawn = guard;
                std::future::pending().await
            }
        });
    let client = builder.connect().await.expect("connects");
    let failure = client.call_tool("t", ()).await.expect_err("one failed");
    assert_eq!(failure.message, "out of ink");
    tokio::time::timeout(PATIENCE, withdrawn.recv()).await.expect("withdrawn").expect("told");
}

#[tokio::test]
async fn a_callback_that_panics_in_a_round_fails_the_call() {
    let asked = form(&json!({}), &json!([]));
    let target = asking("2026-07-28", vec![("q", "elicitation/create", asked)]);
    let builder = Client::builder(target).on_elicit(|_| async { panic!("a bug of the user's") });
    let client = builder.connect().await.expect("connects");
    let failure = client.call_tool("t", ()).await.expect_err("nobody answers");
    assert_eq!(failure.kind, ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_question_carries_its_key_where_the_server_says_it() {
    let named = json!({"message": "?", "requestedSchema": {"type": "object"}, "_meta": {"gudgeon/key": "name"}});
    for (era, params) in [
        ("2026-07-28", json!({"message": "?", "requestedSchema": {"type": "object"}})),
        ("2025-11-25", named),
    ] {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&keys);
        let answer = move |question: Question| -> BoxFuture<Result<Raw, Error>> {
            seen.lock().expect("no panic").push(question.key);
            Box::pin(async { Ok(raw_json::raw(r#"{"action":"cancel"}"#.into())) })
        };
        let target = asking(era, vec![("name", "elicitation/create", params)]);
        let builder = Client::builder(target).on_elicit_raw(Arc::new(answer));
        let client = builder.connect().await.expect("connects");
        assert_eq!(answers(&client).await["name"]["action"], "cancel");
        assert_eq!(*keys.lock().expect("no panic"), [Some("name".to_owned())], "{era}");
    }
}

/// Asks everything that a client can be asked.
fn curious() -> Server {
    async fn ask(ctx: Context) -> Result<String, ToolError> {
        let name = ctx.elicit::<String>("Your name?").await?;
        let page = ctx.elicit_url("Sign in", "https://a.example/in").await;
        let tool: Tool =
            serde_json::from_value(json!({"name": "look", "inputSchema": {"type": "object"}}))?;
        let request = CreateMessageRequestParams {
            messages: vec![SamplingMessage::user("Hello")],
            max_tokens: 10,
            tools: (ctx.revision() >= Revision::V2025_11_25).then(|| vec![tool]),
            ..CreateMessageRequestParams::default()
        };
        let sampled = ctx.sample(request).await?;
        let roots = ctx.roots().await?;
        Ok(format!("{name}, {}, {}, {}", page.is_ok(), sampled.model, roots[0].uri))
    }
    Server::new("curious").tool("ask", ask)
}

#[tokio::test]
async fn the_same_callbacks_answer_requests_and_rounds() {
    for (revision, expected) in [
        (Revision::V2025_06_18, "Eve, false, no tools, file:///a"),
        (Revision::V2025_11_25, "Eve, true, look, file:///a"),
        (Revision::V2026_07_28, "Eve, true, look, file:///a"),
    ] {
        let builder = Client::builder(curious())
            .revision(revision)
            .roots([Root::new("file:///a")])
            .on_elicit(|it| async move {
                Ok(match it {
                    ElicitRequestParams::Form(form) => {
                        assert_eq!(form.message, "Your name?");
                        accept(Some(json!({"value": "Eve"})))
                    }
                    ElicitRequestParams::Url(_) => accept(None),
                })
            })
            .on_sample(|it| async move {
                let tool = it.tools.and_then(|it| it.into_iter().next());
                Ok(CreateMessageResult {
                    role: Role::Assistant,
                    content: gudgeon::protocol::ContentBlock::text("Hi").into(),
                    model: tool.map_or_else(|| "no tools".into(), |it| it.name),
                    stop_reason: None,
                    result_type: None,
                    meta: None,
                })
            });
        let client = builder.connect().await.expect("connects");
        let said = client.call_tool("ask", ()).await.expect("answers").text();
        assert_eq!(said, expected, "{revision:?}");
    }
}

#[tokio::test]
async fn a_conversation_with_results_of_tools_in_disorder_is_refused() {
    let call = json!({"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "look", "input": {}}});
    let result = json!({"type": "tool_result", "toolUseId": "1", "content": []});
    let text = json!({"type": "text", "text": "so"});
    for (content, expected) in [
        (json!([result, text]), "Tool results mixed with other content"),
        (text, "Tool result missing in request"),
    ] {
        let messages = json!([call, {"role": "user", "content": content}]);
        let params = json!({"messages": messages, "maxTokens": 5});
        let target = asking("2025-11-25", vec![("q", "sampling/createMessage", params)]);
        let asks_nobody =
            |_| async { Err::<CreateMessageResult, _>(Error::new(ErrorKind::Protocol, "asked")) };
        let client =
            Client::builder(target).on_sample(asks_nobody).connect().await.expect("connects");
        let answer = &answers(&client).await["q"];
        assert_eq!((&answer["code"], &answer["message"]), (&json!(-32602), &json!(expected)));
    }
}

#[tokio::test]
async fn a_mode_that_was_not_declared_is_refused() {
    let page =
        json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": "1"});
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let fax = json!({"mode": "fax", "message": "?"});
    let capability = |json: Value| ClientCapabilities {
        elicitation: Some(serde_json::from_value(json).expect("a capability")),
        ..ClientCapabilities::default()
    };
    for (declared, taken) in [
        (None, [true, true]),
        (Some(capability(json!({}))), [true, false]),
        (Some(capability(json!({"form": {}}))), [true, false]),
        (Some(capability(json!({"url": {}}))), [false, true]),
    ] {
        let questions = [("form", &form), ("page", &page), ("fax", &fax)];
        let questions = questions.map(|(key, it)| (key, "elicitation/create", it.clone()));
        let mut builder = Client::builder(asking("2025-11-25", questions.to_vec()))
            .on_elicit(|_| async { Ok(accept(None)) });
        if let Some(capabilities) = declared {
            builder = builder.capabilities(capabilities);
        }
        let client = builder.connect().await.expect("connects");
        let answers = answers(&client).await;
        for (key, is_taken) in
            ["form", "page", "fax"].into_iter().zip(taken.into_iter().chain([false]))
        {
            let answer = &answers[key];
            assert_eq!(answer["action"] == "accept", is_taken, "{key}: {answer}");
            assert_eq!(answer["code"] == -32602, !is_taken, "{key}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_a_model_says_is_said_in_the_servers_words_or_refused() {
    for (era, blocks, expected) in [
        ("2025-06-18", 1, json!({"type": "text", "text": "0"})),
        ("2025-06-18", 2, Value::Null),
        ("2025-11-25", 1, json!([{"type": "text", "text": "0"}])),
    ] {
        let params = json!({"messages": [], "maxTokens": 5});
        let target = asking(era, vec![("q", "sampling/createMessage", params)]);
        let builder = Client::builder(target).on_sample(move |_| async move {
            let block = |at: usize| gudgeon::protocol::ContentBlock::text(at.to_string());
            Ok(CreateMessageResult {
                role: Role::Assistant,
                content: (0..blocks).map(block).collect::<Vec<_>>().into(),
                model: "m".into(),
                stop_reason: None,
                result_type: None,
                meta: None,
            })
        });
        let client = builder.connect().await.expect("connects");
        let answer = &answers(&client).await["q"];
        assert_eq!(answer["content"], expected, "{era}");
        assert_eq!(answer["code"] == -32603, expected.is_null(), "{answer}");
    }
}

#[tokio::test]
async fn a_page_that_is_done_is_told_to_who_was_sent_there() {
    let (sent, mut pages) = mpsc::unbounded_channel();
    let server = Server::new("pages").tool("sign_in", move |ctx: Context| {
        let sent = sent.clone();
        async move {
            let page = ctx.elicit_url("Sign in", "https://a.example/in").await?;
            let _ = sent.send(page.clone());
            Ok::<_, ToolError>(page)
        }
    });
    let (told, mut done) = mpsc::unbounded_channel();
    let builder = Client::builder(&server)
        .revision(Revision::V2025_11_25)
        .on_elicit(|_| async { Ok(accept(None)) })
        .on_url_done(move |it| drop(told.send(it)));
    let client = builder.connect().await.expect("connects");
    client.call_tool("sign_in", ()).await.expect("answers");
    let page = pages.recv().await.expect("its id");
    server.registry().notify_url_done("another");
    server.registry().notify_url_done(&page);
    let heard = tokio::time::timeout(PATIENCE, done.recv()).await.expect("in time");
    assert_eq!(heard, Some(page));
}

#[tokio::test]
async fn pages_to_visit_first_are_read_out_of_the_error() {
    let page =
        json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": "1"});
    for (code, count) in [(-32042, 1), (-32000, 0)] {
        let data = json!({ "elicitations": [page.clone()] });
        let (target, _) = server("2025-11-25", move |it| {
            let error = json!({"code": code, "message": "first sign in", "data": data});
            vec![json!({"jsonrpc": "2.0", "id": it["id"], "error": error})]
        });
        let client = Client::connect(target).await.expect("connects");
        let failure = client.call_tool("t", ()).await.expect_err("not yet");
        let pages = failure.elicitations();
        assert_eq!(pages.len(), count);
        for page in pages {
            let ElicitRequestParams::Url(page) = page else { panic!("a page") };
            assert_eq!(
                (&*page.url, page.elicitation_id.as_deref()),
                ("https://a.example", Some("1"))
            );
        }
    }
}

#[tokio::test]
async fn a_round_by_hand_gives_questions_or_the_result() {
    let asked = form(&json!({"name": {"type": "string"}}), &json!(["name"]));
    let target = asking("2026-07-28", vec![("who", "elicitation/create", asked)]);
    let client = Client::connect(target).await.expect("connects");
    let first = client.call_tool_round("t", json!({"a": 1}), (), None).await.expect("a round");
    let ToolRound::InputRequired(round) = first else { panic!("{first:?}") };
    let questions = round.input_requests.expect("questions");
    assert!(questions.get("who").is_some());
    let answers = json!({"who": {"action": "accept", "content": {"name": "Eve"}}});
    let state = round.request_state.as_deref();
    let last = client.call_tool_round("t", json!({"a": 1}), &answers, state).await;
    let ToolRound::Done(result) = last.expect("a result") else { panic!("it is done") };
    assert_eq!(serde_json::from_str::<Value>(&result.text()).expect("JSON"), answers);
}

#[tokio::test]
async fn roots_are_files_and_nothing_else() {
    let says = |error: Error| {
        assert_eq!(error.kind, ErrorKind::Misuse);
        error.message
    };
    let expected = "a root is a file:// URI such as \"file:///srv/shelf\", not \"http://a\"";
    let refused = Client::builder(curious()).roots([Root::new("http://a")]).connect().await;
    assert_eq!(says(refused.map(drop).expect_err("no root")), expected);
    let roots = [Root::new("file:///a"), Root::new("FILE:///b")];
    let client = Client::builder(curious()).roots(roots).connect().await.expect("connects");
    let refused = client.set_roots([Root::new("file:///c"), Root::new("http://a")]);
    assert_eq!(says(refused.expect_err("no root")), expected);
}
