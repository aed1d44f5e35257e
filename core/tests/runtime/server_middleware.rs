//! Middleware, mounted servers and hooks of the Rust API.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{
    Context, Prompt, Resource, Server, Tool, ToolError,
    server::{ask, middleware},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::duplex::Peer;

#[derive(Deserialize, JsonSchema)]
struct Book {
    title: String,
}

fn shelf() -> Server {
    Server::new("shelf").tool("open", |book: Book| async move { format!("open {}", book.title) })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn middleware_sees_calls_and_changes_what_goes_in_and_out() {
    let server = shelf().middleware(["tools/call"], |mut request, next| async move {
        assert_eq!(request.params["name"], "open");
        let title = request.params["arguments"]["title"].as_str().unwrap().to_uppercase();
        request.params["arguments"] = json!({ "title": title });
        let mut result = next.run(request).await?;
        result["_meta"] = json!({"seen": true});
        Ok(result)
    });
    let mut peer = Peer::legacy(&server).await;
    let result = peer.call("open", json!({"title": "dune"})).await;
    assert_eq!(text(&result), "open DUNE");
    assert_eq!(result["_meta"]["seen"], true);
}

#[tokio::test(start_paused = true)]
async fn the_first_middleware_is_outermost_and_each_sees_only_its_methods() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let received = Arc::clone(&received);
        move |request: middleware::Request, next: middleware::Next| {
            received.lock().unwrap().push(format!("{name} {}", request.method));
            next.run(request)
        }
    };
    let server = shelf()
        .middleware(["*"], note("outer"))
        .middleware(["tools/list"], note("inner"))
        .middleware(["tools/call"], note("calls"));
    let mut peer = Peer::legacy(&server).await;
    peer.listed("open").await;
    peer.call("open", json!({"title": "dune"})).await;
    assert_eq!(
        *received.lock().unwrap(),
        [
            "outer initialize",
            "outer tools/list",
            "inner tools/list",
            "outer tools/call",
            "calls tools/call"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn middleware_changes_lists_and_refuses() {
    let server = shelf()
        .middleware(["tools/list"], |request, next| async move {
            let mut result = next.run(request).await?;
            result["tools"][0]["description"] = json!("Changed.");
            Ok(result)
        })
        .middleware(["tools/call", "ping"], |request, _| async move {
            Err(ToolError::new(format!("{} is locked", request.method)))
        });
    let mut peer = Peer::legacy(&server).await;
    assert_eq!(peer.listed("open").await["description"], "Changed.");
    let refused = peer.call("open", json!({"title": "x"})).await;
    assert_eq!((text(&refused), &refused["isError"]), ("tools/call is locked", &json!(true)));
    let refused = peer.request("ping", json!({})).await;
    assert_eq!(refused["error"]["message"], "ping is locked");
}

#[tokio::test(start_paused = true)]
async fn params_of_requests_that_the_core_answers_can_not_be_changed() {
    let server = shelf().middleware(["tools/list"], |mut request, next| async move {
        request.params["cursor"] = json!("x");
        next.run(request).await
    });
    let mut peer = Peer::legacy(&server).await;
    let refused = peer.request("tools/list", json!({})).await;
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("can't change the params"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn params_of_every_handler_may_change() {
    #[derive(Deserialize, JsonSchema)]
    struct Named {
        name: String,
    }
    #[derive(Deserialize, JsonSchema)]
    struct At {
        id: String,
    }
    let server = Server::new("shelf")
        .add(Prompt::new("review", |book: Book| async move { book.title }))
        .add(Resource::template("shelf://books/{id}", |book: At| async move { book.id }))
        .complete("review", "title", |typed: String| async move { vec![typed] })
        .method("acme/find", |params: Named| async move { json!({ "found": params.name }) })
        .middleware(["*"], |mut request, next| async move {
            match request.method.as_str() {
                "acme/find" => request.params["name"] = json!("other"),
                "completion/complete" => request.params["argument"]["value"] = json!("typed"),
                "resources/read" => request.params["variables"]["id"] = json!("8"),
                _ => (),
            }
            next.run(request).await
        });
    let mut peer = Peer::legacy(&server).await;
    let found = peer.request("acme/find", json!({"name": "book"})).await;
    assert_eq!(found["result"], json!({"found": "other"}));
    let completed = peer
        .request(
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "review"},
                "argument": {"name": "title", "value": "d"},
            }),
        )
        .await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["typed"]));
    let read = peer.request("resources/read", json!({"uri": "shelf://books/7"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "8", "{read}");
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_handler_pass_with_their_error() {
    let server = shelf().middleware(["*"], |request, next| async move { next.run(request).await });
    let mut peer = Peer::legacy(&server).await;
    let reply = peer.request("tools/call", json!({"name": "shut"})).await;
    assert_eq!(reply["error"], json!({"code": -32602, "message": "Unknown tool: shut"}));
    let reply = peer.request("resources/read", json!({"uri": "a://b"})).await;
    assert_eq!(reply["error"]["code"], -32002, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn questions_pass_middleware() {
    let server = Server::new("t")
        .tool("ask", |ctx: Context| async move {
            let roots = ask::roots();
            match ctx.answer(&roots)? {
                None => Err(roots.into()),
                Some(roots) => Ok(format!("{} roots", roots.len())),
            }
        })
        .middleware(["*"], middleware::response_limit(100));
    let mut peer = Peer::legacy(&server).await;
    peer.ask("tools/call", json!({"name": "ask"})).await;
    let question = peer.receive().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})).await;
    assert_eq!(text(&peer.receive().await["result"]), "0 roots");
}

#[tokio::test(start_paused = true)]
async fn rates_are_limited_and_the_handshake_is_not_counted() {
    let server = shelf()
        .middleware(["*"], middleware::rate_limit(middleware::CountedBy::Principal, 0.01, 2));
    let mut peer = Peer::legacy(&server).await;
    for _ in 0..3 {
        assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    }
    assert_eq!(text(&peer.call("open", json!({"title": "a"})).await), "open a");
    assert_eq!(peer.listed("open").await["name"], "open");
    let refused = peer.call("open", json!({"title": "a"})).await;
    let text = text(&refused);
    let seconds = text
        .strip_prefix("too many requests: at most 0.01 per second are allowed; try again in ")
        .and_then(|rest| rest.strip_suffix(" s"))
        .unwrap_or_else(|| panic!("{text}"));
    // A little of the time has passed.
    assert!((99.0..=100.0).contains(&seconds.parse::<f64>().unwrap()), "{text}");
    let refused = peer.request("tools/list", json!({})).await;
    assert_eq!(refused["error"]["code"], 429);
}

#[tokio::test(start_paused = true)]
async fn notifications_of_vendors_pass_middleware_and_are_not_counted() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&received);
    let server = shelf()
        .notification("acme/poke", move |said: Value| {
            listener.lock().unwrap().push(said["x"].clone());
            async {}
        })
        .middleware(["*"], middleware::rate_limit(middleware::CountedBy::Principal, 0.01, 1))
        .middleware(["acme/poke"], |mut request, next| async move {
            request.params["x"] = json!(request.params["x"].as_i64().unwrap() * 10);
            next.run(request).await
        });
    let mut peer = Peer::legacy(&server).await;
    for x in 0..3 {
        peer.notify("acme/poke", json!({ "x": x })).await;
    }
    assert_eq!(text(&peer.call("open", json!({"title": "a"})).await), "open a");
    assert_eq!(*received.lock().unwrap(), [0, 10, 20]);
}

