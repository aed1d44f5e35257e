//! Limits of a server's memory per client, and service to other clients at the limit.

use gudgeon::{
    engine::HandlerEvent,
    http::{ConnectionId, EndpointConfig, EndpointInput, ExchangeId},
    protocol::{Frame, Method, Question, Resource, ResourceTemplate, json::to_raw},
    router::{Definition, RegisteredTemplate, Reply, RoundLimits},
    session::{asking::AskId, server::Progress},
};
use serde_json::{Value, json};

use crate::support::{
    Handler,
    asker::Server,
    fixture, kept, rounds,
    visitor::{Visitor, modern_body},
};

const ONE: ConnectionId = ConnectionId(1);
const OTHER: ConnectionId = ConnectionId(2);

/// A server whose resources have URIs of any length. Those of `listed` are found sooner than by their template.
fn server_with(listed: &[String]) -> Server {
    Server::with_components(RoundLimits::default(), |components| {
        for uri in listed {
            let resource = Resource::new(uri.as_str(), "long");
            components.add(Definition::from(resource), kept(Handler::Plain)).unwrap();
        }
        let template = json!({"uriTemplate": "mem://{+name}", "name": "mem"});
        let template: ResourceTemplate = serde_json::from_value(template).unwrap();
        components
            .templates
            .add(RegisteredTemplate::new(template, kept(Handler::Plain)).unwrap(), true)
            .unwrap();
    })
}

fn server() -> Server {
    server_with(&[])
}

fn request(id: u64, method: &str, params: Value) -> Value {
    let mut request = modern_body(method, params);
    request["id"] = json!(id);
    request
}

fn listen(id: u64, uris: &[String]) -> Value {
    let notifications = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
    request(id, Method::Listen.as_str(), json!({"notifications": notifications}))
}

/// A URI of about 60 KiB.
fn long(number: usize) -> String {
    format!("mem://{number}/{}", "x".repeat(60 * 1024))
}

fn visitor(config: EndpointConfig) -> Visitor {
    let mut components = fixture::components();
    components.add(Definition::Notification("acme/changed".into()), kept(Handler::Plain)).unwrap();
    Visitor::new(components, config)
}

fn send(visitor: &mut Visitor, connection: ConnectionId, message: &Value) {
    visitor
        .handle(EndpointInput::Message(connection, Frame::parse(message.to_string().as_bytes())));
}

fn wait(id: u64) -> Value {
    request(id, "tools/call", json!({"name": "wait", "arguments": {}}))
}

#[test]
fn open_subscriptions_of_a_client_are_limited() {
    let mut server = server();
    for id in 0..1_000 {
        server.receive(&listen(id, &[]));
        assert_eq!(server.next_sent()["method"], "notifications/subscriptions/acknowledged");
    }
    server.receive(&listen(1_000, &[]));
    let refused = server.next_sent()["error"].clone();
    assert_eq!(refused["code"], -32602);
    assert!(refused["message"].as_str().unwrap().contains("cancel some first"), "{refused}");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    server.receive(&cancel);
    server.sent.clear();
    server.receive(&listen(1_001, &[]));
    assert_eq!(server.next_sent()["method"], "notifications/subscriptions/acknowledged");
}

#[test]
fn uris_of_a_clients_subscriptions_are_limited_in_bytes() {
    let uris: Vec<String> = (0..280).map(long).collect();
    let mut server = server_with(&uris);
    let accepted = |server: &mut Server| {
        let uris = server.next_sent()["params"]["notifications"]["resourceSubscriptions"].clone();
        uris.as_array().unwrap().len()
    };
    server.receive(&listen(1, &uris[..200]));
    assert_eq!(accepted(&mut server), 200);
    server.receive(&listen(2, &uris[200..]));
    assert_eq!(accepted(&mut server), 73, "it is told that the others are not listened to");
}

#[test]
fn uris_subscribed_by_a_session_are_limited_in_bytes() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    let mut ask = |method: &str, number: usize| {
        let params = json!({"uri": long(number)});
        server
            .receive(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}));
        server.next_sent()["error"]["message"].clone()
    };
    for number in 0..17 {
        assert_eq!(ask("resources/subscribe", number), Value::Null);
        assert_eq!(ask("resources/subscribe", number), Value::Null, "it is subscribed to once");
    }
    let refused = ask("resources/subscribe", 17);
    assert!(refused.as_str().unwrap().contains("unsubscribe from some first"), "{refused}");
    for _ in 0..2 {
        assert_eq!(ask("resources/unsubscribe", 3), Value::Null);
    }
    assert_eq!(ask("resources/subscribe", 17), Value::Null);
    assert_ne!(ask("resources/subscribe", 18), Value::Null);
}

