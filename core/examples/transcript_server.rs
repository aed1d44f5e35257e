//! The fixture server of the transcripts in Rust. Its options are those of `tests/transcripts/README.md`.

use std::{collections::HashMap, future, time::Duration};

use gudgeon::{
    Audio, Context, Image, Json, List, Prompt, Resource, ResourceNotFound, Server, Tool, ToolError,
    ask,
    error::Error,
    protocol::{
        ContentBlock, CreateMessageRequestParams, Dialect, LoggingLevel, PromptMessage,
        Resource as Link, ResourceContents, Role, SamplingMessage, TextResourceContents,
        json::to_raw,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Id {
    id: i64,
}

#[derive(Serialize, JsonSchema)]
struct Book {
    id: i64,
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    steps: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    level: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Dream {
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
    #[serde(default = "warm")]
    style: String,
}

#[derive(Deserialize, JsonSchema)]
struct Change {
    what: String,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    q: String,
    #[serde(default = "ten")]
    limit: i64,
}

fn ten() -> i64 {
    10
}

fn warm() -> String {
    "warm".into()
}

async fn content() -> Vec<ContentBlock> {
    let about = TextResourceContents {
        uri: "fixture://about".into(),
        text: "About.".into(),
        mime_type: Some("text/plain".into()),
        ..TextResourceContents::default()
    };
    vec![
        ContentBlock::from("Here"),
        Image { bytes: "PNG".into(), mime_type: "image/png".into() }.into(),
        Audio { bytes: "WAV".into(), mime_type: "audio/wav".into() }.into(),
        ContentBlock::from(ResourceContents::Text(about)),
        ContentBlock::ResourceLink(Link::new("fixture://about", "about")),
    ]
}

async fn crash() -> Result<(), ToolError> {
    "a secret".parse::<u8>()?;
    Ok(())
}

async fn refuse() -> Result<(), ToolError> {
    Err(ToolError::protocol(1234, "Refused.", Some(json!({"why": "because"}))))
}

async fn count(Count { steps }: Count, context: Context) -> &'static str {
    #[expect(clippy::cast_precision_loss, reason = "a handful of steps")]
    for step in 1..=steps {
        context.progress(step as f64, Some(steps as f64), format!("step {step}").as_str());
    }
    "done"
}

async fn say(Say { level, text }: Say, context: Context) -> Result<&'static str, ToolError> {
    let level = LoggingLevel::parse(&level).ok_or_else(|| ToolError::new("no such level"))?;
    context.log(level, "fixture", text);
    Ok("said")
}

async fn confirm(context: Context) -> Result<&'static str, ToolError> {
    Ok(if context.elicit("Sure?").await? { "yes" } else { "no" })
}

async fn dream(Dream { prompt }: Dream, context: Context) -> Result<String, ToolError> {
    let request = CreateMessageRequestParams {
        messages: vec![SamplingMessage::new(Role::User, prompt)],
        max_tokens: 100,
        ..CreateMessageRequestParams::default()
    };
    let said = context.ask(ask::sample(request)).await?;
    match &*said.content {
        [ContentBlock::Text(said), ..] => Ok(said.text.clone()),
        _ => Err(ToolError::new("the model said nothing")),
    }
}

async fn places(context: Context) -> Result<String, ToolError> {
    let roots = context.ask(ask::roots()).await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(", "))
}

