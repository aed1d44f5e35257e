use gudgeon::{
    Client, Error,
    client::{
        Target,
        auth::{OAuth, Store},
    },
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let auth = OAuth::new(|oauth| oauth.store = Store::File("tokens.json".into()));
    let shelf = Target::url("https://shelf.example.com/mcp")?;
    let client = Client::builder(shelf)
        .options(|options| options.auth = Some(auth.into()))
        .connect()
        .await?;
    client.close().await;
    Ok(())
}
