//! Features of a server in Rust other than plain tools.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Audio, Context, File, Json, Resource, ResourceNotFound, Server, Tool, ToolError, ask,
    protocol::{
        CacheScope, ContentBlock, CreateMessageRequestParams, ErrorCode, ModelPreferences, Role,
        SamplingMessage, Tool as ModelsTool,
    },
    server::middleware::{Next, Request},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

const PIXEL: &[u8] = include_bytes!("pixel.png");

#[derive(Deserialize, JsonSchema)]
struct Form {
    #[schemars(email)]
    email: String,
    #[schemars(range(min = 1, max = 5))]
    copies: u8,
    size: Size,
    marks: Vec<Mark>,
    #[serde(default = "plain")]
    paper: String,
}

fn plain() -> String {
    "plain".into()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    S,
    L,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mark {
    New,
    Gift,
}

#[derive(Deserialize, JsonSchema)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Words {
    mood: Mood,
}

#[derive(Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Calm,
    Loud,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Debug)]
struct Crash;

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

impl std::error::Error for Crash {}

pub(crate) fn add_to(server: Server) -> Server {
    let server = server
        .mount("shelf", Server::new("shelf").tool("tidy", || async { "tidy" }))
        .tool("form", form)
        .tool("plainly", |ctx: Context| async move { more(ctx.elicit("Another book (1)?").await?) })
        .tool("returned", returned)
        .tool("delegate", delegate)
        .tool("gate", gate)
        .tool("marks", || async { vec!["new", "gift"] })
        .tool("nothing", || async { None::<u32> })
        .tool("sound", || async { Audio { bytes: "RIFF".into(), mime_type: "audio/wav".into() } })
        .tool("leaflet", || async {
            let mut file = File::read(concat!(env!("CARGO_MANIFEST_DIR"), "/src/offering.rs"))?;
            file.mime_type = Some("text/plain".into());
            Ok(file)
        })
        .tool("pictures", || async {
            [
                ContentBlock::from("two sounds"),
                Audio { bytes: PIXEL.into(), mime_type: "audio/wav".into() }.into(),
                Audio { bytes: PIXEL.into(), mime_type: "audio/wav".into() }.into(),
            ]
            .to_vec()
        })
        .tool("region", |Region { name }: Region| async move { name })
        .tool("visits", visits)
        .add(Tool::new("staff", || async { "for staff" }).visible(|who| who.is_some()))
        .add(Tool::new("late", late).timeout(Duration::from_millis(50)))
        .tool("locked", || async { "never" })
        .middleware(["tools/call"], lock)
        .tool("crash", || async { Err::<String, ToolError>(Crash.into()) })
        .tool("refuse", || async {
            let why = json!({"why": "because"});
            Err::<String, _>(ToolError::protocol(1234, "Refused.", Some(why)))
        })
        .tool("lost", || async {
            Err::<String, ToolError>(
                ResourceNotFound { uri: "interop://lost".into(), message: None }.into(),
            )
        })
        .tool("words", |Words { mood }: Words| async move {
            if mood == Mood::Loud { "MIND THE GAP" } else { "mind the gap" }
        })
        .tool("traced", |ctx: Context| async move {
            let meta = ctx
                .request()
                .meta
                .map(|meta| serde_json::from_str::<Value>(meta.get()))
                .transpose()?;
            let trace = meta.as_ref().and_then(|meta| meta["traceparent"].as_str());
            Ok::<_, ToolError>(trace.unwrap_or_default().to_owned())
        })
        .method("acme/echo", |Echo { text }: Echo| async move { Json(json!({"echo": text})) });
    told(server)
}