#[test]
fn subscribed_uris_are_limited_in_number() {
    let mut server = server();
    server.open("2025-11-25", &json!({}));
    let mut subscribe = |number: usize| {
        let params = json!({"uri": format!("mem://{number}")});
        server.receive(&json!({
            "jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": params,
        }));
        server.next_sent()["error"]["message"].clone()
    };
    assert!((0..10_000).all(|number| subscribe(number) == Value::Null));
    assert!(subscribe(10_000).as_str().unwrap().contains("more than 10000 subscriptions"));

    let mut server = self::server();
    let uris: Vec<String> = (0..10_002).map(|number| format!("mem://{number}")).collect();
    server.receive(&listen(1, &uris));
    let accepted = server.next_sent()["params"]["notifications"]["resourceSubscriptions"].clone();
    assert_eq!(accepted.as_array().unwrap().len(), 10_000, "the acknowledgment says which");
}

#[test]
fn a_stream_is_not_read_while_ten_thousand_requests_are_in_flight() {
    let mut server = server();
    let call = |id| request(id, "tools/call", json!({"name": "tool", "arguments": {}}));
    for id in 0..10_000 {
        assert!(!server.is_full(), "at {id}");
        server.receive(&call(id));
    }
    assert!(server.is_full());
    let run = server.running();
    server.done(&run, Ok(Reply::Text("done".into())));
    assert!(!server.is_full());
}

#[test]
fn client_info_and_capabilities_are_limited_in_size() {
    let mut visitor = visitor(EndpointConfig::default());
    let mut open = |name: &str| {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let id = visitor.legacy("", &body);
        let reply = visitor.reply(id);
        (reply.json()["error"]["message"].clone(), reply.header("mcp-session-id").to_owned())
    };
    let (refused, session) = open(&"n".repeat(64 * 1024));
    assert!(refused.as_str().unwrap().contains("shorten them"), "{refused}");
    assert_eq!(session, "");
    assert_eq!(open(&"n".repeat(60 * 1024)).0, Value::Null);
}

#[test]
fn an_id_is_short() {
    let mut server = server();
    for (length, code) in [(4_000, Value::Null), (5_000, json!(-32600))] {
        let mut ping = request(1, "tools/list", json!({}));
        ping["id"] = json!("i".repeat(length));
        server.receive(&ping);
        let said = server.next_sent();
        assert_eq!((&said["error"]["code"], &said["id"]), (&code, &ping["id"]));
    }
}

#[test]
fn pending_requests_are_counted_with_all_their_bytes() {
    let mut visitor = visitor(EndpointConfig::default());
    let pad = "x".repeat(4_000_000);
    let mut call = || {
        let params = json!({"name": "wait", "arguments": {}, "_meta": {"pad": pad}});
        let id = visitor.modern("tools/call", params);
        let status = visitor.replies.get(&id).map_or(0, |reply| reply.status);
        (status, visitor.endpoint.is_full())
    };
    for _ in 0..16 {
        assert_eq!(call(), (0, false));
    }
    assert_eq!(call(), (0, true));
    assert_eq!(call(), (503, true), "as over any other wire");
    visitor.finish(Ok(Reply::Nothing));
    assert!(!visitor.endpoint.is_full());
}

#[test]
fn a_flood_of_notifications_is_rejected() {
    let mut visitor = visitor(EndpointConfig::default());
    let session = visitor.open("2025-11-25", json!({}));
    let mut feed = |method: &str| {
        let id = visitor.legacy(&session, &json!({"jsonrpc": "2.0", "method": method}));
        visitor.reply(id).status
    };
    assert!((0..1_001).all(|_| feed("acme/changed") == 202));
    for method in ["acme/changed", "notifications/roots/list_changed"] {
        assert_eq!(feed(method), 503);
    }
    assert_eq!(feed("notifications/cancelled"), 202);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let id = visitor.legacy(&session, &list);
    assert_eq!(visitor.reply(id).status, 200, "requests are not");
    let mut feed = |method: &str| {
        let id = visitor.legacy(&session, &json!({"jsonrpc": "2.0", "method": method}));
        visitor.reply(id).status
    };
    assert_eq!(feed("acme/unheard"), 202, "nothing runs for it");
    visitor.finish(Ok(Reply::Nothing));
    let id = visitor.legacy(&session, &json!({"jsonrpc": "2.0", "method": "acme/changed"}));
    assert_eq!(visitor.reply(id).status, 202);
}

