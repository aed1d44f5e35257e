//! The fixture server in Rust: `interop-server [URL…]` listens at these URLs, or serves stdio without any.

mod asking;
mod offering;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use gudgeon::{
    Context, Image, List, LoggingLevel, Prompt, Resource, Server, Tool, ToolError, error::Error,
    protocol::Resource as ResourceLink,
};
use schemars::JsonSchema;
use serde::Deserialize;

const PIXEL: &[u8] = include_bytes!("pixel.png");
static CANCELLED: AtomicU32 = AtomicU32::new(0);

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
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

async fn slow(Slow { ms }: Slow, ctx: Context) -> &'static str {
    let mut witness = Witness { done: false };
    for step in 1..=4 {
        ctx.progress(f64::from(step), Some(4.0), None);
        tokio::time::sleep(Duration::from_millis(ms / 4)).await;
    }
    witness.done = true;
    "done"
}

async fn log(ctx: Context) -> &'static str {
    ctx.log(LoggingLevel::Debug, None, "too quiet to be heard");
    ctx.log(LoggingLevel::Info, None, "hello from the tool");
    "logged"
}

async fn link() -> ResourceLink {
    ResourceLink::new("interop://about", "about")
}

async fn names(typed: String) -> Vec<&'static str> {
    ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(&typed)).collect()
}

/// Tools that notify clients of changes.
fn changing(server: Server) -> Server {
    let (touched, grown) = (server.registry(), server.registry());
    server
        .tool("touch", move || {
            touched.notify_updated("interop://about");
            async { "touched" }
        })
        .add(Tool::new("sprout", || async { "here for a moment" }).enabled(false))
        .add(Resource::new("interop://sprout", || async { "here for a moment" }).enabled(false))
        .add(Prompt::new("sprout", || async { "here for a moment" }).enabled(false))
        .tool("grow", move || {
            let changed = [
                (List::Tools, "sprout"),
                (List::Resources, "interop://sprout"),
                (List::Prompts, "sprout"),
            ]
            .into_iter()
            .try_for_each(|(list, name)| {
                grown.set_enabled(list, [name], true)?;
                grown.set_enabled(list, [name], false)
            });
            async { changed.map(|()| "grown").map_err(ToolError::from) }
        })
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = &args[..]
        && first == "--through"
    {
        return through(rest).await;
    }
    let server = Server::new("interop")
        .version("1.0.0")
        .options(|options| {
            options.http.legacy_sse = true;
            options.page_size = 7;
            options.list_ttl = Duration::from_secs(7);
        })
        .tool("add", |Add { a, b }: Add| async move { Ok(a + b) })
        .tool("echo", |Echo { text }: Echo| async move { text })
        .tool("fail", || async { Err::<String, _>(ToolError::new("failed on purpose")) })
        .tool("slow", slow)
        .tool("cancelled", || async { CANCELLED.load(Ordering::SeqCst).to_string() })
        .tool("log", log)
        .tool("picture", || async { Image { bytes: PIXEL.into(), mime_type: "image/png".into() } })
        .tool("link", link)
        .add(Resource::new("interop://about", || async { "A server to test with." }))
        .add(Resource::template("interop://items/{id}", |Item { id }: Item| async move {
            format!("item {id}")
        }))
        .add(Prompt::new("greet", |Greet { name }: Greet| async move { format!("Hello, {name}!") }))
        .complete("greet", "name", names);
    let server = offering::add_to(changing(asking::add_to(server)));
    let [first, rest @ ..] = &args[..] else { return server.run_stdio().await };
    let mut listening = Vec::new();
    for url in rest {
        listening.push(server.listen(url).await?);
    }
    server.run(first).await?;
    for one in listening {
        one.shut_down().await;
    }
    Ok(())
}

/// Serves an upstream server, over stdio or at a URL: `[URL] -- COMMAND…`.
async fn through(args: &[String]) -> Result<(), Error> {
    let mut parts = args.splitn(2, |arg| arg == "--");
    let (at, command) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let server = Server::new("interop").mount_upstream("up", command.to_vec());
    match at {
        [url] => server.run(url).await,
        _ => server.run_stdio().await,
    }
}
