//! Components in Rust that ask their client.

use std::{fs::File, io::Write as _, time::Duration};

use gudgeon::{
    Context, LoggingLevel, Prompt, Resource, Server, Tool, ToolError,
    ask::{self, Outcome},
    protocol::{
        ContentBlock, CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;

/// A pause, because official TypeScript clients lose a notification that is read together with the result.
const PAUSE: Duration = Duration::from_millis(150);

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Whim {
    message: String,
}

pub(crate) fn add_to(server: Server) -> Server {
    server
        .tool("order", order)
        .tool("whim", |Whim { message }: Whim, ctx: Context| async move {
            let outcome = ctx.try_elicit::<bool>(message).await?;
            Ok(if matches!(outcome, Outcome::Accepted(_)) {
                "accepted"
            } else if outcome == Outcome::Declined {
                "declined"
            } else {
                "cancelled"
            })
        })
        .tool("insist", |Whim { message }: Whim, ctx: Context| async move {
            Ok(format!("accepted: {}", ctx.elicit::<bool>(message).await?))
        })
        .add(Tool::new("once", once).forbid_replay())
        .tool("deliver", deliver)
        .tool("sign_in", |ctx: Context| async move {
            ctx.ask(ask::elicit_url("Please sign in", "https://example.com/in")).await?;
            Ok("on the way")
        })
        .tool("capital", |ctx: Context| async move {
            Ok(text(&ctx.ask(ask::sample(question())).await?))
        })
        .tool("where", |ctx: Context| async move {
            let uris: Vec<_> =
                ctx.ask(ask::roots()).await?.into_iter().map(|root| root.uri).collect();
            Ok(uris.join(", "))
        })
        .tool("at_once", at_once)
        .add(Prompt::new("letter", |ctx: Context| async move {
            Ok(format!("Dear {}", ctx.elicit::<Name>("What is your name?").await?.name))
        }))
        .add(Resource::new("interop://secret", |ctx: Context| async move {
            Ok(if ctx.elicit("Another book (1)?").await? { "told" } else { "kept" })
        }))
}

async fn order(ctx: Context) -> Result<String, ToolError> {
    let number = ctx.step("reserve", async { reserve() }).await?;
    let Name { name } = ctx.elicit("What is your name?").await?;
    let mut books = 1;
    while ctx.elicit(format!("Another book ({books})?")).await? {
        books += 1;
    }
    Ok(format!("{name}: {books} books under {number}"))
}

async fn once(ctx: Context) -> Result<&'static str, ToolError> {
    Ok(if ctx.elicit("Another book (1)?").await? { "more" } else { "enough" })
}

async fn deliver(ctx: Context) -> Result<&'static str, ToolError> {
    ctx.elicit::<bool>("Another book (1)?").await?;
    ctx.log(LoggingLevel::Info, None, "on the way");
    ctx.progress(1.0, Some(2.0), None);
    ctx.progress(2.0, Some(2.0), None);
    tokio::time::sleep(PAUSE).await;
    Ok("delivered")
}

async fn at_once(ctx: Context) -> Result<String, ToolError> {
    let questions =
        (ask::elicit::<bool>("Another book (1)?"), ask::sample(question()), ask::roots());
    let (more, capital, roots) = ctx.ask(questions).await?;
    let more = if more { "more" } else { "enough" };
    let root = roots.first().map_or("", |root| &root.uri);
    Ok(format!("{more} {} {root}", text(&capital)))
}

/// A side effect that must not be repeated; each run adds a line to the ledger.
fn reserve() -> Result<u32, ToolError> {
    if let Some(ledger) = std::env::var_os("INTEROP_LEDGER") {
        writeln!(File::options().append(true).create(true).open(ledger)?, "reserved")?;
    }
    Ok(7)
}

fn question() -> CreateMessageRequestParams {
    let messages = vec![SamplingMessage::new(Role::User, "What is the capital of France?")];
    CreateMessageRequestParams::new(messages, 10)
}

fn text(result: &CreateMessageResult) -> String {
    result.content.iter().filter_map(ContentBlock::as_text).collect()
}
