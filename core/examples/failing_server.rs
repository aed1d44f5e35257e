//! A server in which everything fails, in Rust.

use std::{collections::HashMap, fmt, time::Duration};

use gudgeon::{
    Context, Json, Prompt, Resource, ResourceNotFound, Server, Tool, ToolError, ask,
    error::Error,
    protocol::{CreateMessageRequestParams, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug)]
struct Crash;

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

impl std::error::Error for Crash {}

/// Its schema promises what it does not write.
#[derive(JsonSchema)]
struct Wrong {
    #[expect(dead_code, reason = "only the schema is of interest")]
    n: i64,
}

/// Its result can't be represented in JSON.
#[derive(Serialize, JsonSchema)]
struct Unsaid {
    mean: f64,
}

impl Serialize for Wrong {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({"n": "three"}).serialize(serializer)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Typed {
    #[expect(dead_code, reason = "only the schema is of interest")]
    count: i64,
    #[expect(dead_code, reason = "only the schema is of interest")]
    names: Vec<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    level: f64,
    #[serde(default)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    wide: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
    #[serde(default)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    count: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

async fn full() -> Result<String, ToolError> {
    Err(ToolError::new("the shelf is full"))
}

async fn crash() -> Result<String, ToolError> {
    Err(Crash)?
}

async fn refused() -> Result<String, ToolError> {
    Err(ToolError::protocol(1234, "Refused.", Some(json!({"why": "because"}))))
}

async fn sure(ctx: Context) -> Result<String, ToolError> {
    Ok(ctx.elicit::<bool>("Sure?").await?.to_string())
}

async fn slow() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(60)).await;
    Ok("done".into())
}

async fn dream(ctx: Context) -> Result<String, ToolError> {
    let request = CreateMessageRequestParams {
        messages: vec![SamplingMessage::new(Role::User, "Dream.")],
        max_tokens: 10,
        ..CreateMessageRequestParams::default()
    };
    Ok(ctx.ask(ask::sample(request)).await?.model)
}

async fn places(ctx: Context) -> Result<String, ToolError> {
    Ok(ctx.ask(ask::roots()).await?.len().to_string())
}

async fn page(ctx: Context) -> Result<String, ToolError> {
    ctx.ask(ask::elicit_url("Sign in", "https://example.com/in")).await
}

async fn forbids() -> Result<String, ToolError> {
    Err(ask::elicit::<bool>("Sure?").into())
}

async fn kept(ctx: Context) -> Result<String, ToolError> {
    ctx.session()?.set("n", 1)?;
    Ok("kept".into())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let soon = Duration::from_millis(50);
    let server = Server::new("failures")
        .version("1.0")
        .tool("tool_error", || async {
            Err::<String, _>(ToolError::new("the shelf is full").with_meta(json!({"shelf": 12})))
        })
        .tool("crash", crash)
        .tool("exposed", || async { Err::<String, _>(ToolError::new("no such book")) })
        .tool("refused", refused)
        .tool("missing", || async {
            Err::<String, _>(ToolError::from(ResourceNotFound {
                uri: "failures://gone".into(),
                message: None,
            }))
        })
        .tool("sure", sure)
        .tool("sure_sync", sure)
        .tool("dream", dream)
        .tool("places", places)
        .tool("page", page)
        .add(Tool::new("slow", slow).timeout(soon))
        .tool("wrong", || async { Json(Wrong { n: 3 }) })
        .add(Tool::new("forbids", forbids).forbid_replay())
        .tool("unsaid", || async { Json(Unsaid { mean: f64::NAN }) })
        .tool("laden", || async {
            let weight = HashMap::from([("weight", f64::INFINITY)]);
            Err::<String, _>(ToolError::new("the scale is broken").with_meta(weight))
        })
        .tool("typed", |_: Typed| async { "ok" })
        .tool("kept", kept)
        .add(Prompt::new("p_tool_error", full))
        .add(Prompt::new("p_crash", crash))
        .add(Prompt::new("p_refused", refused))
        .add(Prompt::new("p_sure", sure))
        .add(Prompt::new("p_slow", slow).timeout(soon))
        .add(Prompt::new("p_typed", |Named { name, .. }: Named| async move { name }))
        .add(Resource::new("failures://tool_error", full).name("r_tool_error"))
        .add(Resource::new("failures://crash", crash).name("r_crash"))
        .add(Resource::new("failures://refused", refused).name("r_refused"))
        .add(
            Resource::new("failures://missing", || async {
                Err::<String, _>(ToolError::from(ResourceNotFound {
                    uri: "failures://other".into(),
                    message: None,
                }))
            })
            .name("r_missing"),
        )
        .add(Resource::new("failures://sure", sure).name("r_sure"))
        .add(Resource::new("failures://slow", slow).name("r_slow").timeout(soon))
        .add(
            Resource::template("failures://items/{id}", |Item { id }: Item| async move { id })
                .name("r_items"),
        )
        .method("acme/crash", || async { Err::<Json<Value>, ToolError>(Crash.into()) })
        .method("acme/tool_error", || async {
            Err::<Json<Value>, _>(ToolError::new("the shelf is full"))
        })
        .method("acme/typed", |Text { text }: Text| async move { Json(json!({"echo": text})) })
        .complete("p_typed", "name", |_: String| async {
            Err::<Vec<String>, ToolError>(Crash.into())
        });
    served(server).run_stdio().await
}

/// The server, behind middleware that passes everything on where the command line says so.
fn served(server: Server) -> Server {
    match std::env::args().nth(1).as_deref() {
        Some("around") => {
            server.middleware(["*"], |request, next| async move { next.run(request).await })
        }
        _ => server,
    }
}