#[tokio::test(start_paused = true)]
async fn rates_can_be_limited_for_all_callers_together() {
    let limit = middleware::rate_limit(middleware::CountedBy::Server, 0.001, 1);
    let server = shelf().middleware(["tools/call"], limit);
    let (mut first, mut second) = (Peer::legacy(&server).await, Peer::legacy(&server).await);
    first.call("open", json!({"title": "dune"})).await;
    let refused = second.call("open", json!({"title": "dune"})).await;
    assert!(text(&refused).starts_with("too many requests"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn responses_are_limited() {
    let server = shelf().middleware(["*"], middleware::response_limit(100));
    let mut peer = Peer::legacy(&server).await;
    assert_eq!(text(&peer.call("open", json!({"title": "a"})).await), "open a");
    let refused = peer.call("open", json!({"title": "a".repeat(99)})).await;
    let told =
        "the result of tools/call open has 270 bytes, more than the limit of 100; request less";
    assert_eq!(text(&refused), told);
    let refused = peer.request("tools/list", json!({})).await;
    assert_eq!(refused["error"]["code"], 413, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_mounted_server_offers_its_things_under_its_prefix_behind_its_own_middleware() {
    let named = |level: &'static str| {
        move |request: middleware::Request, next: middleware::Next| async move {
            let name = request.params["name"].as_str().unwrap_or_default().to_owned();
            let mut result = next.run(request).await?;
            let inside = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            result["content"] =
                json!([{"type": "text", "text": format!("{level}[{name}]({inside})")}]);
            Ok(result)
        }
    };
    let book = shelf()
        .add(Prompt::new("review", |book: Book| async move { format!("Review {}.", book.title) }))
        .complete("review", "title", |_: String| async { vec!["Dune"] })
        .add(Resource::new("shelf://about", || async { "about" }))
        .method("acme/count", |_: Value| async { json!({"books": 1}) })
        .middleware(["tools/call"], named("shelf"));
    let room = Server::new("room").mount("shelf", book).middleware(["tools/call"], named("room"));
    let house = Server::new("house").mount("room", room).middleware(["tools/call"], named("house"));
    let mut peer = Peer::legacy(&house).await;
    let result = peer.call("room_shelf_open", json!({"title": "dune"})).await;
    assert_eq!(text(&result), "house[room_shelf_open](room[shelf_open](shelf[open](open dune)))");
    let prompt = peer
        .request("prompts/get", json!({"name": "room_shelf_review", "arguments": {"title": "x"}}))
        .await;
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "Review x.");
    let about = peer.request("resources/read", json!({"uri": "shelf://about"})).await;
    assert_eq!(about["result"]["contents"][0]["text"], "about");
    let reference = json!({"type": "ref/prompt", "name": "room_shelf_review"});
    let completed = peer
        .request(
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "title", "value": ""}}),
        )
        .await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["Dune"]));
    assert_eq!(peer.request("acme/count", json!({})).await["result"], json!({"books": 1}));
}

