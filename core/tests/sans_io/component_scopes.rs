//! Scopes that a component needs: all of them are named at once, so that a client can ask for them (2026-07-28, "Runtime
//! Insufficient Scope Errors").

use std::sync::Arc;

use gudgeon::{
    http::EndpointConfig,
    protocol::{Implementation, Principal},
    router::{Components, List, Reply, ServerFacts},
};
use serde_json::{Value, json};

use crate::support::{Handler, visitor::Visitor};

fn visitor(scopes: Option<&[&str]>) -> Visitor {
    let mut facts = ServerFacts::from(Implementation::new("shelf", "1"));
    facts.scope_implies.insert("admin".into(), vec!["books:write".into(), "books:read".into()]);
    let mut components = Components::new(facts);
    let mut declare = |list: List, declaration: Value| {
        components.declare(list, declaration.to_string().as_bytes(), Handler::Plain).unwrap();
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
    declare(List::Prompts, json!({ "name": "p", "scopes": scopes_of }));
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    visitor.principal = scopes.map(|scopes| {
        let mut principal = Principal::new("ada");
        principal.scopes = scopes.iter().map(|it| (*it).to_owned()).collect();
        Arc::new(principal)
    });
    visitor
}

#[test]
fn a_caller_without_the_scopes_gets_a_challenge_with_all_of_them() {
    for (method, params) in [
        ("tools/call", json!({ "name": "write", "arguments": {} })),
        ("resources/read", json!({ "uri": "shelf://a" })),
        ("resources/read", json!({ "uri": "book://1" })),
        ("prompts/get", json!({ "name": "p" })),
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
