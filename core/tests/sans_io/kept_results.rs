//! The server's cache of resource results: ownership, invalidation, and uncacheable results.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    engine::HandlerEvent,
    http::{EndpointConfig, EndpointInput, ExchangeId},
    protocol::{Method, Principal, Question, Resource, ResourceTemplate, json as written},
    router::{Components, Failure, Middleware, RegisteredResource, RegisteredTemplate, Reply},
    session::{asking::AskId, server::ListKind},
};
use serde_json::{Value, json};

use crate::support::{Handler, fixture, kept, visitor::Visitor};

const KEEP: Duration = Duration::from_secs(10);
const BOOKS: &str = "shelf://books";

fn components() -> Components {
    let mut components = fixture::components();
    let handler: Handler = Handler::Plain;
    let mut books = RegisteredResource::new(Resource::new(BOOKS, "books"), kept(handler)).unwrap();
    books.options.keep = Some(KEEP);
    components.resources.add(books, true).unwrap();
    let book: ResourceTemplate =
        serde_json::from_value(json!({"uriTemplate": "shelf://books/{id}", "name": "book"}))
            .unwrap();
    let mut book = RegisteredTemplate::new(book, kept(handler)).unwrap();
    book.options.keep = Some(KEEP);
    components.templates.add(book, true).unwrap();
    components
}

fn visitor() -> Visitor {
    Visitor::new(components(), EndpointConfig::default())
}

fn read(visitor: &mut Visitor, uri: &str) -> u64 {
    visitor.modern("resources/read", json!({ "uri": uri }))
}

fn text(visitor: &Visitor, id: u64) -> Value {
    visitor.reply(id).json()["result"]["contents"][0]["text"].clone()
}

/// Reads, and has the handler answer so: whether it ran.
fn read_as(visitor: &mut Visitor, uri: &str, answer: &str) -> bool {
    read(visitor, uri);
    let runs = !visitor.runs.is_empty();
    if runs {
        visitor.finish(Ok(Reply::Text(answer.into())));
    }
    runs
}

