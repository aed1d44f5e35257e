use gudgeon::Server;
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}
#[tokio::main]
async fn main() -> Result<(), gudgeon::Error> {
    Server::new("calculator")
        .tool("add", |Add { a, b }: Add| async move { Ok(a + b) })
        .run_stdio()
        .await
}
