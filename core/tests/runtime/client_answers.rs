//! A client's answers to questions: the same callbacks in both eras, with a scripted server and with Gudgeon's.

use gudgeon::{
    Client, Context, Revision, Server, ToolError,
    error::{Error, ErrorKind},
    protocol::{
        ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
        Role, Root, SamplingMessage, Tool,
    },
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{
    asking_server::{ERAS, PATIENCE, accept, answers, asking, form},
    stream::{result, server},
};

#[tokio::test(start_paused = true)]
async fn missing_form_fields_get_their_defaults_in_both_eras() {
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

#[tokio::test(start_paused = true)]
async fn declined_forms_and_url_elicitations_have_no_content() {
    let asked = form(&json!({"name": {"type": "string", "default": "Eve"}}), &json!([]));
    let page =
        json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": "1"});
    for era in ERAS {
        let questions = vec![
            ("form", "elicitation/create", asked.clone()),
            ("page", "elicitation/create", page.clone()),
        ];
        let builder = Client::builder(asking(era, questions)).on_elicit(|question| async move {
            match question {
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

#[tokio::test(start_paused = true)]
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
            // The server gets an error, and the call continues.
            answers(&client).await["q"]["message"].to_string()
        } else {
            let failure = client.call_tool("t", ()).await.expect_err("not sent");
            assert_eq!((failure.kind, failure.code), (ErrorKind::Protocol, None));
            failure.into_details().message
        };
        assert!(
            problem.contains("Fill in") && problem.contains("does not fit the form"),
            "{problem}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_form_field_does_not_prevent_an_answer() {
    let asked = json!({"message": "?", "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "nonsense"}, "b": {"default": 1}},
    }});
    let target = asking("2026-07-28", vec![("q", "elicitation/create", asked)]);
    let builder = Client::builder(target).on_elicit(|_| async { Ok(accept(None)) });
    let client = builder.connect().await.expect("connects");
    assert_eq!(answers(&client).await["q"]["content"], json!({"b": 1}));
}

/// Asks everything that a client can be asked.
fn curious() -> Server {
    async fn ask(ctx: Context) -> Result<String, ToolError> {
        let name = ctx.elicit::<String>("Your name?").await?;
        let page = ctx.ask(gudgeon::ask::elicit_url("Sign in", "https://a.example/in")).await;
        let tool: Tool =
            serde_json::from_value(json!({"name": "look", "inputSchema": {"type": "object"}}))?;
        let request = CreateMessageRequestParams {
            messages: vec![SamplingMessage::new(Role::User, "Hello")],
            max_tokens: 10,
            tools: (ctx.request().revision >= Revision::V2025_11_25).then(|| vec![tool]),
            ..CreateMessageRequestParams::default()
        };
        let sampled = ctx.ask(gudgeon::ask::sample(request)).await?;
        let roots = ctx.ask(gudgeon::ask::roots()).await?;
        Ok(format!("{name}, {}, {}, {}", page.is_ok(), sampled.model, roots[0].uri))
    }
    Server::new("curious").tool("ask", ask)
}

#[tokio::test(start_paused = true)]
async fn the_same_callbacks_answer_requests_and_rounds() {
    for (revision, expected) in [
        (Revision::V2025_06_18, "Eve, false, no tools, file:///a"),
        (Revision::V2025_11_25, "Eve, true, look, file:///a"),
        (Revision::V2026_07_28, "Eve, true, look, file:///a"),
    ] {
        let builder = Client::builder(curious())
            .options(|options| options.revisions = vec![revision])
            .options(|options| options.roots = Some(vec!["file:///a".into()]))
            .on_elicit(|question| async move {
                Ok(match question {
                    ElicitRequestParams::Form(form) => {
                        assert_eq!(form.message, "Your name?");
                        accept(Some(json!({"value": "Eve"})))
                    }
                    ElicitRequestParams::Url(_) => accept(None),
                })
            })
            .on_sample(|request| async move {
                let tool = request.tools.and_then(|tools| tools.into_iter().next());
                Ok(CreateMessageResult {
                    role: Role::Assistant,
                    content: gudgeon::protocol::ContentBlock::from("Hi").into(),
                    model: tool.map_or_else(|| "no tools".into(), |tool| tool.name),
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

#[tokio::test(start_paused = true)]
async fn misplaced_tool_results_in_sampling_are_rejected() {
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

#[tokio::test(start_paused = true)]
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
        let questions = questions.map(|(key, params)| (key, "elicitation/create", params.clone()));
        let mut builder = Client::builder(asking("2025-11-25", questions.to_vec()))
            .on_elicit(|_| async { Ok(accept(None)) });
        if let Some(capabilities) = declared {
            builder = builder.options(|options| options.capabilities = capabilities);
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

#[tokio::test(start_paused = true)]
async fn undeclared_tools_in_sampling_are_rejected() {
    let plain = json!({"messages": [], "maxTokens": 5});
    let tools = json!({"messages": [], "maxTokens": 5, "tools": []});
    let choice = json!({"messages": [], "maxTokens": 5, "toolChoice": {"mode": "none"}});
    for (sampling, is_taken) in [(json!({}), false), (json!({"tools": {}}), true)] {
        let questions = [("plain", &plain), ("tools", &tools), ("choice", &choice)];
        let questions =
            questions.map(|(key, params)| (key, "sampling/createMessage", params.clone()));
        let capabilities = ClientCapabilities {
            sampling: Some(serde_json::from_value(sampling).expect("a capability")),
            ..ClientCapabilities::default()
        };
        let builder = Client::builder(asking("2025-11-25", questions.to_vec()))
            .options(|options| options.capabilities = capabilities)
            .on_sample(|_| async {
                Ok(CreateMessageResult {
                    role: Role::Assistant,
                    content: vec![gudgeon::protocol::ContentBlock::from("so")].into(),
                    model: "m".into(),
                    stop_reason: None,
                    result_type: None,
                    meta: None,
                })
            });
        let answers = answers(&builder.connect().await.expect("connects")).await;
        for (key, is_taken) in [("plain", true), ("tools", is_taken), ("choice", is_taken)] {
            let answer = &answers[key];
            assert_eq!(answer["model"] == "m", is_taken, "{key}: {answer}");
            assert_eq!(answer["code"] == -32602, !is_taken, "{key}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampling_result_is_converted_for_the_servers_revision_or_rejected() {
    for (era, blocks, expected) in [
        ("2025-06-18", 1, json!({"type": "text", "text": "0"})),
        ("2025-06-18", 2, Value::Null),
        ("2025-11-25", 1, json!([{"type": "text", "text": "0"}])),
    ] {
        let params = json!({"messages": [], "maxTokens": 5});
        let target = asking(era, vec![("q", "sampling/createMessage", params)]);
        let builder = Client::builder(target).on_sample(move |_| async move {
            let block = |at: usize| gudgeon::protocol::ContentBlock::from(at.to_string());
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

/// Clients must open no URL that could run or read something on the user's machine (Elicitation, "Safe URL Handling").
#[tokio::test(start_paused = true)]
async fn urls_of_other_schemes_do_not_reach_the_callback() {
    for era in ERAS {
        for (url, schemes, problem) in [
            ("https://a.example/in", None, None),
            ("javascript:alert(1)", None, Some("allowed schemes: http, https")),
            ("https://a.example/\n", None, Some("contains '")),
            ("app:sign-in", Some("app"), None),
            ("https://a.example/in", Some("app"), Some("allowed schemes: app")),
            ("https:a.example", None, Some("has no host")),
        ] {
            let page = json!({"mode": "url", "message": "In?", "url": url, "elicitationId": "1"});
            let (sender, mut receiver) = mpsc::unbounded_channel();
            let builder = Client::builder(asking(era, vec![("q", "elicitation/create", page)]))
                .options(|options| {
                    if let Some(scheme) = schemes {
                        options.allowed_url_schemes = vec![scheme.to_owned()];
                    }
                })
                .on_elicit(move |_| {
                    let _ = sender.send(());
                    async { Ok(accept(None)) }
                });
            let client = builder.connect().await.expect("connects");
            let called = tokio::time::timeout(PATIENCE, client.call_tool("t", ())).await;
            let outcome = match called.expect("in time") {
                Ok(answers) => answers.text(),
                Err(error) => error.to_string(),
            };
            assert_eq!(receiver.try_recv().is_ok(), problem.is_none(), "{era} {url}");
            let problem = problem.unwrap_or(r#""action":"accept""#);
            assert!(outcome.contains(problem), "{era} {url}: {outcome}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_url_elicitation_is_reported_to_its_client() {
    let (sent, mut pages) = mpsc::unbounded_channel();
    let server = Server::new("pages").tool("sign_in", move |ctx: Context| {
        let sent = sent.clone();
        async move {
            let page = ctx.ask(gudgeon::ask::elicit_url("Sign in", "https://a.example/in")).await?;
            let _ = sent.send(page.clone());
            Ok::<_, ToolError>(page)
        }
    });
    let (sender, mut done) = mpsc::unbounded_channel();
    let builder = Client::builder(&server)
        .options(|options| options.revisions = vec![Revision::V2025_11_25])
        .on_elicit(|_| async { Ok(accept(None)) })
        .on_event(move |event| {
            if let gudgeon::client::Event::UrlDone(id) = event {
                drop(sender.send(id));
            }
        });
    let client = builder.connect().await.expect("connects");
    client.call_tool("sign_in", ()).await.expect("answers");
    let page = pages.recv().await.expect("its id");
    server.registry().notify_url_done("another");
    server.registry().notify_url_done(&page);
    let received = tokio::time::timeout(PATIENCE, done.recv()).await.expect("in time");
    assert_eq!(received, Some(page));
}

/// A client MUST ignore what is done that it does not know of, or that is done already (2025-11-25, Elicitation).
#[tokio::test(start_paused = true)]
async fn a_finished_url_elicitation_is_reported_once_and_only_if_known() {
    let (target, _) = server("2025-11-25", |message| {
        let done = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": id}});
        let page = |id: &str| json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": id});
        match message["method"].as_str() {
            Some("tools/call") => (),
            Some("ping") => return vec![result(message, &json!({}))],
            _ => return Vec::new(),
        }
        let error = json!({"code": -32042, "message": "first sign in", "data": {"elicitations": [page("named")]}});
        vec![
            done("unknown"),
            json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": page("asked")}),
            done("asked"),
            done("asked"),
            done("named"),
            json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            done("named"),
            done("named"),
            done("unknown"),
        ]
    });
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let builder =
        Client::builder(target).on_elicit(|_| async { Ok(accept(None)) }).on_event(move |event| {
            if let gudgeon::client::Event::UrlDone(id) = event {
                drop(sender.send(id));
            }
        });
    let client = builder.connect().await.expect("connects");
    client.call_tool("t", ()).await.expect_err("not yet");
    client.ping().await.expect("everything before was heard");
    client.close().await;
    drop(client);
    let mut done = Vec::new();
    while let Some(page) = tokio::time::timeout(PATIENCE, receiver.recv()).await.expect("in time") {
        done.push(page);
    }
    assert_eq!(done, ["asked", "named"]);
}

#[tokio::test(start_paused = true)]
async fn urls_to_visit_first_are_read_from_the_error() {
    let page =
        json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": "1"});
    for (code, count) in [(-32042, 1), (-32000, 0)] {
        let data = json!({ "elicitations": [page.clone()] });
        let (target, _) = server("2025-11-25", move |message| {
            let error = json!({"code": code, "message": "first sign in", "data": data});
            vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error})]
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

#[tokio::test(start_paused = true)]
async fn roots_must_be_file_uris() {
    let message_of = |error: Error| {
        assert_eq!(error.kind, ErrorKind::Misuse);
        error.into_details().message
    };
    let expected = "a root must be a file:// URI such as \"file:///srv/shelf\", got \"http://a\"";
    let refused = Client::builder(curious())
        .options(|options| options.roots = Some(vec!["http://a".into()]))
        .connect()
        .await;
    assert_eq!(message_of(refused.map(drop).expect_err("no root")), expected);
    let roots = ["file:///a", "FILE:///b"].map(Root::from);
    let client = Client::builder(curious())
        .options(|options| options.roots = Some(roots.to_vec()))
        .connect()
        .await
        .expect("connects");
    let refused = client.set_roots(["file:///c", "http://a"]);
    assert_eq!(message_of(refused.expect_err("no root")), expected);
}
