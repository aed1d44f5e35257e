use gudgeon::{Context, Error, Server, Tool, server::auth::Jwt};

async fn who(ctx: Context) -> String {
    ctx.principal().map_or("nobody".into(), |principal| principal.subject.clone())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tokens = Jwt::new(|jwt| jwt.issuer = "https://login.example.com".into());
    Server::new("shelf")
        .add(Tool::new("who", who).scopes(["books:read"]))
        .options(|options| options.http.auth = vec![tokens.into()])
        .run("http://127.0.0.1:8000/mcp")
        .await
}
