//! Lists over the wire: cursors, cache hints, and the serialization of a list, which happens once.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gudgeon::{
    http::{EndpointConfig, EndpointInput},
    protocol::{CacheScope, Principal, json::to_raw},
    router::{Components, Failure, Middleware, Reply},
    session::server::ListKind,
};
use serde_json::{Value, json};

use crate::support::{Handler, fixture, kept, visitor::Visitor};

/// A server whose lists come three entries at a time.
fn server(keys: &[&str]) -> Visitor {
    let mut components = fixture::components();
    let facts = Arc::make_mut(&mut components.server);
    facts.page_size = 3;
    facts.request_state_keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    Visitor::new(components, EndpointConfig::default())
}

fn list(visitor: &mut Visitor, method: &str, cursor: &Value) -> Value {
    let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
    let id = visitor.modern(method, params);
    visitor.reply(id).json()
}

fn is_refused(answer: &Value) -> bool {
    answer["error"]["code"] == -32602 && answer["error"]["message"] == "invalid cursor"
}

#[test]
fn pages_follow_one_another_to_the_end() {
    let mut visitor = server(&[]);
    let (mut cursor, mut names) = (Value::Null, Vec::new());
    loop {
        let result = list(&mut visitor, "tools/list", &cursor)["result"].clone();
        let tools = result["tools"].as_array().unwrap();
        assert!((1..=3).contains(&tools.len()));
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let whole: Vec<_> =
        fixture::components().tools.iter().map(|registered| registered.tool.name.clone()).collect();
    assert_eq!(names, whole);
}

#[test]
fn an_invented_cursor_is_rejected() {
    let mut visitor = server(&[]);
    for place in ["tool:0", "tool:2", "resource:0", "tool:99", "", "0", "prompt:0"] {
        let forged = json!(URL_SAFE_NO_PAD.encode(place));
        let answer = list(&mut visitor, "tools/list", &forged);
        assert!(is_refused(&answer), "{place}: {answer}");
    }
}

#[test]
fn a_cursor_belongs_to_its_list() {
    let mut visitor = server(&[]);
    let cursor = list(&mut visitor, "tools/list", &Value::Null)["result"]["nextCursor"].clone();
    for other in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert!(is_refused(&list(&mut visitor, other, &cursor)), "{other}");
    }
    assert!(list(&mut visitor, "tools/list", &cursor)["result"]["tools"].is_array());
}

#[test]
fn replicas_with_the_same_keys_take_each_others_cursors() {
    let (mut one, mut other) = (server(&["new", "old"]), server(&["old"]));
    let cursor = list(&mut other, "tools/list", &Value::Null)["result"]["nextCursor"].clone();
    let here = list(&mut other, "tools/list", &cursor)["result"]["tools"].clone();
    assert_eq!(list(&mut one, "tools/list", &cursor)["result"]["tools"], here);
    assert!(is_refused(&list(&mut server(&["another"]), "tools/list", &cursor)));
}

#[test]
fn cache_hints_are_sent_in_revisions_that_define_them() {
    let mut components = fixture::components();
    Arc::make_mut(&mut components.server).list_ttl = Duration::from_millis(2_500);
    let mut about = (**components.resources.find("fixture://about").unwrap()).clone();
    about.options.cache_ttl = Duration::from_mins(1);
    about.options.cache_scope = Some(CacheScope::Private);
    components.resources.remove("fixture://about").unwrap();
    components.resources.add(about, true).unwrap();
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    let methods = [
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ];
    for method in methods {
        let result = list(&mut visitor, method, &Value::Null)["result"].clone();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(2_500), &json!("public")));
    }
    let read = json!({"uri": "fixture://about"});
    let id = visitor.modern("resources/read", read.clone());
    visitor.finish(Ok(Reply::Text("About.".into())));
    let result = visitor.reply(id).json()["result"].clone();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(60_000), &json!("private")));
    let session = visitor.open("2025-11-25", json!({}));
    for (method, params) in [("tools/list", json!({})), ("resources/read", read)] {
        let request = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let id = visitor.legacy(&session, &request);
        if !visitor.runs.is_empty() {
            visitor.finish(Ok(Reply::Text("About.".into())));
        }
        let answer = visitor.reply(id).body.clone();
        assert!(answer.contains("result"), "{answer}");
        assert!(!answer.contains("ttlMs") && !answer.contains("cacheScope"), "{answer}");
    }
}

