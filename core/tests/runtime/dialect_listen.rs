//! Gudgeon's client and server in the two dialects, over every transport.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Client, Context, Json, Prompt, Resource, Server,
    client::Target,
    error::ErrorKind,
    protocol::{self, ContentBlock, Dialect, ResourceContents},
};
use serde_json::{Value, json};

use crate::support::memory;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    who: String,
    how: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Item {
    id: String,
    lang: Option<String>,
}

fn server() -> Server {
    let item = |Item { id, lang }: Item| async move { Json(json!({"id": id, "lang": lang})) };
    Server::new("shelf")
        .options(|options| {
            options.dialects = Dialect::ALL.to_vec();
            options.page_size = 1;
            options.http.legacy_sse = true;
            options.http.session_idle = Duration::from_secs(1);
        })
        .tool("add", |Args { a, b }: Args| async move { Ok(Json(a + b)) })
        .tool("spoken", |ctx: Context| async move {
            Ok(ctx.request().dialect.map_or("none".to_owned(), |dialect| dialect.to_string()))
        })
        .add(Resource::new("shelf://about", || async { "A shelf." }))
        .add(Resource::template("shelf://items/{id}{?lang}", item))
        .add(Prompt::new(
            "greet",
            |Greet { who, how }: Greet| async move { format!("{who} {how}") },
        ))
}

async fn connect(target: Target, dialect: Dialect) -> Client {
    let client = Client::builder(target)
        .options(|options| options.dialect = Some(dialect))
        .connect()
        .await
        .unwrap();
    assert_eq!(client.server().spoken().name(), dialect.as_ref());
    client
}

/// Everything that a client does, over one connection.
async fn exercise(target: Target, dialect: Dialect) -> Client {
    let client = connect(target, dialect).await;
    assert_eq!(client.list::<protocol::Tool>().await.unwrap().len(), 2);
    assert_eq!(client.list::<protocol::Resource>().await.unwrap()[0].uri, "shelf://about");
    let templates = client.list::<protocol::ResourceTemplate>().await.unwrap();
    assert_eq!(templates[0].uri_template, "shelf://items/{id}{?lang}");
    assert_eq!(client.list::<protocol::Prompt>().await.unwrap()[0].name, "greet");
    let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(sum.text(), "3");
    let spoken = client.call_tool("spoken", ()).await.unwrap();
    assert_eq!(spoken.text(), dialect.as_ref());
    let item = client.read_resource("shelf://items/7?lang=en").await.unwrap();
    let ResourceContents::Text(item) = &item.contents[0] else { panic!("no text") };
    let item: Value = serde_json::from_str(&item.text).unwrap();
    assert_eq!(item, json!({"id": "7", "lang": "en"}));
    let missing = client.read_resource("shelf://nothing").await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    let wrong = client.call_tool("nope", ()).await.unwrap_err();
    assert_eq!(wrong.kind, ErrorKind::Protocol, "{wrong}");
    client.ping().await.unwrap();
    client
}

#[tokio::test(start_paused = true)]
async fn both_dialects_work_over_every_transport() {
    let listening = server().listen(memory::HTTP).await.unwrap();
    let lines = server().listen(memory::LINES).await.unwrap();
    let url = listening.url().to_owned();
    for dialect in Dialect::ALL {
        for url in [
            &url,
            &url.replacen("http", "ws", 1),
            &url.replacen("/mcp", "/sse", 1),
            &lines.url().to_owned(),
        ] {
            let client = exercise(Target::url(url).unwrap(), dialect).await;
            let has_session =
                dialect == Dialect::Bare && url.ends_with("/mcp") && url.starts_with("http");
            assert_eq!(client.session_id().is_some(), has_session, "{url} {dialect}");
            client.close().await;
        }
        exercise(Target::from(server()), dialect).await.close().await;
    }
    listening.shut_down().await;
    lines.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_prompts_text_comes_as_one_message() {
    let client = connect(Target::from(server()), Dialect::V0_7).await;
    let prompts = client.list::<protocol::Prompt>().await.unwrap();
    let arguments = prompts[0].arguments.as_ref().unwrap();
    assert_eq!(arguments.len(), 2);
    let rendered = client.get_prompt("greet", json!({"who": "Ada", "how": "warm"})).await.unwrap();
    assert_eq!(rendered.messages[0].content.as_text(), Some("Ada warm"));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_is_renewed_automatically() {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let server = server().options(|options| options.http.session_idle = Duration::from_secs(2));
    let server = server.middleware(["initialize"], move |request, next| {
        counted.fetch_add(1, Ordering::Relaxed);
        next.run(request)
    });
    let listening = server.listen(memory::HTTP).await.unwrap();
    let url = listening.url().to_owned();
    for url in [url.replacen("http", "ws", 1), url.replacen("/mcp", "/sse", 1)] {
        let before = begun.load(Ordering::Relaxed);
        let client = connect(Target::url(&url).unwrap(), Dialect::V0_7).await;
        for times in 2..4 {
            tokio::time::sleep(Duration::from_millis(4500)).await;
            let sum = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
            assert_eq!(sum.text(), "3");
            assert_eq!(begun.load(Ordering::Relaxed) - before, times, "{url}");
        }
        client.close().await;
    }
    listening.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_dialect_is_recognised() {
    let server = Server::new("plain").tool("t", || async { Ok(ContentBlock::from("x")) });
    let listening = server.listen(memory::HTTP).await.unwrap();
    for target in [Target::url(listening.url()).unwrap(), Target::from(&server)] {
        let error = Client::builder(target)
            .options(|options| options.dialect = Some(Dialect::V0_7))
            .connect()
            .await
            .unwrap_err();
        assert!(error.message.contains("protocolVersion"), "{error}");
    }
    // A server without the dialect ignores the client's bare notifications.
    let client = connect(Target::from(&server), Dialect::Bare).await;
    assert_eq!(client.call_tool("t", ()).await.unwrap().text(), "x");
    client.close().await;
    listening.shut_down().await;
}