#[test]
fn middleware_that_would_never_run_is_refused() {
    let pass = |request: middleware::Request, next: middleware::Next| next.run(request);
    for (on, mend) in [
        ("tools/cal", "did you mean \"tools/call\"?"),
        ("tool/call", "did you mean \"tools/call\"?"),
        ("prompts/gets", "did you mean \"prompts/get\"?"),
        ("tools/everything", "name one that they send, such as \"tools/call\""),
        ("call_tool", "name one that they send"),
        ("", "name one that they send"),
        ("sampling/createMessage", "name one that they send"),
        ("notifications/initialized", "name one that they send"),
        ("acme/a b", "is not a method name"),
    ] {
        let refused = std::panic::catch_unwind(|| drop(shelf().middleware([on], pass)));
        let said = *refused.expect_err(on).downcast::<String>().unwrap();
        assert!(said.contains(on) && said.contains(mend), "{on}: {said}");
    }
    let nothing: [&str; 0] = [];
    assert!(std::panic::catch_unwind(|| drop(shelf().middleware(nothing, pass))).is_err());
    let known = ["*", "ping", "server/discover", "notifications/roots/list_changed", "acme/later"];
    let server = shelf().method("reindex", || async { json!({}) });
    drop(server.middleware(known, pass).middleware(["reindex"], pass));
}

