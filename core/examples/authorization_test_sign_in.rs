use std::sync::Arc;

use gudgeon::{
    Client, Context, Error, Server,
    client::{Target, auth::OAuth},
    server::auth::Jwt,
    testing::auth::{AuthorizationServer, AuthorizationServerOptions},
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let options = AuthorizationServerOptions::new(|options| options.subject = "ada".into());
    let provider = AuthorizationServer::listen(options).await?;
    let tokens = Jwt::new(|jwt| jwt.issuer = provider.issuer().into());
    let app = Server::new("shelf")
        .tool("who", |ctx: Context| async move {
            Ok(ctx.principal().map_or("nobody".into(), |principal| principal.subject.clone()))
        })
        .options(|options| options.http.auth = vec![tokens.into()]);
    let here = app.listen("http://127.0.0.1:0/mcp").await?;

    let browser = provider.clone();
    let auth = OAuth::new(|oauth| {
        oauth.on_redirect = Some(Arc::new(move |url| {
            let browser = browser.clone();
            Box::pin(async move { browser.browse(&url).await })
        }));
    });
    let client = Client::builder(Target::url(here.url())?)
        .options(|options| options.auth = Some(auth.into()))
        .connect()
        .await?;
    assert_eq!(client.call_tool("who", ()).await?.text(), "ada");
    Ok(())
}
