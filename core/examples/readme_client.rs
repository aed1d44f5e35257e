use gudgeon::Client;
#[tokio::main]
async fn main() -> Result<(), gudgeon::Error> {
    let client = Client::connect(["python3", "server.py"]).await?;
    let sum: i64 = client.call_tool("add", serde_json::json!({ "a": 1, "b": 2 })).await?.data()?;
    assert_eq!(sum, 3);
    client.close().await;
    Ok(())
}
