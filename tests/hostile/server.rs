//! The server that hostile clients attack. Arguments: "stdio" or a URL, and optionally HTTP options as JSON.

use std::time::Duration;

use gudgeon::{Server, error::Error};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Length {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Password {
    #[schemars(regex(pattern = r"(?=.*[a-z])(?=.*[0-9]).{8}"))]
    #[serde(rename = "text")]
    _text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    size: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}

/// Options by their names in Python, with times in seconds.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    header_timeout: Option<f64>,
    idle_timeout: Option<f64>,
    body_timeout: Option<f64>,
    legacy_sse: Option<bool>,
}

#[tokio::main]
pub(crate) async fn run(mut words: impl Iterator<Item = String>) -> Result<(), Error> {
    let at = words.next().unwrap_or_else(|| "stdio".into());
    let given: Given = serde_json::from_str(words.next().as_deref().unwrap_or("{}"))
        .map_err(|error| Error::misuse(error.to_string()))?;
    let time = |given: Option<f64>, usual| given.map_or(usual, Duration::from_secs_f64);
    let server = Server::new("target")
        .tool("length", |Length { text }: Length| async move { text.len() })
        .tool("password", |_: Password| async { "taken" })
        .tool("big", |Big { size }: Big| async move { "x".repeat(size) })
        .tool("slow", |Slow { ms }: Slow| async move {
            sleep(Duration::from_millis(ms)).await;
            "done"
        })
        .options(|options| {
            options.http.header_timeout = time(given.header_timeout, options.http.header_timeout);
            options.http.idle_timeout = time(given.idle_timeout, options.http.idle_timeout);
            options.http.body_timeout = time(given.body_timeout, options.http.body_timeout);
            options.http.legacy_sse = given.legacy_sse.unwrap_or(options.http.legacy_sse);
        });
    server.run(&at).await
}
