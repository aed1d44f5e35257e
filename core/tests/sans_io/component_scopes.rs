//! Scopes that a component needs: all of them are named at once, so that a client can ask for them (2026-07-28, "Runtime
//! Insufficient Scope Errors").

use std::sync::Arc;

use gudgeon::{
    http::{EndpointConfig, EndpointInput},
    protocol::{Implementation, Principal},
    router::{Components, Definition, List, Reply, ServerFacts},
};
use serde_json::{Value, json};

use crate::support::{Handler, kept, visitor::Visitor};

fn visitor(scopes: Option<&[&str]>) -> Visitor {
    visitor_of(ServerFacts::from(Implementation::new("shelf", "1")), scopes)
}

/// A client of a server that hides the components whose scopes a caller lacks.
fn hiding(scopes: Option<&[&str]>) -> Visitor {
    let mut facts = ServerFacts::from(Implementation::new("shelf", "1"));
    (facts.hide_unauthorized, facts.page_size) = (true, 1);
    visitor_of(facts, scopes)
}

fn visitor_of(mut facts: ServerFacts, scopes: Option<&[&str]>) -> Visitor {
    facts.scope_implies.insert("admin".into(), vec!["books:write".into(), "books:read".into()]);
    let mut components = Components::new(facts);
    let mut declare = |list: List, declaration: Value| {
        components.declare(list, declaration.to_string().as_bytes(), kept(Handler::Plain)).unwrap();
    };
    let scopes_of = json!(["books:read", "books:write"]);
    let schema = json!({ "type": "object" });
    declare(List::Tools, json!({ "name": "write", "inputSchema": schema, "scopes": scopes_of }));
    declare(List::Tools, json!({ "name": "look", "inputSchema": schema }));
    declare(List::Resources, json!({ "uri": "shelf://a", "name": "a", "scopes": scopes_of }));
    declare(
        List::Templates,
        json!({ "uriTemplate": "book://{id}", "name": "b", "scopes": scopes_of }),
    );
    declare(
        List::Prompts,
        json!({ "name": "p", "arguments": [{ "name": "of" }], "scopes": scopes_of }),
    );
    let completion = Definition::Completion { target: "p".into(), argument: "of".into() };
    components.add(completion, kept(Handler::Plain)).unwrap();
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    visitor.principal = scopes.map(caller);
    visitor
}

fn caller(scopes: &[&str]) -> Arc<Principal> {
    let mut principal = Principal::new("ada");
    principal.scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    Arc::new(principal)
}

const COMPLETION: &str =
    r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"of","value":""}}"#;

/// Returns the names in all pages of a list.
fn listed(visitor: &mut Visitor, method: &str, list: &str) -> Vec<String> {
    let (mut params, mut names) = (json!({}), Vec::new());
    loop {
        let id = visitor.modern(method, params);
        let result = &visitor.reply(id).json()["result"];
        let entries = result[list].as_array().unwrap().iter();
        names.extend(entries.map(|entry| entry["name"].as_str().unwrap().to_owned()));
        match result["nextCursor"].clone() {
            Value::Null => return names,
            next => params = json!({ "cursor": next }),
        }
    }
}

#[test]
fn a_caller_without_the_scopes_gets_a_challenge_with_all_of_them() {
    for (method, params) in [
        ("tools/call", json!({ "name": "write", "arguments": {} })),
        ("resources/read", json!({ "uri": "shelf://a" })),
        ("resources/read", json!({ "uri": "book://1" })),
        ("prompts/get", json!({ "name": "p" })),
        ("completion/complete", serde_json::from_str(COMPLETION).unwrap()),
    ] {
        for scopes in [None, Some(&[][..]), Some(&["books:read"][..])] {
            let mut visitor = visitor(scopes);
            let id = visitor.modern(method, params.clone());
            assert!(visitor.runs.is_empty(), "{method}");
            let reply = visitor.reply(id);
            assert_eq!(reply.status, 403, "{method}: {reply:?}");
            let challenge = reply.header("www-authenticate");
            let expected = "Bearer error=\"insufficient_scope\", scope=\"books:read books:write\"";
            assert!(challenge.starts_with(expected), "{challenge}");
            let data = &reply.json()["error"]["data"];
            assert_eq!(*data, json!({ "scopes": ["books:read", "books:write"] }));
        }
    }
}

#[test]
fn a_caller_with_the_scopes_or_a_broader_one_is_served() {
    for scopes in [&["books:read", "books:write", "more"][..], &["admin"]] {
        let mut visitor = visitor(Some(scopes));
        let id = visitor.modern("tools/call", json!({ "name": "write", "arguments": {} }));
        visitor.finish(Ok(Reply::Text("done".into())));
        assert_eq!(visitor.reply(id).status, 200);
    }
    let mut visitor = visitor(None);
    let id = visitor.modern("tools/call", json!({ "name": "look", "arguments": {} }));
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(id).status, 200, "a component without scopes is for everybody");
}

#[test]
fn components_of_other_scopes_are_listed() {
    let mut visitor = visitor(None);
    for (method, list, names) in [
        ("tools/list", "tools", &["write", "look"][..]),
        ("resources/list", "resources", &["a"]),
        ("resources/templates/list", "resourceTemplates", &["b"]),
        ("prompts/list", "prompts", &["p"]),
    ] {
        assert_eq!(listed(&mut visitor, method, list), names);
        let id = visitor.modern(method, json!({}));
        assert_eq!(visitor.reply(id).json()["result"]["cacheScope"], "public");
    }
}

