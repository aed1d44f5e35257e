//! Components that are hidden from some callers: the shell's filter decides by caller, and hidden ones behave as missing.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    engine::{HostReply, HostRequest, Ticket},
    http::{ConnectionId, EndpointConfig, EndpointInput, ExchangeId, Part, Refused},
    protocol::{Frame, Principal, Prompt, Resource, ResourceTemplate, Tool, json as text},
    router::{
        Components, Definition, Failure, RegisteredPrompt, RegisteredResource, RegisteredTemplate,
        RegisteredTool, Reply, visibility_question,
    },
};
use serde_json::{Value, json};

use crate::support::{
    Handler, fixture, kept,
    visitor::{Visitor, modern_body},
};

fn handler() -> Handler {
    Handler::Plain
}

/// The fixture's, and one of each kind that is not for everybody.
fn unjudged() -> Components {
    let mut components = fixture::components();
    let schema = text::raw(r#"{"type":"object"}"#.into());
    let mut tool = RegisteredTool::new(Tool::new("drop", schema), kept(handler())).unwrap();
    tool.options.is_guarded = true;
    components.tools.add(tool, true).unwrap();
    let mut resource =
        RegisteredResource::new(Resource::new("staff://pay", "pay"), kept(handler())).unwrap();
    resource.options.is_guarded = true;
    components.resources.add(resource, true).unwrap();
    let template: ResourceTemplate =
        serde_json::from_value(json!({"uriTemplate": "staff://people/{id}", "name": "people"}))
            .unwrap();
    let mut template = RegisteredTemplate::new(template, kept(handler())).unwrap();
    template.options.is_guarded = true;
    components.templates.add(template, true).unwrap();
    let mut prompt = Prompt::from("fire");
    prompt.arguments = Some(vec!["who".into()]);
    let mut prompt = RegisteredPrompt::new(prompt, kept(handler())).unwrap();
    prompt.options.is_guarded = true;
    components.prompts.add(prompt, true).unwrap();
    components
        .add(
            Definition::Completion { target: "fire".into(), argument: "who".into() },
            kept(handler()),
        )
        .unwrap();
    components
}

fn visitor() -> Visitor {
    Visitor::new(unjudged(), EndpointConfig::default())
}

/// Returns the question to the visibility filter for the last request.
fn asked(visitor: &Visitor) -> Value {
    let (_, HostRequest::FilterVisible { context, components }) =
        visitor.host_requests.last().unwrap();
    serde_json::from_str(&visibility_question(context.principal.as_deref(), components)).unwrap()
}

/// Sends a request, and has the visibility filter say this of everything it is asked about.
fn send(visitor: &mut Visitor, method: &str, params: Value, seen: bool) -> u64 {
    let id = visitor.modern(method, params);
    let verdicts: Vec<bool> =
        asked(visitor)["components"].as_array().unwrap().iter().map(|_| seen).collect();
    visitor.reply_as_host(HostReply::Visible(verdicts));
    id
}

fn names(visitor: &Visitor, id: u64, list: &str) -> Vec<String> {
    let result = &visitor.reply(id).json()["result"];
    let names = result[list].as_array().unwrap().iter();
    names.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_contain_the_callers_visible_components() {
    let mut visitor = visitor();
    visitor.principal = Some(Arc::new(Principal::new("ada")));
    for (method, list, name) in [
        ("tools/list", "tools", "drop"),
        ("resources/list", "resources", "pay"),
        ("resources/templates/list", "resourceTemplates", "people"),
        ("prompts/list", "prompts", "fire"),
    ] {
        for seen in [true, false, true] {
            let id = send(&mut visitor, method, json!({}), seen);
            let names = names(&visitor, id, list);
            assert_eq!(names.iter().any(|listed| listed == name), seen, "{method}: {names:?}");
            assert!(!names.is_empty() || list != "tools");
            let result = &visitor.reply(id).json()["result"];
            assert_eq!(result["cacheScope"], "private", "{method}");
        }
    }
    assert!(visitor.runs.is_empty());
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn a_filter_that_does_not_answer_in_time_shows_nothing() {
    let keep_alive = Duration::from_secs(300);
    let config = EndpointConfig { keep_alive, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(unjudged(), config);
    let id = visitor.modern("tools/list", json!({}));
    let ticket = visitor.host_requests.last().unwrap().0;
    visitor.advance(Duration::from_secs(29));
    assert!(visitor.host_cancels.is_empty());
    visitor.advance(Duration::from_secs(2));
    assert_eq!(visitor.host_cancels, [ticket]);
    let names = names(&visitor, id, "tools");
    assert!(!names.is_empty() && !names.iter().any(|name| name == "drop"), "{names:?}");
    visitor.reply_as_host(HostReply::Visible(vec![true]));
    assert!(visitor.endpoint.keeps_no_call());
}

#[test]
fn a_reply_counts_once_and_for_its_own_request() {
    let mut visitor = visitor();
    let shown = visitor.modern("tools/list", json!({}));
    let (ticket, _) = visitor.host_requests.pop().unwrap();
    visitor.handle(EndpointInput::Host(Ticket(ticket.0 + 1), HostReply::Visible(vec![false])));
    assert!(!visitor.replies.contains_key(&shown), "that is the ticket of another request");
    visitor.handle(EndpointInput::Host(ticket, HostReply::Visible(vec![true])));
    assert!(names(&visitor, shown, "tools").contains(&"drop".to_owned()));
    let next = visitor.modern("tools/list", json!({}));
    visitor.handle(EndpointInput::Host(ticket, HostReply::Visible(vec![true])));
    assert!(!visitor.replies.contains_key(&next), "the ticket was used");
    visitor.reply_as_host(HostReply::Visible(vec![false]));
    assert!(!names(&visitor, next, "tools").contains(&"drop".to_owned()));
}

#[test]
fn so_many_requests_wait_for_the_host_and_no_more() {
    const LIMIT: usize = 10_000;
    let config = EndpointConfig { max_in_flight: 2 * LIMIT, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(unjudged(), config);
    for _ in 0..LIMIT {
        visitor.modern("tools/call", json!({"name": "drop", "arguments": {}}));
    }
    assert_eq!(visitor.host_requests.len(), LIMIT);
    let id = visitor.modern("tools/call", json!({"name": "drop", "arguments": {}}));
    assert_eq!(visitor.reply(id).json()["error"]["message"], "Unknown tool: drop");
    assert!(visitor.reports[0].contains("10000 requests"), "{:?}", visitor.reports);
    visitor.reply_as_host(HostReply::Visible(vec![true]));
    assert_eq!(visitor.runs.len(), 1);
    visitor.modern("tools/call", json!({"name": "drop", "arguments": {}}));
    assert_eq!(visitor.host_requests.len(), LIMIT, "one has ended, so there is room for another");
}

#[test]
fn the_visibility_filter_gets_the_caller_and_the_components() {
    let mut visitor = visitor();
    visitor.modern("tools/list", json!({}));
    assert_eq!(asked(&visitor), json!({"principal": null, "components": [["tool", "drop"]]}));
    let scopes = ["staff".to_owned()].into();
    visitor.principal = Some(Arc::new(Principal { scopes, ..Principal::new("ada") }));
    visitor.modern("resources/read", json!({"uri": "staff://people/7"}));
    assert_eq!(
        asked(&visitor),
        json!({
            "principal": {"subject": "ada", "scopes": ["staff"], "claims": {}},
            "components": [["resource template", "staff://people/{id}"]],
        })
    );
}

#[test]
fn hidden_components_behave_as_missing() {
    let mut visitor = visitor();
    let hidden = [
        ("tools/call", json!({"name": "drop", "arguments": {}}), "Unknown tool: drop"),
        ("resources/read", json!({"uri": "staff://pay"}), "Resource not found: staff://pay"),
        (
            "resources/read",
            json!({"uri": "staff://people/7"}),
            "Resource not found: staff://people/7",
        ),
        ("prompts/get", json!({"name": "fire"}), "Unknown prompt: fire"),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "fire"}, "argument": {"name": "who", "value": ""}}),
            "nothing to complete: fire is not offered",
        ),
    ];
    for (method, params, message) in hidden {
        let id = send(&mut visitor, method, params.clone(), false);
        assert_eq!(visitor.reply(id).json()["error"]["message"], message);
        assert!(visitor.runs.is_empty(), "{method} ran");
        let id = send(&mut visitor, method, params, true);
        assert_eq!(visitor.runs.len(), 1, "{method}");
        visitor.finish(Ok(match method {
            "completion/complete" => Reply::Json("[]".into()),
            _ => Reply::Text("done".into()),
        }));
        assert!(visitor.reply(id).json()["result"].is_object());
    }
}

#[test]
fn a_misspelt_name_leads_to_what_everybody_may_see() {
    let mut visitor = visitor();
    for (method, name, message) in [
        ("tools/call", "ecko", r#"Unknown tool: ecko; did you mean "echo"?"#),
        ("tools/call", "dropp", "Unknown tool: dropp"),
        ("prompts/get", "fires", "Unknown prompt: fires"),
    ] {
        let id = visitor.modern(method, json!({"name": name}));
        assert_eq!(visitor.reply(id).json()["error"]["message"], message);
    }
}

#[test]
fn partly_visible_lists_are_private() {
    let mut visitor = visitor();
    let id = send(&mut visitor, "resources/read", json!({"uri": "staff://pay"}), true);
    visitor.finish(Ok(Reply::Text("much".into())));
    assert_eq!(visitor.reply(id).json()["result"]["cacheScope"], "private");
    let id = visitor.modern("resources/read", json!({"uri": "fixture://about"}));
    visitor.finish(Ok(Reply::Text("all".into())));
    assert_eq!(visitor.reply(id).json()["result"]["cacheScope"], "public");
}

#[test]
fn public_components_do_not_wait_for_the_visibility_filter() {
    let mut visitor = visitor();
    visitor.modern("tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}));
    assert_eq!((visitor.runs.len(), visitor.host_requests.len()), (1, 0));
    let mut plain = Visitor::new(fixture::components(), EndpointConfig::default());
    let id = plain.modern("tools/list", json!({}));
    assert_eq!(plain.reply(id).json()["result"]["cacheScope"], "public");
}

#[test]
fn without_an_answer_of_the_filter_components_stay_hidden() {
    let failure = || Failure::Exception {
        kind: "KeyError".into(),
        message: "scopes".into(),
        traceback: String::new(),
    };
    for verdict in [
        Err(failure()),
        Ok(Reply::Nothing),
        Ok(Reply::Json("[]".into())),
        Ok(Reply::Json("[1]".into())),
        Ok(Reply::Json("true".into())),
    ] {
        let mut visitor = visitor();
        let id = visitor.modern("tools/list", json!({}));
        visitor.reply_as_host(HostReply::visible(verdict));
        assert!(!names(&visitor, id, "tools").contains(&"drop".to_owned()));
    }
    let mut unjudged = visitor();
    let id = unjudged.modern("tools/list", json!({}));
    unjudged.reply_as_host(HostReply::Failed("no filter is set".into()));
    assert!(!names(&unjudged, id, "tools").contains(&"drop".to_owned()));
    assert!(unjudged.reports[0].contains("no filter is set"), "{:?}", unjudged.reports);
}

#[test]
fn a_subscription_does_not_tell_hidden_resources_from_missing_ones() {
    let mut visitor = visitor();
    let acknowledged = |visitor: &mut Visitor, uris: &[&str]| {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        let id = send(visitor, "subscriptions/listen", filter, false);
        let message = visitor.reply(id).messages().remove(0);
        assert_eq!(message["method"], "notifications/subscriptions/acknowledged");
        message["params"]["notifications"]["resourceSubscriptions"].clone()
    };
    let all = ["staff://pay", "staff://none", "staff://people/7", "fixture://about"];
    assert_eq!(acknowledged(&mut visitor, &all), json!(["fixture://about"]));
}

#[test]
fn updates_of_hidden_resources_are_not_notified() {
    let mut visitor = visitor();
    let filter =
        json!({"notifications": {"resourceSubscriptions": ["staff://pay", "fixture://about"]}});
    let received = |visitor: &Visitor, id| {
        let sent = visitor.reply(id).messages();
        let sent =
            sent.iter().filter(|message| message["method"] == "notifications/resources/updated");
        sent.map(|message| message["params"]["uri"].clone()).collect::<Vec<_>>()
    };
    let stranger = send(&mut visitor, "subscriptions/listen", filter.clone(), false);
    let staff = send(&mut visitor, "subscriptions/listen", filter, true);
    visitor.handle(EndpointInput::Updated("staff://pay"));
    visitor.handle(EndpointInput::Updated("fixture://about"));
    assert_eq!(received(&visitor, stranger), ["fixture://about"]);
    assert_eq!(received(&visitor, staff), ["staff://pay", "fixture://about"]);
    let session = visitor.open("2025-11-25", json!({}));
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "staff://pay"},
    });
    let id = visitor.legacy(&session, &subscribe);
    visitor.reply_as_host(HostReply::Visible(vec![false]));
    assert_eq!(visitor.reply(id).error(), -32002);
}

