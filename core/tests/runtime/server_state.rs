//! States of servers: given, made at start, taken as parameters and by methods.
#![allow(clippy::unwrap_used)] // a panic is how a test fails
#![allow(clippy::unused_async)] // methods of a state are async

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use gudgeon::{
    Client, Context, Prompt, Resource, Server, State, Tool, ToolError, error::ErrorKind,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Book {
    title: String,
}

/// Counts its drops.
#[derive(Default)]
struct Shelf {
    titles: Mutex<Vec<String>>,
    drops: Arc<AtomicUsize>,
}

impl Shelf {
    async fn add(&self, Book { title }: Book) -> Result<usize, ToolError> {
        tokio::task::yield_now().await;
        let mut titles = self.titles.lock().unwrap();
        titles.push(title);
        Ok(titles.len())
    }

    async fn count(&self) -> usize {
        self.titles.lock().unwrap().len()
    }

    async fn all(&self, ctx: Context) -> String {
        assert!(!ctx.is_cancelled());
        self.titles.lock().unwrap().join(", ")
    }

    async fn review(&self, ctx: Context, Book { title }: Book) -> String {
        format!("{} {title}", ctx.request().client.name)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls a tool and returns the text of its result.
async fn call(client: &Client, tool: &str, arguments: serde_json::Value) -> String {
    client.call_tool(tool, arguments).await.unwrap().text()
}

#[tokio::test(start_paused = true)]
async fn handlers_and_methods_share_a_state() {
    async fn both(Book { title }: Book, shelf: State<Shelf>, number: State<u8>) -> String {
        format!("{title} {} {}", shelf.count().await, *number)
    }
    let server = Server::new("shelf")
        .tool("both", both)
        .with_state(Shelf::default())
        .with_state(7_u8)
        .add(Tool::new("add", State::method(Shelf::add)))
        .tool("count", State::method(Shelf::count))
        .add(Resource::new("shelf://all", State::method(Shelf::all)))
        .add(Prompt::new("review", State::method(Shelf::review)));
    let client = Client::connect(&server).await.unwrap();
    assert_eq!(call(&client, "add", json!({"title": "Dune"})).await, "1");
    assert_eq!(call(&client, "add", json!({"title": "Emma"})).await, "2");
    assert_eq!(call(&client, "count", json!({})).await, "2");
    assert_eq!(call(&client, "both", json!({"title": "Dune"})).await, "Dune 2 7");
    let all = client.read_resource("shelf://all").await.unwrap();
    assert!(serde_json::to_string(&all).unwrap().contains("Dune, Emma"));
    client.get_prompt("review", json!({"title": "Emma"})).await.unwrap();
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_a_hook_makes_lives_until_the_shutdown() {
    let drops = Arc::new(AtomicUsize::new(0));
    let made = Arc::clone(&drops);
    let server = Server::new("shelf")
        .on_start(move || async move { Ok(Shelf { drops: made, titles: Mutex::default() }) })
        .tool("count", |shelf: State<Shelf>| async move { shelf.count().await });
    for round in 1..=2 {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let serving = tokio::spawn(server.serve(reader, writer));
        let (input, output) = tokio::io::split(ours);
        let target = gudgeon::client::Target::stream(input, output);
        let client = Client::connect(target).await.unwrap();
        assert_eq!(call(&client, "count", json!({})).await, "0");
        assert_eq!(drops.load(Ordering::Relaxed), round - 1);
        client.close().await;
        serving.await.unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), round);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mounted_server_keeps_its_states() {
    let tool = |number: State<u8>| async move { *number };
    let inner = Server::new("inner").tool("number", tool).on_start(|| async { Ok(2_u8) });
    let server = Server::new("outer").with_state(1_u8).tool("number", tool).mount("in", inner);
    let client = Client::connect(&server).await.unwrap();
    assert_eq!(call(&client, "number", json!({})).await, "1");
    assert_eq!(call(&client, "in_number", json!({})).await, "2");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_there_is_named_before_anything_is_served() {
    let tool = |shelf: State<Shelf>| async move { shelf.count().await };
    let inner = Server::new("inner").tool("count", tool);
    for server in [Server::new("s").tool("count", tool), Server::new("s").mount("in", inner)] {
        let failed = Client::connect(&server).await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Misuse);
        for part in ["State<", "Shelf>", "Server::with_state", "Server::on_start"] {
            assert!(failed.message.contains(part), "{failed}");
        }
    }
}

#[test]
#[should_panic(expected = "has a state of type `u8`")]
fn a_second_state_of_a_type_is_refused() {
    drop(Server::new("s").with_state(1_u8).with_state(2_u8));
}
