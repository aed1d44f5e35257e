//! Listening servers of one address that share a store: what one of them announces, the clients of all get to know.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    Client, Context, Error, Listening, Resource, Revision, Server, Tool, ToolError,
    client::{Change, ListKind, Target},
    server::{Expect, MemoryStore, Store},
    store::BoxFuture,
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::memory;

const ABOUT: &str = "shelf://about";

async fn visits(ctx: Context) -> Result<u32, ToolError> {
    let session = ctx.session()?;
    let visits = session.get::<u32>("visits")?.unwrap_or(0) + 1;
    session.set("visits", visits)?;
    Ok(visits)
}

fn server(store: &Arc<dyn Store>) -> Server {
    Server::new("shelf")
        .options(|options| {
            options.store = Some(Arc::clone(store));
            options.request_state_keys = vec![vec![7; 32]];
        })
        .tool("add", || async { 1 })
        .tool("visits", visits)
        .add(Resource::new(ABOUT, || async { Ok("two books") }))
}

async fn connect(listening: &Listening, revision: Revision) -> Client {
    Client::builder(Target::url(listening.url()).unwrap())
        .options(|options| options.revisions = vec![revision])
        .connect()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_change_that_one_server_announces_reaches_the_clients_of_another() {
    for revision in Revision::ALL {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (one, other) = (server(&store), server(&store));
        let [listening, _elsewhere] =
            [one.listen(memory::HTTP).await.unwrap(), other.listen(memory::HTTP).await.unwrap()];
        let client = connect(&listening, revision).await;
        let updated = Change::Updated(ABOUT.into());
        let tools = Change::List(ListKind::Tools);
        let mut changes = client.subscribe([updated.clone(), tools.clone()]).await.unwrap();
        other.registry().notify_updated(ABOUT);
        assert_eq!(changes.next().await.unwrap().unwrap(), updated, "{revision:?}");
        other.registry().add(Tool::new("more", || async { 2 })).unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), tools, "{revision:?}");
        client.close().await;
    }
}

/// Sends a request of 2025-11-25 on a connection of its own. Returns the answer.
async fn post(listening: &Listening, session: Option<&str>, message: &str) -> String {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{message}",
        message.len()
    );
    let mut stream = memory::connect(listening.url());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn the_values_of_a_session_are_at_all_servers() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let one = server(&store).listen(memory::HTTP).await.unwrap();
    let other = server(&store).listen(memory::HTTP).await.unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let opened = post(&one, None, initialize).await;
    let session = opened.split("mcp-session-id: ").nth(1).unwrap().lines().next().unwrap();
    for (visits, listening) in [&one, &other, &other, &one].into_iter().enumerate() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"visits","arguments":{}}}"#;
        let answer = post(listening, Some(session), call).await;
        assert!(answer.contains(&format!(r#""text":"{}""#, visits + 1)), "{answer}");
    }
}

/// A store that never replies.
struct Silent;

impl Store for Silent {
    fn get(&self, _: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
        never()
    }

    fn put(&self, _: String, _: Vec<u8>, _: Duration, _: Expect) -> BoxFuture<Option<u64>> {
        never()
    }

    fn take(&self, _: String) -> BoxFuture<Option<Vec<u8>>> {
        never()
    }
}

fn never<T: Send + 'static>() -> BoxFuture<T> {
    Box::pin(std::future::pending::<Result<T, Error>>())
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_replies_holds_up_nothing() {
    for revision in Revision::ALL {
        let store: Arc<dyn Store> = Arc::new(Silent);
        let served = server(&store);
        let listening = served.listen(memory::HTTP).await.unwrap();
        let client = connect(&listening, revision).await;
        let mut changes = client.subscribe([Change::Updated(ABOUT.into())]).await.unwrap();
        for _ in 0..10 {
            client.call_tool("add", ()).await.unwrap();
        }
        served.registry().notify_updated(ABOUT);
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Updated(ABOUT.into()));
        client.close().await;
    }
}