#[test]
fn a_request_cancelled_during_the_filter_is_dropped() {
    let mut visitor = visitor();
    let id = visitor.modern("tools/call", json!({"name": "drop", "arguments": {}}));
    assert_eq!(visitor.endpoint.in_flight(), 1);
    visitor.handle(EndpointInput::Disconnected(ExchangeId(id)));
    assert_eq!((visitor.host_cancels.len(), visitor.endpoint.in_flight()), (1, 0));
    visitor.reply_as_host(HostReply::Visible(vec![true]));
    assert!(visitor.runs.is_empty(), "nothing runs for nobody");
}

#[test]
fn pages_contain_visible_components_only() {
    let mut components = unjudged();
    Arc::make_mut(&mut components.server).page_size = 1;
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    let mut params = json!({});
    let mut seen = Vec::new();
    loop {
        let id = send(&mut visitor, "resources/list", params, false);
        seen.extend(names(&visitor, id, "resources"));
        let next = visitor.reply(id).json()["result"]["nextCursor"].clone();
        if next.is_null() {
            break;
        }
        params = json!({ "cursor": next });
    }
    assert_eq!(seen, ["about", "bytes"]);
}

#[test]
fn a_session_belongs_to_the_principal_that_opened_it() {
    let mut visitor = visitor();
    let ada = Principal::new("ada");
    visitor.principal = Some(Arc::new(ada.clone()));
    let session = visitor.open("2025-11-25", json!({}));
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let renewed = json!({"exp": 2}).as_object().unwrap().clone();
    let callers = [
        (None, 404),
        (Some(Principal::new("bob")), 404),
        (Some(ada.clone()), 200),
        (Some(Principal { claims: renewed, ..ada.clone() }), 200),
    ];
    for (who, status) in callers {
        visitor.principal = who.map(Arc::new);
        let id = visitor.legacy(&session, &ping);
        assert_eq!(visitor.reply(id).status, status, "{:?}", visitor.principal);
    }
    visitor.principal = Some(Arc::new(Principal::new("bob")));
    let id = visitor.get(&session, "");
    assert_eq!(visitor.reply(id).status, 404);
    let id = visitor.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(visitor.reply(id).status, 404);
    visitor.principal = Some(Arc::new(ada));
    let id = visitor.legacy(&session, &ping);
    assert_eq!(visitor.reply(id).status, 200, "nobody else has ended it");
}

