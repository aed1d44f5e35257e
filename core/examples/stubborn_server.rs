//! A server whose tools do not stop by themselves.
//!
//! Arguments: "stdio" or a URL, the time for handlers at the end in milliseconds.

use std::{fs, thread, time::Duration};

use gudgeon::{
    Server,
    error::{Error, ErrorKind},
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::process::Command;

const LONG: Duration = Duration::from_secs(600);

/// The file that a handler creates when it begins.
#[derive(Deserialize, JsonSchema)]
struct Began {
    at: String,
}

#[derive(Deserialize, JsonSchema)]
struct Size {
    size: usize,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, at, grace] = arguments.as_slice() else {
        return Err(invalid(
            "give \"stdio\" or a URL, and the milliseconds for handlers at the end",
        ));
    };
    let grace =
        grace.parse().map(Duration::from_millis).map_err(|error| invalid(&error.to_string()))?;
    let server = Server::new("death")
        .options(|options| {
            options.grace = grace;
            options.http.shutdown_grace = grace;
        })
        .tool("blocked", |arguments: Began| async move {
            fs::write(arguments.at, "")?;
            thread::sleep(LONG);
            Ok::<_, gudgeon::ToolError>(())
        })
        .tool("spin", |arguments: Began| async move {
            tokio::task::yield_now().await;
            fs::write(arguments.at, "")?;
            loop {
                std::hint::spin_loop();
            }
            #[expect(unreachable_code, reason = "it says what the handler returns")]
            Ok::<_, gudgeon::ToolError>(())
        })
        .tool("swallows", |arguments: Began| async move {
            fs::write(arguments.at, "")?;
            // Dropping the handler does not end what it has spawned.
            tokio::spawn(async {
                loop {
                    tokio::time::sleep(LONG).await;
                }
            });
            tokio::time::sleep(LONG).await;
            Ok::<_, gudgeon::ToolError>(())
        })
        .tool("grandchild", |arguments: Began| async move {
            let mut child = Command::new("sleep").arg("600").spawn()?;
            let part = format!("{}.part", arguments.at);
            fs::write(&part, child.id().unwrap_or_default().to_string())?;
            fs::rename(part, arguments.at)?;
            child.wait().await?;
            Ok::<_, gudgeon::ToolError>(())
        })
        .tool("fail", |arguments: Size| async move {
            Err::<(), gudgeon::ToolError>(std::io::Error::other("x".repeat(arguments.size)).into())
        });
    server.run(at).await
}

fn invalid(why: &str) -> Error {
    Error::new(ErrorKind::Misuse, why)
}
