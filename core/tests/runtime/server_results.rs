//! Caching, visibility and sessions of Rust servers, with an in-memory client and over HTTP without a socket.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use body::collect;
use gudgeon::{
    Context, Json, List, Prompt, Resource, Server, Tool, ToolError,
    protocol::{LoggingLevel, Principal},
    schema::SchemaProfile,
};
use serde_json::{Value, json, value::RawValue};
use tower_service::Service as _;

/// Collects a body without another crate.
mod body {
    use std::{future::poll_fn, io, pin::pin};

    use bytes::Bytes;
    use http_body::Body;

    pub(crate) async fn collect(body: impl Body<Data = Bytes, Error = io::Error>) -> Vec<u8> {
        let mut body = pin!(body);
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            if let Ok(data) = frame.unwrap().into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        bytes
    }
}

/// A modern request of somebody's: its result, or its error's message.
async fn ask(
    server: &gudgeon::HttpService,
    who: Option<&Principal>,
    method: &str,
    mut params: Value,
) -> Result<Value, String> {
    let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request = http::Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if !name.is_empty() {
        request = request.header("mcp-name", name);
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = request.body(body.to_string()).unwrap();
    if let Some(who) = who {
        request.extensions_mut().insert(Arc::new(who.clone()));
    }
    let response = server.clone().call(request).await.unwrap();
    let answer: Value = serde_json::from_slice(&collect(response.into_body()).await).unwrap();
    match answer["error"]["message"].as_str() {
        Some(message) => Err(message.to_owned()),
        None => Ok(answer["result"].clone()),
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_cached_per_caller() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let read = move |ctx: Context| {
        let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            let who =
                ctx.principal().map_or("nobody".into(), |principal| principal.subject.clone());
            format!("{who}: {call}")
        }
    };
    let server = Server::new("shelf")
        .add(Resource::new("shelf://mine", read).cache(Duration::from_secs(60)));
    let registry = server.registry();
    let server = server.into_service();
    let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
    let text = async |who| {
        let result = ask(&server, who, "resources/read", json!({"uri": "shelf://mine"})).await;
        result.unwrap()["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(Some(&ada)).await, "ada: 1");
    assert_eq!(text(Some(&ada)).await, "ada: 1");
    assert_eq!(text(Some(&bob)).await, "bob: 2");
    assert_eq!(text(None).await, "nobody: 3");
    registry.notify_updated("shelf://mine");
    assert_eq!(text(Some(&ada)).await, "ada: 4");
}

#[tokio::test(start_paused = true)]
async fn visibility_is_evaluated_for_each_request() {
    let open = Arc::new(AtomicBool::new(true));
    let is_open = Arc::clone(&open);
    let staff = move |who: Option<&Principal>| {
        is_open.load(Ordering::Relaxed)
            && who.is_some_and(|principal| principal.scopes.contains("staff"))
    };
    let server = Server::new("shelf")
        .tool("add", || async { "ok" })
        .add(Tool::new("drop", || async { "dropped" }).visible(staff.clone()))
        .add(
            Tool::new("broken", || async { "never" })
                .visible(|who| who.unwrap().subject.is_empty()),
        )
        .add(Prompt::new("fire", || async { "fire" }).visible(staff.clone()))
        .add(Resource::new("staff://pay", || async { "much" }).visible(staff))
        .into_service();
    let ada = Principal { scopes: ["staff".to_owned()].into(), ..Principal::new("ada") };
    let names = async |who| {
        let result = ask(&server, who, "tools/list", json!({})).await.unwrap();
        assert_eq!(result["cacheScope"], "private");
        let tools = result["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(Some(&ada)).await, ["add", "drop"]);
    assert_eq!(names(None).await, ["add"], "a predicate that panics hides");
    let call = json!({"name": "drop"});
    let dropped = ask(&server, Some(&ada), "tools/call", call.clone()).await.unwrap();
    assert_eq!(dropped["content"][0]["text"], "dropped");
    for (method, params, message) in [
        ("tools/call", call, "Unknown tool: drop"),
        ("prompts/get", json!({"name": "fire"}), "Unknown prompt: fire"),
        ("resources/read", json!({"uri": "staff://pay"}), "Resource not found: staff://pay"),
    ] {
        assert_eq!(ask(&server, None, method, params).await.unwrap_err(), message);
    }
    open.store(false, Ordering::Relaxed);
    assert_eq!(names(Some(&ada)).await, ["add"]);
}

#[tokio::test(start_paused = true)]
async fn session_values_exist_in_the_legacy_era_only() {
    async fn visits(ctx: Context) -> Result<u32, ToolError> {
        let session = ctx.session()?;
        let visits = session.get::<u32>("visits")?.unwrap_or(0) + 1;
        session.set("visits", visits)?;
        Ok(visits)
    }
    let server = Server::new("shelf").tool("visits", visits);
    for _ in 0..2 {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(server.serve(reader, writer));
        let (answers, mut requests) = tokio::io::split(ours);
        let mut answers = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(answers));
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let call = json!({"name": "visits"});
        let mut said = Vec::new();
        for (method, params) in
            [("initialize", hello), ("tools/call", call.clone()), ("tools/call", call)]
        {
            let frame = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            tokio::io::AsyncWriteExt::write_all(&mut requests, format!("{frame}\n").as_bytes())
                .await
                .unwrap();
            let answer = answers.next_line().await.unwrap().unwrap();
            said.push(serde_json::from_str::<Value>(&answer).unwrap()["result"].clone());
        }
        let visits = |at: usize| said[at]["content"][0]["text"].clone();
        assert_eq!((visits(1), visits(2)), (json!("1"), json!("2")), "each session has its own");
    }
    let refused =
        ask(&server.into_service(), None, "tools/call", json!({"name": "visits"})).await.unwrap();
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("revision 2026-07-28 has no sessions, so there is no ctx.session() (hint: give the client a handle"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn json_in_several_lines_is_one_line_of_a_stream() {
    async fn spread(ctx: Context) -> Json<Box<RawValue>> {
        let text = RawValue::from_string("{\r\n  \"a\\n\": 1\n}".into()).unwrap();
        ctx.log(LoggingLevel::Error, None, &text);
        Json(text)
    }
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(Server::new("shelf").method("acme/spread", spread).serve(reader, writer));
    let (answers, mut requests) = tokio::io::split(ours);
    let mut answers = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(answers));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "error",
    });
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "acme/spread", "params": {"_meta": meta}});
    let call = format!("{call}\n");
    tokio::io::AsyncWriteExt::write_all(&mut requests, call.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    for _ in 0..2 {
        let line = answers.next_line().await.unwrap().unwrap();
        said.push(serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("{line:?}")));
    }
    let spread = json!({"a\n": 1});
    assert_eq!(said[0]["params"]["data"], spread);
    assert_eq!(said[1]["result"]["a\n"], 1);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Tree {
    name: String,
    #[expect(dead_code, reason = "only its type counts")]
    children: Vec<Tree>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    book: Book,
    gift: Option<Book>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Book {
    title: String,
}

async fn order(Order { book, gift }: Order) -> String {
    format!("{} and {}", book.title, gift.map_or("nothing".into(), |gift| gift.title))
}

async fn schema(server: Server) -> Value {
    let result = ask(&server.into_service(), None, "tools/list", json!({})).await.unwrap();
    result["tools"][0]["inputSchema"].clone()
}

#[tokio::test(start_paused = true)]
async fn references_in_schemas_are_expanded_unless_the_profile_is_full() {
    let shown = schema(Server::new("shelf").tool("order", order)).await;
    assert!(!shown.to_string().contains("$ref"), "{shown}");
    assert_eq!(shown["properties"]["gift"]["type"], json!(["object", "null"]));
    let full = Server::new("shelf")
        .options(|options| options.schema_profile = SchemaProfile::Full)
        .tool("order", order);
    assert!(schema(full).await.to_string().contains("#/$defs/Book"));
    let own = json!({
        "type": "object", "properties": {"book": {"$ref": "#/$defs/book"}},
        "$defs": {"book": {"type": "object"}},
    });
    let handwritten =
        |server: Server| server.add(Tool::new("order", || async { "ok" }).input_schema(&own));
    let shown = schema(handwritten(Server::new("shelf"))).await;
    assert_eq!(shown, json!({"type": "object", "properties": {"book": {"type": "object"}}}));
    let full = handwritten(
        Server::new("shelf").options(|options| options.schema_profile = SchemaProfile::Full),
    );
    assert_eq!(schema(full).await, own);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Where {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Restock {
    place: Where,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anywhere {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

#[tokio::test(start_paused = true)]
async fn headers_repeat_argument_fields_except_nullable_ones() {
    let restock = |arguments: Restock| async move { arguments.place.region };
    let shown = schema(Server::new("shelf").tool("restock", restock)).await;
    let region = &shown["properties"]["place"]["properties"]["region"];
    assert_eq!(region["x-mcp-header"], "Region", "{shown}");
    let full = Server::new("shelf").options(|options| options.schema_profile = SchemaProfile::Full);
    let refused = full.registry().add(Tool::new("restock", restock)).unwrap_err().to_string();
    assert!(refused.contains("write out what a \"$ref\" on the way points at"), "{refused}");
    let find = |arguments: Anywhere| async move { arguments.region.unwrap_or_default() };
    let refused = Server::new("shelf").registry().add(Tool::new("find", find)).unwrap_err();
    assert!(refused.to_string().contains("leave null out of the type"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_recursive_type_needs_the_full_profile() {
    let plant = |tree: Tree| async move { tree.name };
    let refused = Server::new("garden").registry().add(Tool::new("plant", plant)).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains(
            "the input schema of tool \"plant\" can't be published: the schema is cyclic"
        ),
        "{message}"
    );
    assert!(message.contains("schema_profile = SchemaProfile::Full"), "{message}");
    let server = Server::new("garden")
        .options(|options| options.schema_profile = SchemaProfile::Full)
        .tool("plant", plant);
    let arguments = json!({"name": "oak", "children": [{"name": "acorn", "children": []}]});
    let call = json!({"name": "plant", "arguments": arguments});
    let planted = ask(&server.into_service(), None, "tools/call", call).await.unwrap();
    assert_eq!(planted["content"][0]["text"], "oak");
}

#[test]
#[should_panic(expected = "must be set before tools are added")]
fn the_profile_must_be_set_before_the_tools() {
    drop(
        Server::new("t")
            .tool("a", || async { "ok" })
            .options(|options| options.schema_profile = SchemaProfile::Full),
    );
}

#[test]
fn a_completion_goes_with_its_prompt() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Review {
        title: String,
    }
    let prompt = || Prompt::new("review", |review: Review| async move { review.title });
    let complete = |_: String| async { vec!["Dune"] };
    let server = Server::new("shelf").add(prompt()).complete("review", "title", complete);
    server.registry().remove(List::Prompts, "review").unwrap();
    let _server = server.add(prompt()).complete("review", "title", complete);
}
