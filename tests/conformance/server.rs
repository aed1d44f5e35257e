//! The fixture server in Rust: the components that the official suite requires, and a few tools for other tests.

mod asking;
mod serving;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use axum::{
    body::Bytes,
    http::{Method, Request, Response, header},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{
    Audio, Context, Image, List, LoggingLevel, Prompt, Registry, Resource, SchemaProfile, Server,
    Tool, ToolError,
    error::Error,
    protocol::{ContentBlock, PromptMessage, ResourceContents, Role, TextResourceContents},
    server::auth::OAuthProxy,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::serving::Options;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const SCHEMA: &str = include_str!("json_schema_2020_12.json");
/// A pause, because official TypeScript clients lose a notification that is read together with the result.
const PAUSE: Duration = Duration::from_millis(50);

static STARTED: AtomicU32 = AtomicU32::new(0);
static CANCELLED: AtomicU32 = AtomicU32::new(0);
static CHANGES: AtomicU32 = AtomicU32::new(0);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let options = Options::read(std::env::args().skip(1))?;
    let server = Server::new("conformance").version("1.0.0").options(|settings| {
        // Keeps the schema of json_schema_2020_12_tool unchanged.
        settings.schema_profile = SchemaProfile::Full;
        settings.page_size = options.page_size;
        settings.dialects.clone_from(&options.dialects);
        settings.http.auth.extend(options.issuer.as_deref().map(Into::into));
        settings.http.auth.extend(options.proxy.clone().map(|provider| {
            let (id, secret) = (Some("proxy".into()), Some("s3cret".into()));
            let proxy = |proxy: &mut OAuthProxy| {
                (proxy.provider, proxy.client_id, proxy.client_secret) = (provider, id, secret);
            };
            OAuthProxy::new(proxy).into()
        }));
    });
    let server = content(server);
    let server = running(server);
    let server = changes(server);
    let server = schemas(server);
    let server = asking::asking(server);
    let server = resources(server);
    let server = prompts(server);
    // A host has routes of its own.
    let server = if options.is_mounted { server } else { routes(server) };
    serving::serve(server, options).await
}

// ── content ──────────────────────────────────────────────────────────────────────────────────────

fn content(server: Server) -> Server {
    server
        .add(
            Tool::new("test_simple_text", || async {
                "This is a simple text response for testing."
            })
            .description("Returns a text."),
        )
        .add(
            Tool::new("test_image_content", || async { pixel() }).description("Returns a picture."),
        )
        .add(
            Tool::new("test_audio_content", || async {
                Audio { bytes: bytes(SILENCE), mime_type: "audio/wav".into() }
            })
            .description("Returns a sound."),
        )
        .add(
            Tool::new("test_embedded_resource", || async {
                let text = "This is an embedded resource content.";
                embedded("test://embedded-resource", "text/plain", text)
            })
            .description("Returns a resource."),
        )
        .add(
            Tool::new("test_multiple_content_types", || async {
                let (uri, text) =
                    ("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
                vec![
                    ContentBlock::from("Multiple content types test:"),
                    pixel().into(),
                    embedded(uri, "application/json", text),
                ]
            })
            .description("Returns a text, a picture and a resource."),
        )
        .add(Tool::new("test_error_handling", fail).description("Fails."))
}

async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}

fn pixel() -> Image {
    Image { bytes: bytes(PIXEL), mime_type: "image/png".into() }
}

fn bytes(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap_or_default()
}

fn embedded(uri: impl Into<String>, mime_type: &str, text: &str) -> ContentBlock {
    let mut contents = TextResourceContents::default();
    (contents.uri, contents.text) = (uri.into(), text.into());
    contents.mime_type = Some(mime_type.into());
    ContentBlock::from(ResourceContents::Text(contents))
}

// ── notifications of running calls ──────────────────────────────────────────────────────────────

fn running(server: Server) -> Server {
    server
        .add(
            Tool::new("test_tool_with_progress", report)
                .description("Reports progress three times."),
        )
        .add(Tool::new("test_tool_with_logging", log).description("Logs three messages."))
        .add(
            Tool::new("test_logging_tool", |ctx: Context| async move {
                ctx.log(LoggingLevel::Info, None, "heard by those who asked for logs only");
                "A message was logged"
            })
            .description("Logs one message."),
        )
        .add(Tool::new("test_reconnection", reconnect).description(
            "Over legacy HTTP: ends its stream, so that the client comes back for the answer.",
        ))
        .add(
            Tool::new("test_slow", slow)
                .description("Answers after that time; ends early when it is cancelled."),
        )
        .add(
            Tool::new("test_started", || async { STARTED.load(Ordering::SeqCst).to_string() })
                .description("The number of calls of test_slow that have started."),
        )
        .add(
            Tool::new("test_cancelled", || async { CANCELLED.load(Ordering::SeqCst).to_string() })
                .description("The number of cancelled calls of test_slow."),
        )
}

async fn report(ctx: Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        ctx.progress(done, Some(100.0), None);
        tokio::time::sleep(PAUSE).await;
    }
    "Progress was reported"
}