#[test]
fn every_revision_gets_its_own_text_and_sees_every_change() {
    let mut visitor = server(&[]);
    let mut components: Components = fixture::components();
    let titled = json!({"title": "Adder"});
    components.tools.update("add", titled.as_object().unwrap()).unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    let old = visitor.open("2024-11-05", json!({}));
    let new = visitor.open("2025-11-25", json!({}));
    let first = |visitor: &mut Visitor, session: &str| {
        let id = visitor.legacy(session, &request);
        let reply = visitor.reply(id);
        let answer = if reply.is_stream() { reply.messages()[0].clone() } else { reply.json() };
        answer["result"]["tools"][0].clone()
    };
    for _ in 0..2 {
        assert!(first(&mut visitor, &new)["outputSchema"].is_object());
        assert!(first(&mut visitor, &old)["outputSchema"].is_null());
    }
    visitor.handle(EndpointInput::Components(Arc::new(components), vec![ListKind::Tools]));
    assert_eq!(first(&mut visitor, &new)["title"], "Adder");
    assert!(first(&mut visitor, &old)["title"].is_null());
}

/// The server's about page, as clients may keep it.
fn about(scope: Option<CacheScope>) -> Components {
    let mut components = fixture::components();
    let mut about = (**components.resources.find("fixture://about").unwrap()).clone();
    about.options.cache_scope = scope;
    components.resources.remove("fixture://about").unwrap();
    components.resources.add(about, true).unwrap();
    components
}

#[test]
fn results_for_a_known_caller_are_private_by_default() {
    let ada = || Some(Arc::new(Principal::new("ada")));
    let token: &[(&str, &str)] = &[("authorization", "Bearer a")];
    let (private, public) = (Some(CacheScope::Private), Some(CacheScope::Public));
    for (said, principal, headers, scope) in [
        (None, None, &[][..], "public"),
        (None, ada(), &[], "private"),
        (None, None, token, "private"),
        (public, ada(), token, "public"),
        (private, None, &[], "private"),
    ] {
        let mut visitor = Visitor::new(about(said), EndpointConfig::default());
        let place = format!("{said:?} {principal:?} {headers:?}");
        visitor.principal = principal;
        let id = visitor.modern_with("resources/read", json!({"uri": "fixture://about"}), headers);
        visitor.finish(Ok(Reply::Text("About.".into())));
        assert_eq!(visitor.reply(id).json()["result"]["cacheScope"], scope, "{place}");
        let id = visitor.modern_with("tools/list", json!({}), headers);
        assert_eq!(visitor.reply(id).json()["result"]["cacheScope"], "public", "{place}");
    }
}

#[test]
fn a_list_changed_by_middleware_is_private() {
    for (who, scope) in [(None, "public"), (Some(Arc::new(Principal::new("ada"))), "private")] {
        let mut components = fixture::components();
        let handler: Handler = Handler::Plain;
        components.set_middleware(Some(Middleware::new(kept(handler), ["tools/list"], false)));
        let mut visitor = Visitor::new(components, EndpointConfig::default());
        visitor.principal = who;
        let unchanged = visitor.modern("tools/list", json!({}));
        visitor.finish(Ok(Reply::Nothing));
        assert_eq!(visitor.reply(unchanged).json()["result"]["cacheScope"], "public");
        let changed = visitor.modern("tools/list", json!({}));
        let fewer = json!({"tools": [], "ttlMs": 7, "cacheScope": "public"});
        visitor.finish(Ok(Reply::Result(fewer.to_string())));
        let result = visitor.reply(changed).json()["result"].clone();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(7), &json!(scope)));
    }
}