#[test]
fn a_connection_belongs_to_the_principal_that_opened_it() {
    let mut visitor = visitor();
    let ada = Principal::new("ada");
    let initialize = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "visitor", "version": "1"},
    });
    let legacy = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let eras = [vec![modern_body("tools/list", json!({}))], legacy.to_vec()];
    for (number, frames) in (0..).zip(eras) {
        for (connection, who) in [(number * 2, Some(ada.clone())), (number * 2 + 1, None)] {
            let connection = ConnectionId(connection);
            visitor.handle(EndpointInput::Opened(connection, who.clone().map(Arc::new), None));
            for frame in &frames {
                let frame = frame.to_string();
                visitor.handle(EndpointInput::Message(connection, Frame::parse(frame.as_bytes())));
            }
            assert_eq!(asked(&visitor)["principal"], json!(who), "{frames:?}");
        }
    }
}

#[test]
fn a_failed_identification_is_answered_without_details() {
    let visitor = visitor();
    let (head, ()) =
        http::Request::post("/mcp").header("host", "127.0.0.1").body(()).unwrap().into_parts();
    let refused = visitor.endpoint.admission().refuse(&head, &Refused::Unidentified);
    let Part::Head { status, body, more, .. } = refused else { panic!("{refused:?}") };
    assert_eq!((status.as_u16(), more), (500, false));
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": "the server could not identify the caller"}})
    );
}