/// Components that change or notify while clients are connected.
fn told(server: Server) -> Server {
    let (read, counts) = (Arc::new(AtomicU32::new(0)), server.registry());
    let page = Arc::new(Mutex::new(String::new()));
    let (sent, pages) = (Arc::clone(&page), server.registry());
    let moved = Arc::new(AtomicU32::new(0));
    let heard = Arc::clone(&moved);
    let again = Arc::clone(&read);
    let counted = move || {
        let count = read.fetch_add(1, Ordering::SeqCst) + 1;
        async move { count.to_string() }
    };
    server
        .add(
            Resource::new("interop://counted", counted)
                .cache(Duration::from_secs(60))
                .ttl(Duration::from_secs(5))
                .cache_scope(CacheScope::Private),
        )
        .tool("recount", move || {
            again.store(0, Ordering::SeqCst);
            counts.notify_updated("interop://counted");
            async { "again" }
        })
        .tool("send", move |ctx: Context| {
            let sent = Arc::clone(&sent);
            async move {
                let id =
                    ctx.ask(ask::elicit_url("Please sign in", "https://example.com/in")).await?;
                *sent.lock().unwrap_or_else(PoisonError::into_inner) = id;
                Ok::<_, ToolError>("sent")
            }
        })
        .tool("arrive", move || {
            pages.notify_url_done(&page.lock().unwrap_or_else(PoisonError::into_inner));
            async { "there" }
        })
        .notification("notifications/roots/list_changed", move || {
            heard.fetch_add(1, Ordering::SeqCst);
            async {}
        })
        .tool("moves", move || {
            let count = moved.load(Ordering::SeqCst);
            async move { count.to_string() }
        })
}

async fn form(ctx: Context) -> Result<String, ToolError> {
    let Form { email, copies, size, marks, paper } = ctx.elicit("Fill this in").await?;
    let size = if matches!(size, Size::L) { "l" } else { "s" };
    let marks: Vec<_> = marks.iter().map(|mark| format!("{mark:?}").to_lowercase()).collect();
    Ok(format!("{email} {copies} {size} {} {paper}", marks.join(" ")))
}

async fn returned(ctx: Context) -> Result<&'static str, ToolError> {
    let question = ask::elicit::<bool>("Another book (1)?").key("more");
    match ctx.answer(&question)? {
        Some(answer) => more(answer),
        None => Err(question.into()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it ends handlers that can fail")]
fn more(answer: bool) -> Result<&'static str, ToolError> {
    Ok(if answer { "more" } else { "enough" })
}

async fn delegate(ctx: Context) -> Result<String, ToolError> {
    let add = ModelsTool::new("add", to_raw_value(&json!({"type": "object"}))?);
    let mut preferences = ModelPreferences::default();
    preferences.hints = Some(vec!["small".into()]);
    preferences.cost_priority = Some(1.into());
    let messages = vec![SamplingMessage::new(Role::User, "Add 2 and 3.")];
    let mut request = CreateMessageRequestParams::new(messages, 10);
    request.tools = Some(vec![add]);
    request.model_preferences = Some(preferences);
    let result = ctx.ask(ask::sample(request)).await?;
    let types = result.content.iter().map(|block| json!(block)["type"].clone());
    Ok(types.filter_map(|kind| kind.as_str().map(ToOwned::to_owned)).collect::<Vec<_>>().join(" "))
}

async fn gate() -> Result<String, ToolError> {
    let page = json!({
        "mode": "url", "elicitationId": "gate", "message": "Please sign in", "url": "https://example.com/in",
    });
    let data = json!({"elicitations": [page]});
    Err(ToolError::protocol(ErrorCode::UrlElicitationRequired, "sign in first", Some(data)))
}

async fn visits(ctx: Context) -> Result<String, ToolError> {
    let session = ctx.session()?;
    let visits = session.get::<u32>("visits")?.unwrap_or(0) + 1;
    session.set("visits", visits)?;
    Ok(visits.to_string())
}

async fn late() -> &'static str {
    tokio::time::sleep(Duration::from_secs(60)).await;
    "never"
}

async fn lock(request: Request, next: Next) -> Result<Value, ToolError> {
    match request.params["name"].as_str() {
        Some("locked") => Err(ToolError::new("the shelf is locked")),
        _ => next.run(request).await,
    }
}