#[test]
fn pending_batch_responses_are_limited_in_bytes() {
    let mut server = server();
    server.open("2025-03-26", &json!({}));
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "tool"}});
    server.receive(&json!([call(0), call(1), call(2), call(3), call(4)]));
    let runs = std::mem::take(&mut server.runs);
    for run in runs.iter().rev() {
        server.done(run, Ok(Reply::Text("x".repeat(5_000_000))));
    }
    let is_whole = |reply: &Value| reply.to_string().len() > 5_000_000;
    let said = server.next_sent();
    assert_eq!(said.as_array().unwrap().iter().filter(|reply| is_whole(reply)).count(), 3);
    assert!(said[0].to_string().contains("send this request by itself"), "{}", said[0]);
    server.receive(&json!([call(5)]));
    let run = server.running();
    server.done(&run, Ok(Reply::Text("x".repeat(5_000_000))));
    let said = server.next_sent();
    assert!(is_whole(&said[0]), "the replies that were sent count no more: {}", said[0]);
}

#[test]
fn a_modest_client_is_read_beside_a_greedy_one() {
    let mut visitor = visitor(EndpointConfig { max_in_flight: 4, ..EndpointConfig::default() });
    for connection in [ONE, OTHER] {
        visitor.handle(EndpointInput::Opened(connection, None, None));
    }
    let is_full = |visitor: &Visitor| {
        (visitor.endpoint.is_full_for(ONE), visitor.endpoint.is_full_for(OTHER))
    };
    for id in 0..3 {
        send(&mut visitor, ONE, &wait(id));
    }
    send(&mut visitor, OTHER, &listen(9, &[]));
    assert_eq!(is_full(&visitor), (false, false));
    send(&mut visitor, ONE, &wait(3));
    assert_eq!(is_full(&visitor), (true, false));
    send(&mut visitor, OTHER, &wait(1));
    assert_eq!(is_full(&visitor), (true, false), "half of all is its share");
    send(&mut visitor, OTHER, &wait(2));
    assert_eq!(is_full(&visitor), (true, true));
    visitor.handle(EndpointInput::ConnectionClosed(ONE));
    assert_eq!(is_full(&visitor), (false, false));
}

#[test]
fn a_client_that_floods_notifications_is_paused_and_others_are_not() {
    for (messages, bytes) in [(1_001, 0), (5, 14_000_000)] {
        let config = EndpointConfig { max_in_flight: 10_000, ..EndpointConfig::default() };
        let mut visitor = visitor(config);
        for connection in [ONE, OTHER] {
            visitor.handle(EndpointInput::Opened(connection, None, None));
        }
        let mut changed = modern_body("acme/changed", json!({"pad": "x".repeat(bytes)}));
        changed.as_object_mut().unwrap().remove("id");
        for _ in 0..messages {
            assert!(!visitor.endpoint.is_full_for(ONE));
            send(&mut visitor, ONE, &changed);
        }
        assert!(visitor.endpoint.is_full_for(ONE));
        send(&mut visitor, OTHER, &wait(1));
        assert!(!visitor.endpoint.is_full_for(OTHER));
    }
}

#[test]
fn bytes_are_shared_as_well() {
    let mut visitor = visitor(EndpointConfig::default());
    for connection in [ONE, OTHER] {
        visitor.handle(EndpointInput::Opened(connection, None, None));
    }
    let call = |id: u64, bytes: usize| {
        let meta = json!({"pad": "x".repeat(bytes)});
        request(id, "tools/call", json!({"name": "wait", "arguments": {}, "_meta": meta}))
    };
    for id in 0..5 {
        send(&mut visitor, ONE, &call(id, 14_000_000));
        send(&mut visitor, OTHER, &call(id, 0));
    }
    assert!(visitor.endpoint.is_full_for(ONE));
    assert!(!visitor.endpoint.is_full_for(OTHER));
}

#[test]
fn at_the_end_of_input_pending_calls_are_answered_and_questions_fail() {
    let mut visitor = visitor(EndpointConfig::default());
    visitor.handle(EndpointInput::Opened(ONE, None, None));
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}});
    send(
        &mut visitor,
        ONE,
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
    );
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    send(&mut visitor, ONE, &call);
    send(&mut visitor, ONE, &listen(2, &[]));
    let call = visitor.runs[0].id;
    let ask = |number: u64| {
        let params = to_raw(&json!({}));
        let question = Question { key: format!("k{number}"), method: Method::ListRoots, params };
        EndpointInput::Handler(call, HandlerEvent::Ask { ask: AskId(number), question })
    };
    visitor.handle(ask(1));
    assert!(visitor.answers.is_empty());
    visitor.handle(EndpointInput::EndOfInput(ONE));
    let (_, last) = visitor.frames.pop().unwrap();
    assert_eq!(last["result"]["resultType"], "complete", "the subscription ends");
    assert!(!visitor.endpoint.has_answered(ONE));
    visitor.handle(ask(2));
    let gone = "the client disconnected: this question gets no answer";
    let refused = |number: u64| (number, Err(gone.to_owned()));
    assert_eq!(visitor.answers, [refused(1), refused(2)]);
    visitor.finish(Ok(Reply::Nothing));
    assert_eq!(visitor.frames.pop().unwrap().1["id"], 1);
    assert!(visitor.endpoint.has_answered(ONE));
}