async fn roots_changed(context: Context) -> Result<(), ToolError> {
    let roots = places(context.clone()).await?;
    context.log(LoggingLevel::Info, "fixture", roots);
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
struct Colour(String);

impl TryFrom<String> for Colour {
    type Error = &'static str;

    fn try_from(colour: String) -> Result<Self, Self::Error> {
        if colour == "none" { Err("no such colour") } else { Ok(Self(colour)) }
    }
}

async fn interview(context: Context) -> Result<String, ToolError> {
    let name = ask::elicit::<String>("Who?").key("name");
    let Some(found) = context.answer(&name)? else { return Err(name.into()) };
    let colour = ask::elicit::<Colour>("Colour?").key("colour");
    match context.answer(&colour)? {
        Some(Colour(colour)) => Ok(format!("{found} likes {colour}")),
        None => Err(colour.into()),
    }
}

async fn item(Id { id }: Id) -> Result<Json<Value>, ToolError> {
    match id {
        404 => Err(ResourceNotFound { uri: "fixture://items/404".into(), message: None }.into()),
        _ => Ok(Json(json!({"id": id}))),
    }
}

async fn search(Search { q, limit }: Search) -> Json<Value> {
    Json(json!({"q": q, "limit": limit}))
}

fn with_tools(server: Server) -> Server {
    let custom =
        || async { ContentBlock::Unknown(to_raw(&json!({"type": "acme/thing", "data": [1]}))) };
    let book = |Id { id }: Id| async move { Json(Book { id, title: "Dune".into() }) };
    let fail = |Message { message }: Message| async move { Err::<(), _>(ToolError::new(message)) };
    server
        .add(
            Tool::new("add", |Add { a, b }: Add| async move { a.saturating_add(b) })
                .description("Add two numbers."),
        )
        .add(
            Tool::new("echo", |arguments: Text| async move { arguments.text })
                .description("Say it again.")
                .output_schema(None),
        )
        .add(Tool::new("book", book).description("Find a book."))
        .add(Tool::new("content", content).description("Every kind of content."))
        .add(Tool::new("custom", custom).description("Content of its own kind."))
        .add(Tool::new("fail", fail).description("Fail."))
        .add(Tool::new("crash", crash).description("Crash."))
        .add(Tool::new("refuse", refuse).description("Refuse."))
        .add(Tool::new("count", count).description("Count.").output_schema(None))
        .add(Tool::new("say", say).description("Log.").output_schema(None))
        .add(Tool::new("wait", future::pending::<()>).description("Wait."))
        .add(Tool::new("confirm", confirm).description("Ask first.").output_schema(None))
        .add(Tool::new("dream", dream).description("Ask the model.").output_schema(None))
        .add(Tool::new("places", places).description("Ask for the roots.").output_schema(None))
        .add(Tool::new("interview", interview).description("Ask twice.").output_schema(None))
        .add(Tool::new("hidden", || async {}).description("Hidden.").enabled(false))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let about = Resource::new("fixture://about", || async { "About." })
        .name("about")
        .description("About the fixture.")
        .mime_type("text/plain");
    let bytes = Resource::new("fixture://bytes", || async { vec![0_u8, 1, 2] }).name("bytes");
    let items =
        Resource::template("fixture://items/{id}", item).name("items").description("An item.");
    let greet = Prompt::new("greet", |Greet { name, style }: Greet| async move {
        format!("Greet {name}, {style}.")
    });
    let names = |typed: String| async move {
        ["Ada", "Alan"].into_iter().filter(|name| name.starts_with(&typed)).collect::<Vec<_>>()
    };
    let server = with_tools(
        Server::new("fixture").version("1.0").instructions("Ask the fixture."),
    )
    .add(about)
    .add(bytes)
    .add(items)
    .add(greet.description("Greet somebody."))
    .complete("greet", "name", names)
    .notification("notifications/roots/list_changed", roots_changed)
    .method("acme/echo", |Text { text }: Text| async move { Json(json!({"echo": text})) })
    .method("acme/signed", async || {
        Json(json!({
            "resultType": "complete", "signed": true,
            "_meta": {"acme/by": "us", "io.modelcontextprotocol/serverInfo": {"name": "else", "version": "0"}},
        }))
    });
    serve(server, given()).await
}

/// The options by their names; one without a value has the empty one.
fn given() -> HashMap<String, String> {
    let mut given = HashMap::new();
    let mut arguments = std::env::args().skip(1).peekable();
    while let Some(name) = arguments.next() {
        let value = arguments.next_if(|argument| !argument.starts_with("--")).unwrap_or_default();
        given.insert(name, value);
    }
    given
}

async fn serve(mut server: Server, given: HashMap<String, String>) -> Result<(), Error> {
    if let Some(limit) = given.get("--limit").and_then(|value| value.parse().ok()) {
        server = server.options(|options| options.max_message = limit);
    }
    if let Some(names) = given.get("--dialects") {
        let dialects: Result<Vec<Dialect>, Error> = names.split(',').map(str::parse).collect();
        let dialects = dialects?;
        server = in_dialects(server.options(|options| options.dialects = dialects));
    }
    if given.contains_key("--around") {
        server = with_middleware(server);
    }
    let Some(url) = given.get("--listen") else { return server.run_stdio().await };
    let idle = given.get("--idle").and_then(|value| value.parse().ok());
    eprintln!("{url}");
    let server = server.options(|options| {
        options.http.legacy_sse = true;
        options.http.keep_alive = Duration::from_millis(200);
        options.http.session_idle = Duration::from_secs_f64(idle.unwrap_or(1800.0));
        options.http.shutdown_grace = Duration::from_millis(500);
    });
    server.run(url).await
}

fn in_dialects(server: Server) -> Server {
    let registry = server.registry();
    let change = move |Change { what }: Change| {
        let registry = registry.clone();
        async move {
            match what.as_str() {
                "tools" => registry.set_enabled(List::Tools, ["hidden"], true)?,
                "resources" => registry.set_enabled(List::Resources, ["fixture://bytes"], false)?,
                "prompts" => registry.set_enabled(List::Prompts, ["greet"], false)?,
                uri => registry.notify_updated(uri),
            }
            Ok::<_, ToolError>("changed")
        }
    };
    let talk = || async {
        vec![
            PromptMessage::new(Role::User, "Hello."),
            PromptMessage::new(Role::Assistant, "Hello you."),
        ]
    };
    server
        .add(
            Tool::new("slow", future::pending::<()>)
                .description("Too slow.")
                .timeout(Duration::from_millis(10)),
        )
        .add(Tool::new("change", change).description("Change something.").output_schema(None))
        .add(Resource::new("fixture://broken", broken).name("broken").description("Broken."))
        .add(
            Resource::template("fixture://search{?q,limit}", search)
                .name("search")
                .description("Search."),
        )
        .add(Prompt::new("talk", talk).description("Two messages."))
        .add(Prompt::new("lost", broken).description("Lost."))
}

async fn broken() -> Result<String, ToolError> {
    "a secret".parse::<u8>()?;
    Ok(String::new())
}

fn with_middleware(server: Server) -> Server {
    server
        .middleware(["*"], |request, next| async move {
            match request.method.as_str() {
                "completion/complete" => Err(ToolError::protocol(1234, "Not now.", None::<()>)),
                _ => next.run(request).await,
            }
        })
        .middleware(["tools/list"], |request, next| async move {
            let mut result = next.run(request).await?;
            if let Some(tools) = result["tools"].as_array_mut() {
                tools.retain(|tool| tool["name"] == "add" || tool["name"] == "echo");
            }
            Ok(result)
        })
        .middleware(["tools/call", "prompts/get"], |mut request, next| async move {
            let name = request.params["name"].as_str().unwrap_or_default().to_owned();
            match name.as_str() {
                "fail" => return Err(ToolError::new("Refused before it ran.")),
                "add" => request.params["arguments"]["b"] = json!(100),
                "greet" => request.params["arguments"]["style"] = json!("loud"),
                _ => (),
            }
            let mut result = next.run(request).await?;
            if name == "echo" {
                let said =
                    format!("{}!", result["content"][0]["text"].as_str().unwrap_or_default());
                result["content"][0]["text"] = json!(said);
            }
            Ok(result)
        })
        .middleware(["resources/read"], |request, next| async move {
            if request.params["uri"] == "fixture://bytes" {
                let data = json!({"uri": "fixture://bytes"});
                return Err(ToolError::protocol(1234, "Not these.", Some(data)));
            }
            let mut result = next.run(request).await?;
            let text = result["contents"][0]["text"].as_str().unwrap_or_default();
            result["contents"][0]["text"] = json!(format!("Read: {text}"));
            Ok(result)
        })
}
