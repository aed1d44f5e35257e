//! Entries of an upstream server's lists are passed on whole, and updates of what its templates describe.

use gudgeon::{Server, client::Target};
use serde_json::{Value, json};

use crate::support::{
    duplex::Peer,
    http::{Answer, Mock, Seen, eventually, initialized},
};

/// Answers as a server of 2025-11-25 with these lists.
fn listing(seen: &Seen, lists: &Value) -> Answer {
    match seen.rpc().as_str() {
        "initialize" => {
            let mut result = initialized("2025-11-25");
            result["capabilities"] =
                json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}});
            seen.result(result)
        }
        "notifications/initialized" => Answer::empty(202),
        "server/discover" => seen.error(400, -32_601, Value::Null),
        "resources/templates/list" => {
            seen.result(json!({"resourceTemplates": lists["resourceTemplates"]}))
        }
        method => match method.strip_suffix("/list") {
            Some(name) => seen.result(json!({name: lists[name]})),
            None => Answer::empty(405),
        },
    }
}

/// Spec 2026-07-28, Basic, Messages: members of later revisions and of vendors are no error.
#[tokio::test]
async fn members_of_entries_that_no_revision_defines_pass_at_any_depth() {
    let lists = json!({
        "tools": [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "costs": 1.50},
            "price": {"cents": 18_446_744_073_709_551_615_u64}}],
        "resources": [{"uri": "a://b", "name": "b", "owner": "Ada"}],
        "resourceTemplates": [{"uriTemplate": "a://{c}", "name": "c", "owner": "Eve"}],
        "prompts": [{"name": "ask", "arguments": [{"name": "x"}, {"name": "y", "kind": "text"}]}],
    });
    let entries = lists.clone();
    let upstream = Mock::start(move |seen| listing(seen, &entries)).await;
    let server = Server::new("house").mount_upstream("shelf", Target::url(&upstream.url).unwrap());
    let mut peer = Peer::legacy(&server).await;
    for (method, name) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let mut expected = lists[name].clone();
        if let Some(own) =
            expected[0]["name"].as_str().filter(|_| name == "tools" || name == "prompts")
        {
            expected[0]["name"] = format!("shelf_{own}").into();
        }
        assert_eq!(peer.request(method, json!({})).await["result"][name], expected);
    }
}

#[tokio::test]
async fn a_resource_whose_subscription_its_server_refuses_leaves_the_others_watched() {
    let lists = json!({
        "tools": [], "resources": [], "prompts": [],
        "resourceTemplates": [{"uriTemplate": "a://{c}", "name": "c"}],
    });
    let upstream = Mock::start(move |seen| match seen.rpc().as_str() {
        "resources/subscribe" if seen.body["params"]["uri"] == "a://2" => {
            seen.error(200, -32_002, Value::Null)
        }
        "resources/subscribe" | "resources/unsubscribe" => seen.result(json!({})),
        _ => listing(seen, &lists),
    })
    .await;
    let server = Server::new("house").mount_upstream("shelf", Target::url(&upstream.url).unwrap());
    let mut peer = Peer::legacy(&server).await;
    let subscribed = |uri: &str| {
        upstream.of("resources/subscribe").iter().any(|seen| seen.body["params"]["uri"] == uri)
    };
    for uri in ["a://1", "a://2", "a://3"] {
        assert!(peer.request("resources/subscribe", json!({"uri": uri})).await["error"].is_null());
        eventually(|| subscribed(uri)).await;
    }
    let left = upstream.of("resources/unsubscribe");
    assert!(left.iter().all(|seen| seen.body["params"]["uri"] != "a://1"), "{left:?}");
}
