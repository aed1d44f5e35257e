//! `subscriptions/listen` over HTTP: what is acknowledged, and which changes come on which stream.

use std::sync::Arc;

use gudgeon::{
    http::{EndpointConfig, EndpointInput},
    session::server::ListKind,
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, message, modern_body},
    visitor::Visitor,
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const ABOUT: &str = "fixture://about";
const ITEM: &str = "fixture://items/1";

fn visitor() -> Visitor {
    Visitor::new(fixture::components(), EndpointConfig::default())
}

fn listen(notifications: &Value) -> Request {
    Request::modern("subscriptions/listen", json!({ "notifications": notifications }))
}

/// Opens a stream with this id; returns its number, and the filter that was acknowledged.
fn open(visitor: &mut Visitor, id: &Value, notifications: &Value) -> (u64, Value) {
    let mut body = modern_body("subscriptions/listen", json!({ "notifications": notifications }));
    body["id"] = id.clone();
    let stream = visitor.request(&listen(notifications).body(body.to_string()));
    let reply = visitor.reply(stream);
    assert!(reply.is_stream() && !reply.complete, "{reply:?}");
    let first = &reply.messages()[0];
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(&first["params"]["_meta"][SUBSCRIPTION], id);
    (stream, first["params"]["notifications"].clone())
}

/// Changes the lists of tools and prompts, and two resources.
fn change_everything(visitor: &mut Visitor) {
    let lists = vec![ListKind::Tools, ListKind::Prompts];
    visitor.handle(EndpointInput::Components(Arc::new(fixture::components()), lists));
    visitor.handle(EndpointInput::Updated(ABOUT));
    visitor.handle(EndpointInput::Updated(ITEM));
}

/// Returns the kind and the URI of each change on a stream, all of which carry the stream's id.
fn changes(visitor: &Visitor, stream: u64, id: &Value) -> Vec<String> {
    let messages = visitor.reply(stream).messages();
    let change = |message: &Value| {
        let params = &message["params"];
        assert_eq!((&params["_meta"][SUBSCRIPTION], message.get("id")), (id, None), "{message}");
        let kind = message["method"].as_str().unwrap().trim_start_matches("notifications/");
        format!("{kind} {}", params["uri"].as_str().unwrap_or_default()).trim_end().to_owned()
    };
    messages.iter().skip(1).map(change).collect()
}

#[test]
fn only_the_changes_that_were_asked_for_come() {
    let everything =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let mut unknown = everything.clone();
    unknown["moonPhaseChanged"] = json!(true);
    let [tools, prompts] = ["tools/list_changed", "prompts/list_changed"];
    let about = "resources/updated fixture://about";
    for (asked, acknowledged, expected) in [
        (json!({}), json!({}), &[][..]),
        (json!({"toolsListChanged": true}), json!({"toolsListChanged": true}), &[tools]),
        (
            json!({"promptsListChanged": true, "toolsListChanged": false}),
            json!({"promptsListChanged": true}),
            &[prompts],
        ),
        (everything.clone(), everything.clone(), &[tools, prompts]),
        // Kinds that the server does not know are left out.
        (unknown, everything, &[tools, prompts]),
        (
            json!({"resourceSubscriptions": [ABOUT]}),
            json!({"resourceSubscriptions": [ABOUT]}),
            &[about],
        ),
    ] {
        let mut visitor = visitor();
        let (stream, agreed) = open(&mut visitor, &json!(1), &asked);
        assert_eq!(agreed, acknowledged, "{asked}");
        change_everything(&mut visitor);
        assert_eq!(changes(&visitor, stream, &json!(1)), expected, "{asked}");
    }
}

#[test]
fn every_message_carries_the_id_of_its_request() {
    let mut visitor = visitor();
    let tools = json!({"toolsListChanged": true});
    let ids = [
        json!("listen-1"),
        json!(""),
        json!(7),
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_993_i64),
    ];
    let open: Vec<_> = ids.iter().map(|id| (open(&mut visitor, id, &tools).0, id)).collect();
    change_everything(&mut visitor);
    for (stream, id) in open {
        assert_eq!(changes(&visitor, stream, id), ["tools/list_changed"]);
    }
}

#[test]
fn subscriptions_are_kept_apart_even_with_equal_ids() {
    let mut visitor = visitor();
    let [tools, prompts] = ["toolsListChanged", "promptsListChanged"];
    let (a, b) = (json!("a"), json!("b"));
    let (first, _) = open(&mut visitor, &a, &json!({tools: true}));
    let (second, _) = open(&mut visitor, &b, &json!({prompts: true}));
    let (both, _) = open(&mut visitor, &a, &json!({tools: true, prompts: true}));
    change_everything(&mut visitor);
    assert_eq!(changes(&visitor, first, &a), ["tools/list_changed"]);
    assert_eq!(changes(&visitor, second, &b), ["prompts/list_changed"]);
    assert_eq!(changes(&visitor, both, &a), ["tools/list_changed", "prompts/list_changed"]);
}

#[test]
fn what_belongs_to_a_call_does_not_come_on_a_listening_stream() {
    let mut visitor = visitor();
    let all =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let (stream, _) = open(&mut visitor, &json!(1), &all);
    let count = json!({"name": "count", "arguments": {"steps": 2}, "_meta": {"progressToken": 1}});
    visitor.serves(&Request::modern("tools/call", count));
    let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let say = json!({"name": "say", "arguments": {"level": "error", "text": "hm"}, "_meta": meta});
    visitor.serves(&Request::modern("tools/call", say));
    assert_eq!(changes(&visitor, stream, &json!(1)), [""; 0]);
}

#[test]
fn a_filter_of_the_wrong_shape_is_invalid() {
    let mut visitor = visitor();
    for wrong in [
        json!(7),
        json!([]),
        json!("tools"),
        json!({"toolsListChanged": "yes"}),
        json!({"resourceSubscriptions": "a"}),
    ] {
        visitor.refuses(&listen(&wrong), 400, -32602);
    }
}

#[test]
fn lists_do_not_depend_on_who_listens() {
    let mut visitor = visitor();
    let list = Request::modern("tools/list", json!({}));
    let before = visitor.serves(&list);
    open(&mut visitor, &json!(1), &json!({"toolsListChanged": true}));
    let session = visitor.open("2025-11-25", json!({}));
    visitor.serves(&Request::of_session(&session, &message("tools/list", json!({}))));
    assert_eq!(visitor.serves(&list), before);
}