async fn log(ctx: Context) -> &'static str {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        ctx.log(LoggingLevel::Info, None, message);
        tokio::time::sleep(PAUSE).await;
    }
    "Messages were logged"
}

async fn reconnect(ctx: Context) -> &'static str {
    ctx.close_stream(PAUSE);
    tokio::time::sleep(2 * PAUSE).await;
    "Reconnection test completed"
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}

async fn slow(Slow { ms }: Slow) -> String {
    STARTED.fetch_add(1, Ordering::SeqCst);
    let mut witness = Witness { done: false };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    witness.done = true;
    format!("Took {ms} ms")
}

/// Counts a call that is dropped before it is done.
struct Witness {
    done: bool,
}

impl Drop for Witness {
    fn drop(&mut self) {
        if !self.done {
            CANCELLED.fetch_add(1, Ordering::SeqCst);
        }
    }
}

// ── changes ──────────────────────────────────────────────────────────────────────────────────────

#[derive(Deserialize, JsonSchema)]
struct Touched {
    uri: String,
}

fn changes(server: Server) -> Server {
    let (tools, prompts, resources) = (server.registry(), server.registry(), server.registry());
    server
        .add(
            Tool::new("test_trigger_tool_change", move || {
                let changed = change(&tools, List::Tools, "test_trigger_tool_change");
                async move { changed.map(|()| "The list of tools has changed".to_owned()) }
            })
            .description("Changes the list of tools."),
        )
        .add(
            Tool::new("test_trigger_prompt_change", move || {
                let changed = change(&prompts, List::Prompts, "test_simple_prompt");
                async move { changed.map(|()| "The list of prompts has changed".to_owned()) }
            })
            .description("Changes the list of prompts."),
        )
        .add(
            Tool::new("test_touch_resource", move |Touched { uri }| {
                resources.notify_updated(&uri);
                async move { format!("{uri} was touched") }
            })
            .description("Announces that a resource was updated."),
        )
}

fn change(registry: &Registry, list: List, key: &str) -> Result<(), ToolError> {
    let changes = CHANGES.fetch_add(1, Ordering::SeqCst) + 1;
    Ok(registry.update(list, key, json!({"_meta": {"changes": changes}}))?)
}

// ── schemas ──────────────────────────────────────────────────────────────────────────────────────

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Priority"))]
    priority: i64,
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Urgent"))]
    urgent: bool,
}