#[test]
fn messages_waiting_for_a_stream_are_limited_in_bytes() {
    let mut visitor = visitor(EndpointConfig::default());
    let session = visitor.open("2025-11-25", json!({"roots": {}, "elicitation": {}}));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    visitor.legacy(&session, &changed);
    let call = visitor.runs[0].id;
    for number in 0..4 {
        let params = json!({
            "mode": "form", "message": number.to_string() + &"?".repeat(400_000),
            "requestedSchema": {"type": "object", "properties": {}},
        });
        let method = Method::Elicit;
        let question = Question { key: number.to_string(), method, params: to_raw(&params) };
        let ask = HandlerEvent::Ask { ask: AskId(number), question };
        visitor.handle(EndpointInput::Handler(call, ask));
    }
    let stream = visitor.get(&session, "");
    let asked: Vec<_> = visitor.reply(stream).messages();
    let first = |question: &Value| question["params"]["message"].as_str().unwrap()[..1].to_owned();
    assert_eq!(asked.iter().map(first).collect::<Vec<_>>(), ["2", "3"], "the oldest had to go");
}

#[test]
fn messages_waiting_for_a_stream_are_limited_in_number() {
    let mut visitor = visitor(EndpointConfig::default());
    let session = visitor.open("2025-11-25", json!({"roots": {}, "elicitation": {}}));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    visitor.legacy(&session, &changed);
    let call = visitor.runs[0].id;
    for number in 0..300 {
        let params = json!({
            "mode": "form", "message": number.to_string(),
            "requestedSchema": {"type": "object", "properties": {}},
        });
        let question =
            Question { key: number.to_string(), method: Method::Elicit, params: to_raw(&params) };
        let ask = HandlerEvent::Ask { ask: AskId(number), question };
        visitor.handle(EndpointInput::Handler(call, ask));
    }
    let stream = visitor.get(&session, "");
    let asked: Vec<_> = visitor.reply(stream).messages();
    assert_eq!((asked.len(), &asked[0]["params"]["message"]), (256, &json!("44")));
}

#[test]
fn events_of_a_session_are_limited_in_number_and_bytes() {
    for (size, kept) in [(0, 256), (100_000, 10)] {
        let mut visitor = visitor(EndpointConfig::default());
        let session = visitor.open("2025-11-25", json!({}));
        let params = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": 1}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let stream = visitor.legacy(&session, &body);
        let run = visitor.runs[0].id;
        for step in 0..400_u16 {
            let message = Some("x".repeat(size));
            let progress = Progress { progress: step.into(), total: None, message };
            visitor.handle(EndpointInput::Handler(run, HandlerEvent::Progress(progress)));
        }
        let ids: Vec<String> =
            visitor.reply(stream).events().into_iter().map(|(id, _)| id).collect();
        visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
        // The events after one that is kept are sent again.
        let resumed = |visitor: &mut Visitor, at: usize| {
            let stream = visitor.get(&session, &ids[at]);
            visitor.replies.get(&stream).map_or(0, |reply| reply.events().len())
        };
        let last = ids.len() - 1;
        assert_eq!(resumed(&mut visitor, last - (kept - 1)), kept - 1, "{size}");
        assert_eq!(resumed(&mut visitor, last - (kept + 1)), 0, "{size}");
    }
}

#[test]
fn suspended_handlers_are_counted_with_the_bytes_of_their_requests() {
    let mut server = server();
    for id in 0..5 {
        let mut call = rounds::call(id, "tool", &json!({}));
        call["params"]["_meta"]["pad"] = json!("x".repeat(14_000_000));
        server.receive(&call);
        let run = server.running();
        rounds::asks(&mut server, &run, &["a"]);
    }
    assert_eq!(server.cancelled.len(), 1, "the oldest leaves for the newest");
}

#[test]
fn members_of_a_batch_beyond_the_limit_are_not_kept() {
    let text = format!("[{}1]", "1,".repeat(100_000));
    let Frame::Batch(members) = Frame::parse(text.as_bytes()) else { panic!("no batch") };
    assert_eq!(members.len(), 1_001);
    let Frame::One(unreadable) = Frame::parse(&text.as_bytes()[..text.len() - 1]) else {
        panic!("a batch without its end")
    };
    assert!(unreadable.unwrap_err().unreadable);
}