#[tokio::test(start_paused = true)]
async fn params_that_do_not_fit_are_refused_before_the_handler() {
    let server = Server::new("s")
        .method("acme/open", |book: Book| async move { json!({"book": book.title}) });
    let mut peer = Peer::legacy(&server).await;
    let opened = peer.request("acme/open", json!({"title": "dune"})).await;
    assert_eq!(opened["result"]["book"], "dune");
    for (params, said) in [
        (json!({}), "Invalid params: missing parameter 'title'"),
        (json!({"title": 5}), "Invalid params: parameter 'title': expected a string, got 5"),
    ] {
        let refused = peer.request("acme/open", params).await;
        assert_eq!(refused["error"], json!({"code": -32602, "message": said}));
    }
}

#[test]
#[should_panic(expected = "a prefix is one or more letters")]
fn an_invalid_prefix_is_rejected() {
    drop(Server::new("house").mount("a b", shelf()));
}

#[test]
#[should_panic(expected = "already registered")]
fn a_name_that_is_taken_is_refused() {
    drop(Server::new("house").tool("shelf_open", || async { "" }).mount("shelf", shelf()));
}

#[tokio::test(start_paused = true)]
async fn a_handler_replaces_a_built_in_method() {
    let server = Server::new("gateway").method("tools/list", |params: Value| async move {
        let name = params["cursor"].as_str().unwrap_or("first").to_owned();
        json!({"tools": [{"name": name, "inputSchema": {"type": "object"}}]})
    });
    let mut peer = Peer::legacy(&server).await;
    let list = peer.request("tools/list", json!({"cursor": "second"})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "second");
}

#[tokio::test(start_paused = true)]
async fn hooks_run_in_order_and_a_failed_start_serves_nothing() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let told = Arc::clone(&told);
        move || {
            told.lock().unwrap().push(name);
            std::future::ready(())
        }
    };
    let start = |name: &'static str| {
        let note = note(name);
        move || async move {
            note().await;
            Ok(())
        }
    };
    let inner = Server::new("inner").on_start(start("inner")).on_shutdown(note("inner over"));
    let server = Server::new("outer")
        .on_start(start("outer"))
        .mount("in", inner)
        .on_start(|| async { Err::<(), _>(ToolError::new("no database")) })
        .on_start(start("never"))
        .on_shutdown(note("outer over"));
    let failed = server.run("http://127.0.0.1:0/mcp").await.unwrap_err();
    assert!(failed.message.contains("no database"), "{failed}");
    assert_eq!(*told.lock().unwrap(), ["outer", "inner", "inner over", "outer over"]);
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_have_timeouts() {
    async fn slow() -> &'static str {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        "late"
    }
    let server = Server::new("t")
        .add(Tool::new("t", slow).timeout(Duration::from_millis(20)))
        .add(Prompt::new("p", slow).timeout(Duration::from_millis(20)))
        .add(Resource::new("t://r", slow).timeout(Duration::from_millis(20)));
    let mut peer = Peer::legacy(&server).await;
    let tool = peer.call("t", json!({})).await;
    assert_eq!(
        (text(&tool), &tool["isError"]),
        ("tool \"t\" took longer than its 0.02 s", &json!(true))
    );
    let prompt = peer.request("prompts/get", json!({"name": "p"})).await;
    let told = json!({"code": -32603, "message": "prompt \"p\" took longer than its 0.02 s"});
    assert_eq!(prompt["error"], told);
    let resource = peer.request("resources/read", json!({"uri": "t://r"})).await;
    assert_eq!(resource["error"]["message"], "resource \"t://r\" took longer than its 0.02 s");
}
