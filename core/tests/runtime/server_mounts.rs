//! Later changes and notifications of a mounted Rust server, as seen by clients of the outer servers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{List, Prompt, Registry, Resource, Server, Tool, server::middleware};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::duplex::Peer;

#[derive(Deserialize, JsonSchema)]
struct Review {
    title: String,
}

/// A shelf in a house in a town, and what changes the shelf.
fn town() -> (Server, Registry) {
    let shelf = Server::new("shelf")
        .add(Tool::new("tidy", || async { "tidy" }).tags(["work"]))
        .tool("read", || async { "read" })
        .add(Resource::new("shelf://kept", || async { "kept" }).cache(Duration::from_secs(60)))
        .middleware(["tools/call"], |request: middleware::Request, next: middleware::Next| async {
            let name = request.params["name"].as_str().unwrap_or_default().to_owned();
            let mut result = next.run(request).await?;
            result["_meta"] = json!({ "name": name });
            Ok(result)
        });
    let registry = shelf.registry();
    let house = Server::new("house").add(Tool::new("open", || async { "open" }).tags(["work"]));
    (Server::new("town").mount("house", house.mount("shelf", shelf)), registry)
}

async fn names(peer: &mut Peer, method: &str, list: &str) -> Vec<String> {
    let listed = peer.request(method, json!({})).await;
    let listed = listed["result"][list].as_array().unwrap();
    let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
    listed.iter().map(name).collect()
}

async fn tools(peer: &mut Peer) -> Vec<String> {
    names(peer, "tools/list", "tools").await
}

#[tokio::test(start_paused = true)]
async fn later_registrations_reach_all_outer_servers() {
    let (town, shelf) = town();
    let mut peer = Peer::legacy(&town).await;
    assert_eq!(tools(&mut peer).await, ["house_open", "house_shelf_tidy", "house_shelf_read"]);
    shelf.add(Tool::new("sort", || async { "sorted" })).unwrap();
    assert_eq!(peer.receive().await["method"], "notifications/tools/list_changed");
    assert_eq!(tools(&mut peer).await.last().unwrap(), "house_shelf_sort");
    let sorted = peer.call("house_shelf_sort", json!({})).await;
    assert_eq!(sorted["content"][0]["text"], "sorted");
    assert_eq!(sorted["_meta"]["name"], "sort", "its own server's middleware runs around it");
    shelf.add(Prompt::new("ask", || async { "asked" })).unwrap();
    assert_eq!(names(&mut peer, "prompts/list", "prompts").await, ["house_shelf_ask"]);
    shelf.add(Resource::new("shelf://new", || async { "new" })).unwrap();
    let read = peer.request("resources/read", json!({"uri": "shelf://new"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "new");
}

#[tokio::test(start_paused = true)]
async fn removals_hiding_and_updates_reach_all_outer_servers() {
    let (town, shelf) = town();
    let mut peer = Peer::legacy(&town).await;
    shelf.set_tag_enabled(List::Tools, "work", false).unwrap();
    assert_eq!(
        tools(&mut peer).await,
        ["house_open", "house_shelf_read"],
        "its tags choose its own things"
    );
    shelf.set_enabled(List::Tools, ["tidy"], true).unwrap();
    shelf.update(List::Tools, "tidy", json!({"description": "Tidy up."})).unwrap();
    assert_eq!(peer.listed("house_shelf_tidy").await["description"], "Tidy up.");
    shelf.remove(List::Tools, "read").unwrap();
    assert_eq!(tools(&mut peer).await, ["house_open", "house_shelf_tidy"]);
    town.registry().remove(List::Tools, "house_shelf_tidy").unwrap();
    shelf.remove(List::Tools, "tidy").unwrap();
    assert_eq!(
        tools(&mut peer).await,
        ["house_open"],
        "what is gone there already is not an error"
    );
}

#[tokio::test(start_paused = true)]
async fn notifications_of_a_mounted_server_reach_clients_of_outer_servers() {
    let (town, shelf) = town();
    let mut peer = Peer::legacy(&town).await;
    peer.request("resources/subscribe", json!({"uri": "shelf://kept"})).await;
    shelf.notify_updated("shelf://kept");
    let told = peer.receive().await;
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], "shelf://kept");
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_fails_in_one_outer_server_changes_none() {
    let (town, shelf) = town();
    town.registry().add(Tool::new("house_shelf_sort", || async { "mine" })).unwrap();
    let refused = shelf.add(Tool::new("sort", || async { "sorted" })).unwrap_err();
    assert!(refused.message.contains("house_shelf_sort"), "{}", refused.message);
    assert!(
        shelf.update(List::Tools, "sort", json!({"title": "Sort"})).is_err(),
        "it is not there"
    );
    let mut peer = Peer::legacy(&town).await;
    let mine = peer.call("house_shelf_sort", json!({})).await;
    assert_eq!(mine["content"][0]["text"], "mine");
}

#[tokio::test(start_paused = true)]
async fn middleware_of_a_mounted_server_sees_its_own_names_in_completions() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&received);
    let shelf = Server::new("shelf")
        .add(Prompt::new("review", |review: Review| async move { review.title }))
        .complete("review", "title", |typed: String| async move { vec![typed] })
        .middleware(["completion/complete"], move |request: middleware::Request, next| {
            seen.lock().unwrap().push(request.params["ref"]["name"].clone());
            middleware::Next::run(next, request)
        });
    let mut peer = Peer::legacy(&Server::new("house").mount("shelf", shelf)).await;
    let asked = json!({
        "ref": {"type": "ref/prompt", "name": "shelf_review"},
        "argument": {"name": "title", "value": "d"},
    });
    let completed = peer.request("completion/complete", asked).await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["d"]));
    assert_eq!(*received.lock().unwrap(), ["review"]);
}
