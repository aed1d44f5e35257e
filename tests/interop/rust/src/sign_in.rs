//! Gudgeon's Rust client signs in at a server and calls a tool: `interop-sign-in <url> <tool>`.
#![allow(clippy::print_stdout, reason = "the harness reads it")]

use std::{
    env,
    error::Error as StdError,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
};

use gudgeon::{
    Client, Error,
    client::{Target, auth::OAuth},
    protocol::Tool,
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(tool)) = (arguments.next(), arguments.next()) else {
        return Err("usage: interop-sign-in <url> <tool>".into());
    };
    let auth =
        OAuth { on_redirect: Some(Arc::new(|page| Box::pin(follow(page)))), ..OAuth::default() };
    let builder = Client::builder(Target::url(&url)?).options(|it| it.auth = Some(auth.into()));
    let client = builder.connect().await?;
    let tools = client.list::<Tool>().await?.len();
    let text = client.call_tool(&tool, ()).await?.text();
    println!("{}", json!({ "tools": tools, "text": text }));
    client.close().await;
    Ok(())
}

/// Agrees in the authorization server's page, and returns the URL to which it redirects.
async fn follow(page: String) -> Result<String, Error> {
    let redirected = tokio::task::spawn_blocking(move || redirect(&page));
    let redirected = redirected.await.map_err(|it| Error::misuse(it.to_string()))?;
    redirected.map_err(|it| Error::misuse(it.to_string()))
}

fn redirect(page: &str) -> Result<String, Box<dyn StdError + Send + Sync>> {
    let host = page.strip_prefix("http://").and_then(|it| it.split('/').next());
    let host = host.ok_or("the page is not at an http URL")?;
    let own = format!("http://{host}/");
    let mut url = page.to_owned();
    while let Some(path) = url.strip_prefix(&own) {
        let mut stream = TcpStream::connect(host)?;
        write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let mut headers = answer.lines().filter_map(|it| it.split_once(": "));
        let location = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"));
        url = location.ok_or("the authorization server does not redirect")?.1.to_owned();
    }
    Ok(url)
}
