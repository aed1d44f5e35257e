//! Gudgeon in Rust for the bench of growth: scale-server stdio|URL [options as JSON, as for scale.py].
#![forbid(unsafe_code)]

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use gudgeon::{List, Server, Tool, ToolError, error::Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Returns the memory of closed connections to the system, which glibc would keep in fragments.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Waiting = Arc<Mutex<Vec<oneshot::Sender<()>>>>;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// The words to search for.
    query: String,
    /// The number of results.
    #[serde(default)]
    limit: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Meet {
    count: usize,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let at = words.next().unwrap_or_else(|| "stdio".into());
    let given: Value = serde_json::from_str(words.next().as_deref().unwrap_or("{}"))
        .map_err(|error| Error::misuse(error.to_string()))?;
    let number = |at: &str| {
        let number = given.pointer(at).and_then(Value::as_u64);
        number.and_then(|number| usize::try_from(number).ok())
    };
    let mut server = Server::new("scale").options(|options| {
        options.max_message = number("/server/max_message").unwrap_or(options.max_message);
        options.http.max_body = number("/http/max_body").unwrap_or(options.http.max_body);
        options.http.max_in_flight =
            number("/http/max_in_flight").unwrap_or(options.http.max_in_flight);
        options.http.max_sessions =
            number("/http/max_sessions").unwrap_or(options.http.max_sessions);
    });
    if let Some(tools) = number("/tools") {
        for number in 1..tools {
            let search = |Search { query, limit }: Search| async move {
                query.chars().take(limit).collect::<String>()
            };
            server = server.add(
                Tool::new(format!("search_{number}"), search)
                    .description("Searches the collection."),
            );
        }
    } else {
        server = with_helpers(server);
    }
    server.tool("echo", |Echo { text }: Echo| async move { text }).run(&at).await
}

/// Adds the tools for waiting, changes and memory.
fn with_helpers(server: Server) -> Server {
    let waiting = Waiting::default();
    let counted = Arc::clone(&waiting);
    let (registry, count) = (server.registry(), AtomicU32::new(0));
    let meet = move |Meet { count }: Meet| {
        let waiting = Arc::clone(&waiting);
        async move {
            wait_for_others(&waiting, count).await;
            "met"
        }
    };
    let change = move || {
        let meta = json!({"_meta": {"changes": count.fetch_add(1, Ordering::Relaxed)}});
        let changed = registry.update(List::Tools, "change", meta);
        async move { changed.map(|()| "changed").map_err(ToolError::from) }
    };
    server
        .add(Tool::new("meet", meet).description("Waits until `count` calls are waiting."))
        .tool("count_waiting", move || {
            let count = counted.lock().unwrap_or_else(PoisonError::into_inner).len();
            async move { count.to_string() }
        })
        .add(Tool::new("change", change).description("Changes the list of tools."))
        // There is nothing to collect.
        .tool("collect", || async { "collected" })
}

async fn wait_for_others(waiting: &Waiting, count: usize) {
    let (done, wait) = oneshot::channel();
    {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(done);
        if waiting.len() == count {
            for one in waiting.drain(..) {
                let _ = one.send(());
            }
        }
    }
    let _ = wait.await;
}