#[test]
fn without_a_cache_nothing_is_stored_and_runs_are_not_shared() {
    let mut components = fixture::components();
    let mut about = (**components.resources.find("fixture://about").unwrap()).clone();
    about.options.keep = Some(Duration::ZERO);
    components.resources.remove("fixture://about").unwrap();
    components.resources.add(about, true).unwrap();
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    visitor.modern("resources/read", json!({"uri": "fixture://about"}));
    visitor.modern("resources/read", json!({"uri": "fixture://about"}));
    assert_eq!(visitor.runs.len(), 2);
}

#[test]
fn reserved_meta_keys_of_results_are_reported_once() {
    let mut visitor = server(&[]);
    for _ in 0..2 {
        for meta in [json!({"com.example/ok": 1}), json!({"not ok": 1, "dev.mcp/x": 2})] {
            let id = visitor.modern("tools/call", json!({"name": "content", "arguments": {}}));
            let result = json!({"content": [], "_meta": meta});
            visitor.finish(Ok(Reply::Result(result.to_string())));
            let said = visitor.reply(id).json()["result"]["_meta"].clone();
            for (key, value) in meta.as_object().unwrap() {
                assert_eq!(&said[key], value, "it is said all the same");
            }
        }
    }
    let [one, other] = &visitor.reports[..] else { panic!("{:?}", visitor.reports) };
    assert!(one.starts_with(r#"tool "content" answered with _meta: the key "not ok""#), "{one}");
    assert!(
        other.starts_with(r#"tool "content" answered with _meta: the key "dev.mcp/x""#),
        "{other}"
    );
}

#[test]
fn a_meta_that_is_no_object_is_the_handlers_mistake_and_null_is_none() {
    for meta in [json!(5), json!("a"), json!([{}]), json!(true)] {
        let mut visitor = server(&[]);
        let ask = |visitor: &mut Visitor, method: &str, params: Value, result: Value| {
            let id = visitor.modern(method, params);
            visitor.finish(Ok(Reply::Result(result.to_string())));
            visitor.reply(id).json()
        };
        let tool = json!({"name": "content", "arguments": {}});
        let said = ask(&mut visitor, "tools/call", tool, json!({"content": [], "_meta": meta}));
        assert_eq!(said["result"]["isError"], true, "{meta}");
        for (method, params, mut result) in [
            ("resources/read", json!({"uri": "fixture://about"}), json!({"contents": []})),
            (
                "prompts/get",
                json!({"name": "greet", "arguments": {"name": "Ada"}}),
                json!({"messages": []}),
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}),
                json!({"completion": {"values": []}}),
            ),
            ("acme/signed", json!({}), json!({"signed": true})),
        ] {
            result["_meta"] = meta.clone();
            let said = ask(&mut visitor, method, params.clone(), result.clone());
            assert_eq!(said["error"]["code"], -32603, "{method} {meta}: {said}");
            result["_meta"] = Value::Null;
            let said = ask(&mut visitor, method, params, result);
            let name = "io.modelcontextprotocol/serverInfo";
            assert!(said["result"]["_meta"][name].is_object(), "{method}: {said}");
        }
        assert!(visitor.reports.iter().all(|report| report.contains("\"_meta\" is not an object")));
        let id = visitor.modern("tools/call", json!({"name": "content", "arguments": {}}));
        let raised = Failure::Tool { message: "No.".into(), meta: Some(to_raw(&meta)) };
        visitor.finish(Err(raised));
        assert_eq!(visitor.reply(id).json()["result"]["content"][0]["text"], "No.");
        assert!(visitor.reports.pop().unwrap().ends_with("it was left out"));
    }
}
