use gudgeon::{Error, Server, server::auth::OAuthProxy};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let google = OAuthProxy::new(|proxy| {
        proxy.provider = "google".into();
        proxy.client_id = Some("shelf.apps.googleusercontent.com".into());
        proxy.client_secret = Some("s3cret".into());
    });
    Server::new("shelf")
        .options(|options| options.http.auth = vec![google.into()])
        .run("http://127.0.0.1:8000/mcp")
        .await
}
