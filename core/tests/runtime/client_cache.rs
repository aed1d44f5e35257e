//! Lists and resources that a client does not request again (Server Features › Utilities › Caching).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{
    Client,
    client::{Change, ListKind, Target},
    protocol::Tool,
};
use serde_json::{Value, json};

use crate::support::stream::{error, result, server, server_with};

type Sent = Arc<Mutex<Vec<String>>>;

/// A server whose results are fresh for an hour, and the requests that it received: the method with the cursor, URI or
/// name. Reading `a:/ask` asks a question. The tool `change` notifies of changes first. The tool `unknown` is refused.
fn caching(revision: &'static str) -> (Target, Sent) {
    let sent = Sent::default();
    let log = Arc::clone(&sent);
    let mut listening = json!(null);
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    let (target, _) = server_with(capabilities, revision, move |message| {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let about = ["cursor", "uri", "name"].iter().find_map(|at| params[at].as_str());
        log.lock().expect("lives").push(match about {
            Some(about) => format!("{method} {about}"),
            None => method.to_owned(),
        });
        let cached = |mut content: Value| {
            content["ttlMs"] = json!(3_600_000);
            content["cacheScope"] = json!("private");
            vec![result(message, &content)]
        };
        match (method, about) {
            ("tools/list", None) => cached(json!({"tools": [tool("one")], "nextCursor": "2"})),
            ("tools/list", _) => cached(json!({"tools": [tool("two")]})),
            ("resources/read", Some("a:/ask")) if params["inputResponses"].is_null() => {
                vec![result(
                    message,
                    &json!({"resultType": "input_required", "ttlMs": 3_600_000,
                    "inputRequests": {"q": {"method": "roots/list", "params": {}}}}),
                )]
            }
            ("resources/read", Some(uri)) => {
                cached(json!({"contents": [{"uri": uri, "text": "read"}]}))
            }
            ("subscriptions/listen", _) => {
                listening = message["id"].clone();
                vec![notification(
                    "acknowledged",
                    &listening,
                    json!({"notifications": params["notifications"]}),
                )]
            }
            ("tools/call", Some("change")) => vec![
                notification("tools/list_changed", &listening, json!({})),
                notification("resources/updated", &listening, json!({"uri": "a:/b"})),
                result(message, &json!({"content": []})),
            ],
            ("tools/call", Some("unknown")) => vec![error(message, -32602)],
            _ => vec![result(message, &json!({"content": []}))],
        }
    });
    (target, sent)
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

fn notification(name: &str, listening: &Value, mut params: Value) -> Value {
    let name = match name {
        "acknowledged" => "notifications/subscriptions/acknowledged".to_owned(),
        name => format!("notifications/{name}"),
    };
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": listening});
    json!({"jsonrpc": "2.0", "method": name, "params": params})
}

fn take(sent: &Sent) -> Vec<String> {
    std::mem::take(&mut *sent.lock().expect("lives"))
}

async fn names(client: &Client) -> Vec<String> {
    let tools = client.list::<Tool>().await.expect("lists");
    tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fresh_list_or_resource_is_not_requested_again() {
    let (target, sent) = caching("2026-07-28");
    let client = Client::connect(target).await.expect("connects");
    for _ in 0..3 {
        assert_eq!(names(&client).await, ["one", "two"]);
        assert_eq!(client.read_resource("a:/b").await.expect("reads").contents.len(), 1);
    }
    assert_eq!(take(&sent), ["tools/list", "tools/list 2", "resources/read a:/b"]);
    client.list_page::<Tool>(Some("2".into())).await.expect("a page");
    client.clone().list::<Tool>().await.expect("lists");
    assert!(take(&sent).is_empty(), "pages and clones use the same results");
    client.read_resource("a:/c").await.expect("reads");
    assert_eq!(take(&sent), ["resources/read a:/c"]);
}

#[tokio::test(start_paused = true)]
async fn some_requests_are_always_sent() {
    let (target, sent) = caching("2026-07-28");
    let client = Client::builder(target).options(|options| options.roots = Some(Vec::new()));
    let client = client.connect().await.expect("connects");
    let with_meta = client.with_options(|options| {
        options.meta = Some(gudgeon::protocol::json::raw(r#"{"tenant":"a"}"#.into()));
    });
    for _ in 0..2 {
        client.request("tools/list", ()).await.expect("a request by its method");
        with_meta.read_resource("a:/b").await.expect("a request with _meta");
        client.read_resource("a:/ask").await.expect("a read with a question");
    }
    let once =
        ["tools/list", "resources/read a:/b", "resources/read a:/ask", "resources/read a:/ask"];
    assert_eq!(take(&sent), [once, once].concat());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_cached_without_the_option_or_before_2026_07_28() {
    for (revision, cache) in [("2026-07-28", false), ("2025-11-25", true)] {
        let (target, sent) = caching(revision);
        let client = Client::builder(target).options(|options| options.cache_results = cache);
        let client = client.connect().await.expect("connects");
        names(&client).await;
        names(&client).await;
        let once = ["tools/list", "tools/list 2"];
        assert_eq!(take(&sent), [once, once].concat(), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_and_refused_calls_make_the_client_ask_again() {
    let (target, sent) = caching("2026-07-28");
    let client = Client::connect(target).await.expect("connects");
    let wanted = [Change::List(ListKind::Tools), Change::Updated("a:/b".into())];
    let mut changes = client.subscribe(wanted.clone()).await.expect("subscribes");
    names(&client).await;
    client.read_resource("a:/b").await.expect("reads");
    client.call_tool("change", ()).await.expect("calls");
    for change in wanted {
        assert_eq!(changes.next().await.expect("a change").expect("no error"), change);
    }
    take(&sent);
    names(&client).await;
    client.read_resource("a:/b").await.expect("reads");
    assert_eq!(take(&sent), ["tools/list", "tools/list 2", "resources/read a:/b"]);

    client.call_tool("unknown", ()).await.expect_err("is refused");
    take(&sent);
    names(&client).await;
    assert_eq!(take(&sent), ["tools/list", "tools/list 2"]);
}

/// "If a cursor becomes invalid, the client SHOULD discard all cached pages and re-fetch from the beginning."
#[tokio::test(start_paused = true)]
async fn a_list_begins_anew_when_the_cursor_of_a_cached_page_is_refused() {
    let sent = Sent::default();
    let log = Arc::clone(&sent);
    let mut version = 0;
    let (target, _) = server("2026-07-28", move |message| {
        let cursor = message["params"]["cursor"].as_str();
        log.lock().expect("lives").push(cursor.unwrap_or("first").to_owned());
        match cursor {
            None => {
                version += 1;
                vec![result(
                    message,
                    &json!({"tools": [tool("one")], "nextCursor": format!("v{version}"),
                    "ttlMs": 3_600_000}),
                )]
            }
            // The first version of the list has expired by the second listing.
            Some("v1") if version == 1 && log.lock().expect("lives").len() > 2 => {
                vec![error(message, -32602)]
            }
            Some(_) => vec![result(message, &json!({"tools": [tool("two")], "ttlMs": 0}))],
        }
    });
    let client = Client::connect(target).await.expect("connects");
    assert_eq!(names(&client).await, ["one", "two"]);
    assert_eq!(names(&client).await, ["one", "two"]);
    assert_eq!(take(&sent), ["first", "v1", "v1", "first", "v2"]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_refused_for_new_pages_is_an_error() {
    let (target, _) = server("2026-07-28", |message| match message["params"]["cursor"].as_str() {
        None => {
            vec![result(message, &json!({"tools": [], "nextCursor": "bad", "ttlMs": 3_600_000}))]
        }
        Some(_) => vec![error(message, -32602)],
    });
    let client = Client::connect(target).await.expect("connects");
    for _ in 0..2 {
        let refused = tokio::time::timeout(Duration::from_secs(5), client.list::<Tool>()).await;
        let refused = refused.expect("ends").expect_err("is refused");
        assert_eq!(refused.code, Some(-32602));
    }
}