fn schemas(server: Server) -> Server {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    server
        .add(
            Tool::new("json_schema_2020_12_tool", |person: Value| async move {
                let given = person.as_object().into_iter().flat_map(|members| members.keys());
                format!("Got {}", given.cloned().collect::<Vec<_>>().join(", "))
            })
            .input_schema(&schema)
            .description("Has a schema with keywords of JSON Schema 2020-12."),
        )
        .add(
            Tool::new("test_x_mcp_header", |Mirrored { region, priority, urgent }| async move {
                let urgent = if urgent { "urgent" } else { "not urgent" };
                format!("region {region}, priority {priority}, {urgent}")
            })
            .description("Has parameters that clients mirror in headers."),
        )
}

// ── resources ────────────────────────────────────────────────────────────────────────────────────

#[derive(Deserialize, JsonSchema)]
struct Data {
    id: String,
}

fn resources(server: Server) -> Server {
    server
        .add(
            Resource::new("test://static-text", || async {
                "This is the content of the static text resource."
            })
            .name("static_text")
            .description("A text")
            .mime_type("text/plain"),
        )
        .add(
            Resource::new("test://static-binary", || async { bytes(PIXEL) })
                .name("static_binary")
                .description("A picture")
                .mime_type("image/png"),
        )
        .add(
            Resource::new("test://watched-resource", || async { "Watched resource content" })
                .name("watched_resource")
                .description("One to subscribe to")
                .mime_type("text/plain"),
        )
        .add(
            Resource::template("test://template/{id}/data", |Data { id }| async move {
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")})
            })
            .name("template_data")
            .description("Data by id")
            .mime_type("application/json"),
        )
}

// ── prompts ──────────────────────────────────────────────────────────────────────────────────────

#[derive(Deserialize, JsonSchema)]
struct Both {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedding {
    /// URI of the resource to embed
    resource_uri: String,
}

fn prompts(server: Server) -> Server {
    server
        .add(
            Prompt::new("test_simple_prompt", || async { "This is a simple prompt for testing." })
                .description("A prompt without arguments."),
        )
        .add(
            Prompt::new("test_prompt_with_arguments", |Both { arg1, arg2 }| async move {
                format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
            })
            .description("A prompt with arguments."),
        )
        .complete("test_prompt_with_arguments", "arg1", |typed: String| async move {
            let known = ["test", "testing", "paris", "park", "party"];
            known.into_iter().filter(|word| word.starts_with(&typed)).collect::<Vec<_>>()
        })
        .add(
            Prompt::new("test_prompt_with_embedded_resource", embed)
                .description("A prompt with a resource."),
        )
        .add(
            Prompt::new("test_prompt_with_image", || async {
                vec![
                    said(pixel()),
                    PromptMessage::new(Role::User, "Please analyze the image above."),
                ]
            })
            .description("A prompt with a picture."),
        )
}

async fn embed(Embedding { resource_uri }: Embedding) -> Vec<PromptMessage> {
    let resource = embedded(resource_uri, "text/plain", "Embedded resource content for testing.");
    vec![
        said(resource),
        PromptMessage::new(Role::User, "Please process the embedded resource above."),
    ]
}

fn said(content: impl Into<ContentBlock>) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

// ── routes ───────────────────────────────────────────────────────────────────────────────────────

fn routes(server: Server) -> Server {
    server
        .route(Method::POST, "/hooks", hook)
        .route(Method::GET, "/status", |_| async { Ok(Response::new("fine")) })
        .route(Method::GET, "/broken", |_| async {
            Err::<Response<Bytes>, _>(ToolError::new("a secret"))
        })
        .route(Method::POST, "/slow", |_| async {
            Ok(Response::new(slow(Slow { ms: 600_000 }).await))
        })
}

async fn hook(request: Request<Bytes>) -> Result<Response<Bytes>, ToolError> {
    let (head, body) = request.into_parts();
    let signature = head.headers.get("x-signature").and_then(|value| value.to_str().ok());
    let asked = head.uri.path_and_query().map_or("", |path| path.as_str());
    let response = Response::builder()
        .status(201)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header("x-asked", format!("{} {asked}", head.method))
        .header("x-signature", signature.unwrap_or("none"));
    Ok(response.body(body)?)
}
