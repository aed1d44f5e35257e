//! Gudgeon in Rust, with a tool that returns how long threads have waited for the lock of the endpoint: lock-waits PORT.
#![forbid(unsafe_code)]

use gudgeon::{Server, driver::lock_waits, error::Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(JsonSchema, Serialize)]
struct Waits {
    count: u64,
    seconds: f64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let port = std::env::args().nth(1).ok_or_else(|| Error::misuse("lock-waits PORT"))?;
    Server::new("bench")
        .tool("echo", |Echo { text }: Echo| async move { text })
        .tool("lock_waits", || async {
            let (count, waited) = lock_waits();
            gudgeon::Json(Waits { count, seconds: waited.as_secs_f64() })
        })
        .run(&format!("http://127.0.0.1:{port}/mcp"))
        .await
}
