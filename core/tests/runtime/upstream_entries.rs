//! Entries of an upstream server's lists are passed on whole, and updates of what its templates describe.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{Server, client::Target};
use serde_json::{Value, json};

use crate::support::{
    duplex::Peer,
    http::{Answer, BodyStep, Mock, Seen, eventually, initialized},
};

/// Answers as a server of 2025-11-25 with these lists.
fn listing(seen: &Seen, lists: &Value) -> Answer {
    match seen.rpc().as_str() {
        "initialize" => {
            let mut result = initialized("2025-11-25");
            result["capabilities"] = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {}});
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

/// Later revisions and vendors add members, which a server in between must not take away.
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

/// The schema of the protocol demands input schemas with `"type": "object"`. Some clients refuse a whole list for one other entry.
#[tokio::test]
async fn entries_that_would_make_a_list_unusable_are_left_out_and_the_others_stay() {
    let tool = |name: &str, more: Value| {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let mut tools = vec![tool("good", json!({})), tool("untyped", json!({"inputSchema": {}}))];
    for input in [json!("x"), json!([]), json!(true), Value::Null, json!({"type": "string"})] {
        tools.push(tool("input", json!({"inputSchema": input})));
    }
    for output in [json!("bad"), json!([]), json!(true)] {
        tools.push(tool("output", json!({"outputSchema": output})));
    }
    for meta in [json!("x"), json!([1])] {
        tools.push(tool("meta", json!({"_meta": meta})));
    }
    let lists = json!({
        "tools": tools, "prompts": [{"name": "ask", "_meta": 1}, {"name": "good"}],
        "resources": [{"uri": "a://b", "name": "b", "_meta": "x"}], "resourceTemplates": [],
    });
    let upstream = Mock::start(move |seen| listing(seen, &lists)).await;
    let server = Server::new("house").mount_upstream("shelf", Target::url(&upstream.url).unwrap());
    let mut peer = Peer::legacy(&server).await;
    let listed = peer.request("tools/list", json!({})).await["result"]["tools"].clone();
    let entry = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    assert_eq!(listed, json!([entry("shelf_good"), entry("shelf_untyped")]));
    let prompts = peer.request("prompts/list", json!({})).await["result"]["prompts"].clone();
    assert_eq!(prompts, json!([{"name": "shelf_good", "arguments": []}]));
    let resources = peer.request("resources/list", json!({})).await["result"]["resources"].clone();
    assert_eq!(resources, json!([]));
}

#[tokio::test]
async fn each_resource_is_subscribed_once_although_their_server_refuses_some() {
    let lists = json!({
        "tools": [], "resources": [], "prompts": [],
        "resourceTemplates": [{"uriTemplate": "a://{c}", "name": "c"}],
    });
    let is_refused = |uri: &str| uri.ends_with(['1', '3', '5', '7', '9']);
    let upstream = Mock::start(move |seen| match seen.rpc().as_str() {
        "resources/subscribe" if is_refused(seen.body["params"]["uri"].as_str().unwrap()) => {
            seen.error(200, -32_002, Value::Null)
        }
        "resources/subscribe" | "resources/unsubscribe" => seen.result(json!({})),
        _ => listing(seen, &lists),
    })
    .await;
    let server = Server::new("house").mount_upstream("shelf", Target::url(&upstream.url).unwrap());
    let mut peer = Peer::legacy(&server).await;
    let uris: Vec<_> = (0..80).map(|number| format!("a://{number}")).collect();
    for uri in &uris {
        assert!(peer.request("resources/subscribe", json!({"uri": uri})).await["error"].is_null());
    }
    let named = |rpc: &str| -> Vec<String> {
        let uris =
            upstream.requests(rpc).into_iter().map(|seen| seen.body["params"]["uri"].clone());
        uris.map(|uri| uri.as_str().unwrap().to_owned()).collect()
    };
    eventually(|| named("resources/subscribe").len() >= uris.len()).await;
    let mut subscribed = named("resources/subscribe");
    subscribed.sort_by_key(|uri| uris.iter().position(|known| known == uri));
    assert_eq!(subscribed, uris);
    assert!(named("resources/unsubscribe").iter().all(|uri| is_refused(uri)));
}

#[tokio::test(start_paused = true)]
async fn lists_that_change_all_the_time_are_looked_at_in_intervals() {
    let lists = json!({"tools": [], "resources": [], "prompts": [], "resourceTemplates": []});
    let feed = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&feed);
    let upstream = Mock::start(move |seen| match seen.rpc().as_str() {
        "GET" => Answer::events(vec![BodyStep::Feed(Arc::clone(&events))]),
        _ => listing(seen, &lists),
    })
    .await;
    let server = Server::new("house").mount_upstream("shelf", Target::url(&upstream.url).unwrap());
    let _peer = Peer::legacy(&server).await;
    let before = upstream.requests("tools/list").len();
    for _ in 0..100 {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        feed.lock().unwrap().push(changed);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let looked = upstream.requests("tools/list").len() - before;
    assert!((2..=6).contains(&looked), "{looked}");
}