#[test]
fn a_result_is_kept_as_long_as_it_says() {
    let mut visitor = visitor();
    assert!(read_as(&mut visitor, BOOKS, "Dune"));
    visitor.advance(Duration::from_millis(9_999));
    let id = read(&mut visitor, BOOKS);
    assert_eq!(text(&visitor, id), "Dune");
    assert!(visitor.runs.is_empty());
    visitor.advance(Duration::from_millis(1));
    assert!(read_as(&mut visitor, BOOKS, "Emma"));
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn uncached_resources_are_read_each_time() {
    let mut visitor = visitor();
    assert!(read_as(&mut visitor, "fixture://about", "one"));
    assert!(read_as(&mut visitor, "fixture://about", "two"));
}

#[test]
fn each_uri_of_a_template_is_cached_separately() {
    let mut visitor = visitor();
    assert!(read_as(&mut visitor, "shelf://books/1", "Dune"));
    assert!(read_as(&mut visitor, "shelf://books/2", "Emma"));
    let id = read(&mut visitor, "shelf://books/1");
    assert_eq!(text(&visitor, id), "Dune");
}

#[test]
fn cached_results_are_not_shared_between_callers() {
    let mut visitor = visitor();
    let ada = Principal::new("ada");
    let narrower = Principal { scopes: ["read".to_owned()].into(), ..ada.clone() };
    let issuer = json!({"iss": "https://elsewhere"}).as_object().unwrap().clone();
    let elsewhere = Principal { claims: issuer, ..ada.clone() };
    let everybody = [None, Some(ada), Some(narrower), Some(elsewhere), Some(Principal::new("bob"))];
    for (index, who) in everybody.iter().enumerate() {
        visitor.principal = who.clone().map(Arc::new);
        assert!(read_as(&mut visitor, BOOKS, &index.to_string()), "{who:?} read of another's");
    }
    for (index, who) in everybody.into_iter().enumerate() {
        visitor.principal = who.map(Arc::new);
        let id = read(&mut visitor, BOOKS);
        assert_eq!(text(&visitor, id), index.to_string());
    }
    assert!(visitor.runs.is_empty());
}

#[test]
fn reads_at_the_same_time_share_one_run() {
    let mut visitor = visitor();
    let ids = [(); 3].map(|()| read(&mut visitor, BOOKS));
    assert_eq!(visitor.runs.len(), 1);
    assert_eq!(visitor.endpoint.in_flight(), 3);
    visitor.finish(Ok(Reply::Text("Dune".into())));
    for id in ids {
        assert_eq!(text(&visitor, id), "Dune");
    }
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn a_failure_is_shared_and_not_kept() {
    let mut visitor = visitor();
    let ids = [(); 2].map(|()| read(&mut visitor, BOOKS));
    visitor.finish(Err(Failure::NotFound { uri: BOOKS.into(), message: None }));
    for id in ids {
        assert_eq!(visitor.reply(id).error(), -32602);
    }
    assert!(read_as(&mut visitor, BOOKS, "Dune"));
}

#[test]
fn a_reader_whose_shared_run_was_cancelled_runs_its_own() {
    let mut visitor = visitor();
    let ids = [(); 3].map(|()| read(&mut visitor, BOOKS));
    visitor.runs.clear();
    visitor.handle(EndpointInput::Disconnected(ExchangeId(ids[0])));
    assert_eq!((visitor.cancelled.len(), visitor.runs.len()), (1, 1));
    assert_eq!(visitor.endpoint.in_flight(), 2);
    visitor.handle(EndpointInput::Disconnected(ExchangeId(ids[2])));
    assert_eq!((visitor.cancelled.len(), visitor.endpoint.in_flight()), (1, 1), "it ran nothing");
    visitor.finish(Ok(Reply::Text("Dune".into())));
    assert_eq!(text(&visitor, ids[1]), "Dune");
    assert!(!read_as(&mut visitor, BOOKS, "never"));
}

#[test]
fn an_update_invalidates_cached_and_running_reads() {
    let mut visitor = visitor();
    assert!(read_as(&mut visitor, BOOKS, "Dune"));
    assert!(read_as(&mut visitor, "shelf://books/1", "one"));
    visitor.handle(EndpointInput::Updated(BOOKS));
    assert!(!read_as(&mut visitor, "shelf://books/1", "never"), "another resource is as it was");
    let before = read(&mut visitor, BOOKS);
    let reads_old = visitor.runs.pop().unwrap();
    visitor.handle(EndpointInput::Updated(BOOKS));
    let after = read(&mut visitor, BOOKS);
    assert_eq!(visitor.runs.len(), 1, "what began before the update is not for who asks after it");
    let old = Ok(Reply::Text("old".into()));
    visitor.handle(EndpointInput::Handler(reads_old.id, HandlerEvent::Done(old)));
    visitor.finish(Ok(Reply::Text("new".into())));
    assert_eq!((text(&visitor, before), text(&visitor, after)), (json!("old"), json!("new")));
    let id = read(&mut visitor, BOOKS);
    assert_eq!(text(&visitor, id), "new");
}

#[test]
fn changed_resources_invalidate_the_cache() {
    let mut visitor = visitor();
    assert!(read_as(&mut visitor, BOOKS, "Dune"));
    let changed = Arc::new(components());
    visitor.handle(EndpointInput::Components(Arc::clone(&changed), vec![ListKind::Tools]));
    assert!(!read_as(&mut visitor, BOOKS, "never"), "tools have nothing to do with it");
    visitor.handle(EndpointInput::Components(changed, vec![ListKind::Resources]));
    assert!(read_as(&mut visitor, BOOKS, "Emma"));
}

#[test]
fn results_that_depend_on_answers_are_not_cached() {
    let mut visitor = visitor();
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let ask = |visitor: &mut Visitor| {
        visitor.modern("resources/read", json!({"uri": BOOKS, "_meta": meta}))
    };
    let (asked, waits) = (ask(&mut visitor), ask(&mut visitor));
    assert_eq!(visitor.runs.len(), 1);
    let question = json!([{"key": "who", "method": "elicitation/create", "params": {
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
    }}]);
    visitor.finish(Ok(Reply::Questions(question.to_string())));
    let state = visitor.reply(asked).json()["result"]["requestState"].clone();
    assert!(state.is_string(), "{:?}", visitor.reply(asked));
    assert_eq!(visitor.runs.len(), 1, "who waited reads himself");
    visitor.finish(Ok(Reply::Text("plain".into())));
    assert_eq!(text(&visitor, waits), "plain");
    let answered = visitor.modern(
        "resources/read",
        json!({
            "uri": BOOKS, "requestState": state, "_meta": meta,
            "inputResponses": {"who": {"action": "accept", "content": {"value": "Ada"}}},
        }),
    );
    visitor.finish(Ok(Reply::Text("for Ada".into())));
    assert_eq!(text(&visitor, answered), "for Ada");
    assert!(read_as(&mut visitor, BOOKS, "again"), "nothing of this was kept");
}

#[test]
fn a_run_that_asks_is_not_shared() {
    let mut visitor = visitor();
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let read = |visitor: &mut Visitor| {
        visitor.modern("resources/read", json!({"uri": BOOKS, "_meta": meta}))
    };
    let (asks, waits) = (read(&mut visitor), read(&mut visitor));
    let call = visitor.runs.pop().unwrap().id;
    let params = json!({
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
    });
    let question =
        Question { key: "who".into(), method: Method::Elicit, params: written::to_raw(&params) };
    visitor.handle(EndpointInput::Handler(call, HandlerEvent::Ask { ask: AskId(0), question }));
    assert_eq!(visitor.runs.len(), 1, "who waited reads himself");
    visitor.handle(EndpointInput::Handler(call, HandlerEvent::Waits { blocks: false }));
    let state = visitor.reply(asks).json()["result"]["requestState"].clone();
    visitor.finish(Ok(Reply::Text("plain".into())));
    assert_eq!(text(&visitor, waits), "plain");
    let answered = visitor.modern(
        "resources/read",
        json!({
            "uri": BOOKS, "requestState": state, "_meta": meta,
            "inputResponses": {"who": {"action": "accept", "content": {"value": "Ada"}}},
        }),
    );
    visitor.handle(EndpointInput::Handler(
        call,
        HandlerEvent::Done(Ok(Reply::Text("for Ada".into()))),
    ));
    assert_eq!(text(&visitor, answered), "for Ada");
    assert!(read_as(&mut visitor, BOOKS, "again"), "nothing of this was kept");
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn with_middleware_reads_are_not_shared() {
    let mut components = components();
    let middleware: Handler = Handler::Plain;
    components.set_middleware(Some(Middleware::new(kept(middleware), ["resources/read"], true)));
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    assert!(read_as(&mut visitor, BOOKS, "one"));
    assert!(read_as(&mut visitor, BOOKS, "two"));
}

#[test]
fn the_cache_holds_at_most_a_thousand_entries() {
    let mut visitor = visitor();
    for id in 0..1_001 {
        assert!(read_as(&mut visitor, &format!("shelf://books/{id}"), "x"));
    }
    assert!(!read_as(&mut visitor, "shelf://books/1000", "never"));
    assert!(read_as(&mut visitor, "shelf://books/0", "the first made room"));
}
