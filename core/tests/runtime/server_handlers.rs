//! All forms of handlers and all their return types, as seen by clients.

use gudgeon::{
    Audio, Completion, CompletionInput, Context, Image, Json, Prompt, Resource, ResourceNotFound,
    Server, Tool, ToolError,
    protocol::{
        self, CallToolResult, ContentBlock, PromptMessage, ResourceContents, Role, json::to_raw,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::duplex::Peer;

#[derive(Deserialize, JsonSchema)]
struct Pair {
    /// the first
    a: i64,
    /// the second
    #[serde(default)]
    b: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Many {
    values: Vec<u8>,
    scale: f64,
}

#[derive(Serialize, JsonSchema)]
struct Book {
    title: String,
    shelf: Shelf,
}

#[derive(Serialize, JsonSchema)]
struct Shelf {
    number: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    id: u32,
    kind: Option<String>,
}

async fn both(Pair { a, b }: Pair, ctx: Context) -> Result<String, ToolError> {
    Ok(format!("{a} {b} {} {}", ctx.request().revision, ctx.request().client.name))
}

fn dune() -> Book {
    Book { title: "Dune".into(), shelf: Shelf { number: 3 } }
}

#[tokio::test(start_paused = true)]
async fn every_form_of_handler() {
    let server = Server::new("forms")
        .tool("nothing", || async { "n" })
        .tool("context", |ctx: Context| async move { ctx.request().id.unwrap().to_string() })
        .tool("arguments", |Pair { a, b }: Pair| async move { Ok(a + i64::from(b)) })
        .tool("both", both);
    let mut peer = Peer::legacy(&server).await;
    assert_eq!(peer.call("nothing", json!({})).await["content"][0]["text"], "n");
    assert_eq!(peer.call("context", json!({})).await["content"][0]["text"], "3");
    assert_eq!(peer.call("arguments", json!({"a": 2, "b": 3})).await["content"][0]["text"], "5");
    let text = peer.call("both", json!({"a": 1})).await["content"][0]["text"].clone();
    assert_eq!(text, "1 0 2025-11-25 test");
}

#[tokio::test(start_paused = true)]
async fn an_integer_may_be_written_with_a_zero_fraction() {
    let server = Server::new("integers")
        .tool("pair", |Pair { a, b }: Pair| async move { format!("{a} {b}") })
        .tool("many", |Many { values, scale }: Many| async move { format!("{values:?} {scale}") });
    let mut peer = Peer::legacy(&server).await;
    let mut text = async |tool, arguments: &str| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        peer.call(tool, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text("pair", r#"{"a":42.0,"b":2e1}"#).await, "42 20");
    assert_eq!(text("pair", r#"{"a":-0.0,"b":1.0}"#).await, "0 1");
    assert_eq!(text("many", r#"{"values":[1.0,2],"scale":3.0}"#).await, "[1, 2] 3");
    assert!(
        text("pair", r#"{"a":1.5}"#).await.contains("argument 'a': expected an integer, got 1.5")
    );
    assert!(
        text("pair", r#"{"a":1e20}"#).await.starts_with("Invalid arguments for tool \"pair\": ")
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_arguments_are_refused_unless_a_tool_ignores_them() {
    let pair = |Pair { a, b }: Pair| async move { format!("{a} {b}") };
    let server = Server::new("shelf")
        .tool("strict", pair)
        .tool("nothing", || async { "n" })
        .add(Tool::new("lax", pair).ignore_unknown_arguments())
        .add(Tool::new("own", pair).input_schema(&json!({"type": "object", "properties": {}})));
    let mut peer = Peer::legacy(&server).await;
    for (tool, said) in [
        (
            "strict",
            r#"Invalid arguments for tool "strict": unknown argument 'bb'; did you mean 'b'?"#,
        ),
        (
            "nothing",
            r#"Invalid arguments for tool "nothing": unknown argument 'a'; this tool takes no arguments; unknown argument 'bb'; this tool takes no arguments"#,
        ),
        ("lax", "1 0"),
        ("own", "1 0"),
    ] {
        let result = peer.call(tool, json!({"a": 1, "bb": 2})).await;
        assert_eq!(result["content"][0]["text"], said);
        assert_eq!(result["isError"] == json!(true), said.starts_with("Invalid"), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn schemas_are_portable() {
    let server = Server::new("schemas")
        .add(Tool::new("book", |_: Pair| async { Json(dune()) }).annotations(|annotations| {
            (annotations.read_only_hint, annotations.destructive_hint) = (Some(true), Some(false));
        }))
        .add(Tool::new("silent", || async { Json(dune()) }).output_schema(None));
    let mut peer = Peer::legacy(&server).await;
    let book = peer.listed("book").await;
    assert_eq!(
        book["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "a": {"description": "the first", "type": "integer"},
                "b": {"description": "the second", "type": "integer", "default": 0, "minimum": 0, "maximum": 255},
            },
            "required": ["a"],
            "additionalProperties": false,
        })
    );
    let text = book["outputSchema"].to_string();
    assert!(
        ["$ref", "$defs", "$schema", "format"].iter().all(|keyword| !text.contains(keyword)),
        "{text}"
    );
    assert_eq!(book["outputSchema"]["properties"]["shelf"]["properties"]["number"]["minimum"], 0);
    assert_eq!(book["annotations"], json!({"readOnlyHint": true, "destructiveHint": false}));
    assert_eq!(peer.listed("silent").await["outputSchema"], Value::Null);
    assert_eq!(
        peer.listed("silent").await["inputSchema"],
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    );
}

#[tokio::test(start_paused = true)]
async fn every_value_of_a_tool() {
    let server = Server::new("values")
        .tool("book", || async { Ok(dune()) })
        .tool("text", || async { Ok(String::from("a \"b\"")) })
        .tool("list", || async { vec![1, 2] })
        .tool("none", || async {})
        .tool("image", || async { Image { bytes: vec![1, 2, 3], mime_type: "image/png".into() } })
        .tool("audio", || async { Ok(Audio { bytes: vec![1], mime_type: "audio/wav".into() }) })
        .tool("link", || async {
            protocol::Resource { uri: "a://b".into(), name: "b".into(), ..Default::default() }
        })
        .tool("content", || async {
            Ok(vec![
                ContentBlock::from("x"),
                Image { bytes: vec![1], mime_type: "image/jpeg".into() }.into(),
            ])
        })
        .tool("whole", || async {
            Ok(CallToolResult {
                is_error: Some(true),
                content: vec!["no".into()],
                ..Default::default()
            })
        });
    let mut peer = Peer::legacy(&server).await;
    let book = peer.call("book", json!({})).await;
    assert_eq!(book["structuredContent"], json!({"title": "Dune", "shelf": {"number": 3}}));
    assert_eq!(book["content"][0]["text"], r#"{"title":"Dune","shelf":{"number":3}}"#);
    let text = peer.call("text", json!({})).await;
    assert_eq!(text["content"], json!([{"type": "text", "text": "a \"b\""}]));
    assert_eq!(text["structuredContent"], json!({"result": "a \"b\""}));
    assert_eq!(peer.call("list", json!({})).await["structuredContent"], json!({"result": [1, 2]}));
    let none = peer.call("none", json!({})).await;
    assert_eq!((&none["content"], &none["structuredContent"]), (&json!([]), &Value::Null));
    let image = peer.call("image", json!({})).await;
    assert_eq!(
        image["content"],
        json!([{"type": "image", "data": "AQID", "mimeType": "image/png"}])
    );
    assert_eq!(image["structuredContent"], Value::Null);
    assert_eq!(peer.listed("image").await["outputSchema"], Value::Null);
    assert_eq!(peer.call("audio", json!({})).await["content"][0]["type"], "audio");
    assert_eq!(peer.call("link", json!({})).await["content"][0]["type"], "resource_link");
    let content = peer.call("content", json!({})).await["content"].clone();
    assert_eq!((&content[0]["text"], &content[1]["mimeType"]), (&json!("x"), &json!("image/jpeg")));
    assert_eq!(peer.listed("content").await["outputSchema"], Value::Null);
    assert_eq!(peer.call("whole", json!({})).await["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn errors_as_callers_see_them() {
    let server = Server::new("errors")
        .tool("mend", || async { Err::<(), _>(ToolError::new("give a number")) })
        .tool("hidden", || async {
            std::fs::read("/nowhere/secret")?;
            Ok(())
        })
        .tool("code", || async { Err::<(), _>(ToolError::protocol(1234, "no", Some([1]))) });
    let mut peer = Peer::legacy(&server).await;
    let mend = peer.call("mend", json!({})).await;
    assert_eq!(
        (&mend["isError"], &mend["content"][0]["text"]),
        (&json!(true), &json!("give a number"))
    );
    let hidden = peer.call("hidden", json!({})).await;
    let text = hidden["content"][0]["text"].as_str().unwrap();
    assert_eq!(hidden["isError"], true);
    assert!(text.contains("reference") && text.contains("io::error::Error"), "{text}");
    assert!(!text.contains("No such file"), "{text}");
    let code = peer.request("tools/call", json!({"name": "code"})).await;
    assert_eq!(code["error"], json!({"code": 1234, "message": "no", "data": [1]}));
    let wrong = peer.request("tools/call", json!({"name": "nowhere"})).await;
    assert_eq!(wrong["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn resources_templates_and_what_is_not_found() {
    let server = Server::new("resources")
        .add(Resource::new("a://text", || async { "text" }).name("text").mime_type("text/markdown"))
        .add(Resource::new("a://bytes", || async { Ok(vec![1_u8, 2]) }))
        .add(Resource::new("a://json", || async { Json(dune()) }))
        .add(Resource::new("a://parts", |ctx: Context| async move {
            let uri = format!("a://{}", ctx.request().revision);
            vec![ResourceContents::Text(protocol::TextResourceContents {
                uri,
                ..Default::default()
            })]
        }))
        .add(Resource::template("a://items/{id}{?kind}", |Item { id, kind }: Item| async move {
            match id {
                404 => Err(ResourceNotFound { uri: "a://items/404".into(), message: None })?,
                _ => Ok(format!("item {id} {kind:?}")),
            }
        }));
    let mut peer = Peer::legacy(&server).await;
    let mut read = async |uri: &str| {
        let reply = peer.request("resources/read", json!({"uri": uri})).await;
        (reply["result"]["contents"][0].clone(), reply["error"].clone())
    };
    assert_eq!(
        read("a://text").await.0,
        json!({"uri": "a://text", "mimeType": "text/markdown", "text": "text"})
    );
    assert_eq!(read("a://bytes").await.0["blob"], "AQI=");
    assert_eq!(read("a://json").await.0["mimeType"], "application/json");
    assert_eq!(read("a://parts").await.0["uri"], "a://2025-11-25");
    assert_eq!(read("a://items/7").await.0["text"], "item 7 None");
    assert_eq!(read("a://items/7?kind=12").await.0["text"], "item 7 Some(\"12\")");
    assert_eq!(read("a://items/404").await.1["code"], -32002);
    assert_eq!(read("a://nowhere").await.1["code"], -32002);
    assert_eq!(read("a://items/x").await.1["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn prompts_completions_and_own_methods() {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::new("more")
        .add(
            Prompt::new("greet", |item: Item| async move { Ok(format!("Hello, {}!", item.id)) })
                .argument("id", "whom", true),
        )
        .add(Prompt::new("talk", || async {
            vec![PromptMessage::new(Role::User, "Hi"), PromptMessage::new(Role::Assistant, "Hello")]
        }))
        .complete("greet", "id", |typed: String| async move { vec![format!("{typed}1")] })
        .complete("greet", "kind", |input: CompletionInput| async move {
            let values = vec![format!("{}{:?}", input.value, input.given)];
            Ok(Completion { values, total: Some(9), has_more: Some(true) })
        })
        .method("acme/echo", |params: Value| async move { Ok(json!({"echo": params["text"]})) })
        .notification("acme/tell", move |params: Value| {
            let sender = sender.clone();
            async move { drop(sender.send(params)) }
        });
    let mut peer = Peer::legacy(&server).await;
    let listed = peer.request("prompts/list", json!({})).await["result"]["prompts"][0].clone();
    assert_eq!(
        listed["arguments"],
        json!([{"name": "id", "description": "whom", "required": true}, {"name": "kind", "required": false}])
    );
    let greet =
        peer.request("prompts/get", json!({"name": "greet", "arguments": {"id": "7"}})).await;
    assert_eq!(
        greet["result"]["messages"],
        json!([{"role": "user", "content": {"type": "text", "text": "Hello, 7!"}}])
    );
    let missing = peer.request("prompts/get", json!({"name": "greet"})).await;
    assert_eq!(missing["error"]["code"], -32602);
    let wrong =
        peer.request("prompts/get", json!({"name": "greet", "arguments": {"id": "x"}})).await;
    assert_eq!(wrong["error"]["code"], -32602);
    let talk = peer.request("prompts/get", json!({"name": "talk"})).await;
    assert_eq!(talk["result"]["messages"][1]["role"], "assistant");
    let mut complete = async |argument: &str| {
        let params = json!({
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": argument, "value": "4"},
            "context": {"arguments": {"id": "1"}},
        });
        peer.request("completion/complete", params).await["result"]["completion"].clone()
    };
    assert_eq!(complete("id").await, json!({"values": ["41"]}));
    assert_eq!(
        complete("kind").await,
        json!({"values": ["4{\"id\": \"1\"}"], "total": 9, "hasMore": true})
    );
    let echo = peer.request("acme/echo", json!({"text": "x"})).await;
    assert_eq!(echo["result"], json!({"echo": "x"}));
    peer.notify("acme/tell", json!({"n": 1})).await;
    assert_eq!(receiver.recv().await.unwrap(), json!({"n": 1}));
}

/// Returns one book in three ways, as text and as structured content.
async fn whole(Pair { a, .. }: Pair) -> CallToolResult {
    let structured_content = match a {
        0 => None,
        1 => Some(to_raw(&dune())),
        _ => Some(to_raw(&json!({"title": 5}))),
    };
    CallToolResult {
        content: vec![ContentBlock::from("It is Dune.")],
        structured_content,
        ..CallToolResult::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_result_uses_the_given_output_schema() {
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
    let server = Server::new("shelf")
        .add(Tool::new("plain", whole))
        .add(Tool::new("typed", whole).output_of::<Book>())
        .add(Tool::new("given", whole).output_schema(schema.clone()));
    let mut peer = Peer::legacy(&server).await;
    assert_eq!(peer.listed("plain").await["outputSchema"], Value::Null);
    assert_eq!(peer.listed("typed").await["outputSchema"]["required"], json!(["title", "shelf"]));
    assert_eq!(peer.listed("given").await["outputSchema"], schema);
    for tool in ["typed", "given"] {
        let result = peer.call(tool, json!({"a": 1})).await;
        assert_eq!(result["content"][0]["text"], "It is Dune.");
        assert_eq!(result["structuredContent"]["title"], "Dune");
        for wrong in [0, 2] {
            let result = peer.call(tool, json!({"a": wrong})).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("invalid result (reference"), "{text}");
        }
    }
}
