//! Middleware of clients.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use gudgeon::{
    Client, Context, Prompt, Resource, Revision, Server, ToolError,
    client::ClientGroup,
    error::{Error, ErrorKind},
    protocol::{LoggingLevel, Tool},
};
use serde_json::{Value, json};

use crate::support::stream::{result, server};

fn shelf() -> Server {
    Server::new("shelf")
        .tool("count", || async { 2 })
        .tool("broken", || async { Err::<i32, _>(ToolError::new("out of paper")) })
        .tool(
            "tenant",
            |ctx: Context| async move { ctx.request().meta.map(|meta| meta.to_string()) },
        )
        .add(Resource::new("shelf://about", || async { "two books" }))
        .add(Prompt::new("greet", || async { "hello" }))
}

type Log = Arc<Mutex<Vec<String>>>;

fn take(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn every_request_of_a_program_runs_inside_middleware_in_order() {
    for revision in Revision::ALL {
        let log = Log::default();
        let (outer, inner) = (Arc::clone(&log), Arc::clone(&log));
        let client = Client::builder(shelf())
            .options(|options| options.revisions = vec![revision])
            .middleware(["*"], move |request, next| {
                let log = Arc::clone(&outer);
                async move {
                    log.lock().unwrap().push(request.method.clone());
                    let result: Value = next.run(request).await?;
                    log.lock().unwrap().push(result.as_object().unwrap().keys().cloned().collect());
                    Ok(result)
                }
            })
            .middleware(["tools/call"], move |request, next| {
                let log = Arc::clone(&inner);
                async move {
                    log.lock().unwrap().push(format!("inner {}", request.params["name"]));
                    next.run(request).await
                }
            })
            .connect()
            .await
            .unwrap();
        assert!(take(&log).is_empty(), "the handshake is not a request of the program");
        assert_eq!(client.list::<Tool>().await.unwrap().len(), 3);
        assert_eq!(take(&log), ["tools/list", "tools"]);
        assert_eq!(client.list_page::<Tool>(None).await.unwrap().items.len(), 3);
        assert_eq!(take(&log), ["tools/list", "tools"]);
        assert_eq!(client.call_tool("count", ()).await.unwrap().data::<i32>().unwrap(), 2);
        assert_eq!(take(&log)[..2], ["tools/call", "inner \"count\""]);
        client.read_resource("shelf://about").await.unwrap();
        client.get_prompt("greet", ()).await.unwrap();
        client.ping().await.unwrap();
        let methods: Vec<_> = take(&log).into_iter().step_by(2).collect();
        assert_eq!(methods, ["resources/read", "prompts/get", "ping"], "{revision}");
        let refused = client.request("x/y", json!({"a": 1})).await.unwrap_err();
        assert_eq!((refused.kind, take(&log).len()), (ErrorKind::Protocol, 1));
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn params_and_results_can_be_changed() {
    let client = Client::builder(shelf())
        .middleware(["tools/call"], |mut request, next| async move {
            if request.params["name"] == "old name" {
                request.params["name"] = "count".into();
            }
            request.params["_meta"]["tenant"] = "books".into();
            let mut result = next.run(request).await?;
            if result["structuredContent"] == 2 {
                result["structuredContent"] = 3.into();
            }
            Ok(result)
        })
        .middleware(["tools/list"], |request, next| async move {
            let mut result = next.run(request).await?;
            result["tools"].as_array_mut().unwrap().retain(|tool| tool["name"] == "count");
            Ok(result)
        })
        .connect()
        .await
        .unwrap();
    assert_eq!(client.call_tool("old name", ()).await.unwrap().data::<i32>().unwrap(), 3);
    assert!(client.call_tool("tenant", ()).await.unwrap().text().contains("books"));
    let own = client.with_options(|options| {
        options.meta = Some(gudgeon::protocol::json::raw(r#"{"trace":"t"}"#.into()));
    });
    let meta = own.call_tool("tenant", ()).await.unwrap().text();
    assert!(meta.contains("books") && meta.contains("trace"), "{meta}");
    let names: Vec<_> =
        client.list::<Tool>().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["count"]);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_a_result_inside_and_an_error_outside() {
    let seen = Arc::new(Mutex::new(Value::Null));
    let result = Arc::clone(&seen);
    let client = Client::builder(shelf())
        .middleware(["tools/call"], move |request, next| {
            let seen = Arc::clone(&result);
            async move {
                let is_repaired = request.params["arguments"]["repair"] == true;
                let result = next.run(request).await?;
                *seen.lock().unwrap() = result.clone();
                match is_repaired {
                    true => Ok(json!({"content": [{"type": "text", "text": "repaired"}]})),
                    false => Ok(result),
                }
            }
        })
        .connect()
        .await
        .unwrap();
    let error = client.call_tool("broken", ()).await.unwrap_err();
    assert_eq!((error.kind, &*error.message), (ErrorKind::Tool, "out of paper"));
    assert_eq!(error.target.as_deref(), Some("the in-memory server"));
    assert_eq!(seen.lock().unwrap()["isError"], true);
    let lenient = client.with_options(|options| options.raise_on_error = false);
    assert_eq!(lenient.call_tool("broken", ()).await.unwrap().is_error, Some(true));
    let unknown = client.call_tool("no such tool", ()).await.unwrap_err();
    assert_eq!(unknown.code, Some(-32602), "an error of the protocol is one inside as well");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn middleware_can_answer_refuse_and_send_again() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let client = Client::builder(shelf())
        .middleware(["tools/call"], move |request, next| {
            let attempts = Arc::clone(&count);
            async move {
                match request.params["name"].as_str() {
                    Some("answered") => Ok(json!({"content": [], "structuredContent": {"a": 1}})),
                    Some("refused") => Err(Error::new(ErrorKind::Declined, "not today")),
                    Some("nonsense") => Ok(json!("x")),
                    Some("unnamed") => next.run_without_name(request).await,
                    _ => loop {
                        let result = next.clone().run(request.clone()).await?;
                        if attempts.fetch_add(1, Ordering::Relaxed) == 2 {
                            return Ok(result);
                        }
                    },
                }
            }
        })
        .connect()
        .await
        .unwrap();
    let answered = client.call_tool("answered", ()).await.unwrap();
    assert_eq!(answered.data::<Value>().unwrap(), json!({"a": 1}));
    let refused = client.call_tool("refused", ()).await.unwrap_err();
    assert_eq!((refused.kind, &*refused.message), (ErrorKind::Declined, "not today"));
    let nonsense = client.call_tool("nonsense", ()).await.unwrap_err();
    assert_eq!(nonsense.kind, ErrorKind::Protocol);
    let unnamed = client.call_tool("unnamed", ()).await.unwrap_err();
    assert_eq!(unnamed.kind, ErrorKind::Misuse);
    assert_eq!(client.call_tool("count", ()).await.unwrap().data::<i32>().unwrap(), 2);
    assert_eq!(attempts.load(Ordering::Relaxed), 3);
    client.close().await;
}

trait Without {
    async fn run_without_name(self, request: gudgeon::client::Request) -> Result<Value, Error>;
}

impl Without for gudgeon::client::Next {
    async fn run_without_name(self, mut request: gudgeon::client::Request) -> Result<Value, Error> {
        request.params.as_object_mut().unwrap().remove("name");
        self.run(request).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_changed_stays_as_the_server_sent_it() {
    let (target, _) = server("2025-11-25", |message| {
        let mut reply = result(message, &json!({"content": [], "structuredContent": {"n": 0}}));
        reply["result"]["structuredContent"]["n"] = serde_json::from_str("1e2").unwrap();
        vec![reply]
    });
    let client = Client::builder(target)
        .middleware(["*"], |request, next| async move { next.run(request).await })
        .connect()
        .await
        .unwrap();
    let called = client.call_tool("any", ()).await.unwrap();
    assert_eq!(called.raw_data().unwrap(), r#"{"n":100.0}"#);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_group_have_their_middleware() {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let builder = Client::builder(shelf()).middleware(["*"], move |request, next| {
        let log = Arc::clone(&seen);
        async move {
            log.lock().unwrap().push(format!("{} {}", request.method, request.params["name"]));
            next.run(request).await
        }
    });
    let group = ClientGroup::connect([("a", builder)]).await.unwrap();
    assert_eq!(group.call_tool("a_count", ()).await.unwrap().data::<i32>().unwrap(), 2);
    assert_eq!(take(&log), ["tools/call \"count\""]);
    group.list::<Tool>().await.unwrap();
    assert_eq!(take(&log), ["tools/list null"]);
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn completion_and_log_levels_have_middleware() {
    let server = Server::new("shelf")
        .add(Prompt::new("greet", || async { "hello" }))
        .tool("count", || async { 2 });
    let log = Log::default();
    let seen = Arc::clone(&log);
    let client = Client::builder(&server)
        .middleware(["completion/complete", "logging/setLevel"], move |request, next| {
            let log = Arc::clone(&seen);
            async move {
                log.lock().unwrap().push(request.params.to_string());
                next.run(request).await
            }
        })
        .connect()
        .await
        .unwrap();
    // A modern client keeps the level to send it with each request.
    client.set_log_level(LoggingLevel::Error).await.unwrap();
    assert_eq!(take(&log), [r#"{"level":"error"}"#]);
    client.close().await;
}