#[test]
fn subscriptions_need_the_scopes_of_their_resource() {
    let updates = |visitor: &mut Visitor| {
        let uris = json!({ "resourceSubscriptions": ["shelf://a", "book://1"] });
        let id = visitor.modern("subscriptions/listen", json!({ "notifications": uris }));
        for uri in ["shelf://a", "book://1"] {
            visitor.handle(EndpointInput::Updated(uri));
        }
        let sent = visitor.reply(id).messages();
        sent.iter().filter(|message| message["method"] == "notifications/resources/updated").count()
    };
    assert_eq!(updates(&mut visitor(Some(&["books:read"]))), 0);
    assert_eq!(updates(&mut visitor(Some(&["admin"]))), 2);
    let subscribe = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
        "params": { "uri": "shelf://a" } });
    for (scopes, status) in [(&[][..], 403), (&["admin"], 200)] {
        let mut visitor = visitor(Some(scopes));
        let session = visitor.open("2025-11-25", json!({}));
        let id = visitor.legacy(&session, &subscribe);
        assert_eq!(visitor.reply(id).status, status, "{scopes:?}");
    }
}

#[test]
fn a_server_may_hide_what_a_caller_has_no_scopes_for() {
    let lists = [
        ("tools/list", "tools", &["write", "look"][..], &["look"][..]),
        ("resources/list", "resources", &["a"], &[]),
        ("resources/templates/list", "resourceTemplates", &["b"], &[]),
        ("prompts/list", "prompts", &["p"], &[]),
    ];
    for (method, list, all, public) in lists {
        for scopes in [None, Some(&[][..]), Some(&["books:read"])] {
            assert_eq!(listed(&mut hiding(scopes), method, list), public, "{method} {scopes:?}");
        }
        // Broad and sufficient scopes.
        for scopes in [&["admin"][..], &["books:write", "books:read"]] {
            let mut visitor = hiding(Some(scopes));
            assert_eq!(listed(&mut visitor, method, list), all);
            // One server answers both callers.
            visitor.principal = None;
            assert_eq!(listed(&mut visitor, method, list), public);
            let id = visitor.modern(method, json!({}));
            let result = &visitor.reply(id).json()["result"];
            assert_eq!(result["cacheScope"], "private", "{method}");
        }
    }
    for (method, params, message) in [
        ("tools/call", json!({ "name": "write", "arguments": {} }), "Unknown tool: write"),
        ("resources/read", json!({ "uri": "shelf://a" }), "Resource not found: shelf://a"),
        ("resources/read", json!({ "uri": "book://1" }), "Resource not found: book://1"),
        ("prompts/get", json!({ "name": "p" }), "Unknown prompt: p"),
        (
            "completion/complete",
            serde_json::from_str(COMPLETION).unwrap(),
            "nothing to complete: p is not offered",
        ),
    ] {
        let mut visitor = hiding(Some(&["books:read"]));
        let id = visitor.modern(method, params.clone());
        assert_eq!(visitor.reply(id).json()["error"]["message"], message);
        assert!(visitor.runs.is_empty(), "{method}");
        visitor.principal = Some(caller(&["admin"]));
        visitor.modern(method, params);
        assert_eq!(visitor.runs.len(), 1, "{method}");
    }
}

/// A template that needs no scopes does not take the place of a resource that needs them.
#[test]
fn a_resource_that_needs_scopes_is_not_read_by_a_template() {
    for hides in [false, true] {
        let mut facts = ServerFacts::from(Implementation::new("shelf", "1"));
        facts.hide_unauthorized = hides;
        let mut components = Components::new(facts);
        let secret =
            json!({ "uri": "shelf://a", "name": "a", "scopes": ["x"], "cacheScope": "public" });
        for (list, declaration) in [
            (List::Resources, secret),
            (List::Templates, json!({ "uriTemplate": "shelf://{id}", "name": "any" })),
        ] {
            let declaration = declaration.to_string();
            components.declare(list, declaration.as_bytes(), kept(Handler::Plain)).unwrap();
        }
        let mut visitor = Visitor::new(components, EndpointConfig::default());
        visitor.principal = Some(caller(&[]));
        let id = visitor.modern("resources/read", json!({ "uri": "shelf://a" }));
        let reply = visitor.reply(id);
        assert!(visitor.runs.is_empty() && reply.json()["error"].is_object(), "{hides}");
        assert_eq!(reply.status == 403, !hides);
        visitor.modern("resources/read", json!({ "uri": "shelf://b" }));
        assert_eq!(visitor.runs.len(), 1, "{hides}");

        visitor.runs.clear();
        visitor.principal = Some(caller(&["x"]));
        let id = visitor.modern("resources/read", json!({ "uri": "shelf://a" }));
        visitor.finish(Ok(Reply::Text("secret".into())));
        let result = &visitor.reply(id).json()["result"];
        assert_eq!(result["cacheScope"], "private", "a shared cache would give it to others");
    }
}

/// A cursor says where a page begins, not who sees it.
#[test]
fn a_cursor_of_another_caller_shows_nothing_hidden() {
    let mut visitor = hiding(Some(&["admin"]));
    let id = visitor.modern("tools/list", json!({}));
    let cursor = visitor.reply(id).json()["result"]["nextCursor"].clone();
    visitor.principal = Some(caller(&[]));
    let id = visitor.modern("tools/list", json!({}));
    let first = visitor.reply(id).json()["result"].clone();
    assert_eq!((&first["tools"][0]["name"], &first["nextCursor"]), (&json!("look"), &Value::Null));
    let id = visitor.modern("tools/list", json!({ "cursor": cursor }));
    let page = visitor.reply(id).json()["result"]["tools"].clone();
    assert_eq!(page.as_array().unwrap().len(), 1);
    assert_eq!(page[0]["name"], "look");
}
