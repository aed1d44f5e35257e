//! Gudgeon in Rust: bench-server PORT|stdio [options as JSON, those that the benches raise or shorten].
#![forbid(unsafe_code)]

use std::time::Duration;

use gudgeon::{Server, error::Error};
use schemars::JsonSchema;
use serde::Deserialize;

/// Returns the memory of closed connections to the system, which glibc would keep in fragments.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    max_sessions: Option<usize>,
    session_idle: Option<f64>,
    idle_timeout: Option<f64>,
    keep_alive: Option<f64>,
    metrics: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let place = words.next().ok_or_else(|| Error::misuse("bench-server PORT|stdio [OPTIONS]"))?;
    let at = if place == "stdio" { place } else { format!("http://127.0.0.1:{place}/mcp") };
    let given: Given = serde_json::from_str(words.next().as_deref().unwrap_or("{}"))
        .map_err(|error| Error::misuse(error.to_string()))?;
    let time = |given: Option<f64>, usual| given.map_or(usual, Duration::from_secs_f64);
    Server::new("bench")
        .tool("echo", |Echo { text }: Echo| async move { text })
        // There is nothing to collect.
        .tool("collect", || async { "collected" })
        .options(|options| {
            options.http.metrics = given.metrics;
            options.http.max_sessions = given.max_sessions.unwrap_or(options.http.max_sessions);
            options.http.session_idle = time(given.session_idle, options.http.session_idle);
            options.http.idle_timeout = time(given.idle_timeout, options.http.idle_timeout);
            options.http.keep_alive = time(given.keep_alive, options.http.keep_alive);
        })
        .run(&at)
        .await
}
