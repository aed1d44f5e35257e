//! Handlers that ask their client, without I/O: questions in results and questions as requests.

use gudgeon::{
    protocol::{Method, json::to_raw},
    router::{Failure, Reply},
    service::Input,
};
use serde_json::json;

use crate::support::asker::{Server, ask, form, legacy, modern, questions, yes};

#[test]
fn the_state_of_a_second_round_contains_the_first_answers() {
    let mut server = Server::new();
    let able = json!({"elicitation": {}});
    server.receive(&modern(1, &able, &json!({})));
    let run = server.running();
    server.done(&run, Ok(questions(&["first"])));
    let asked = server.next_sent()["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    assert!(asked.get("ttlMs").is_none());
    assert_eq!(asked["inputRequests"]["first"]["method"], "elicitation/create");
    let first = asked["requestState"].as_str().unwrap().to_owned();

    server.receive(&modern(
        2,
        &able,
        &json!({"inputResponses": {"first": yes()}, "requestState": first}),
    ));
    let run = server.running();
    let form = to_raw(&form());
    assert!(run.context.answers.get("first", Method::Elicit, form.get()).is_some());
    server.done(&run, Ok(questions(&["first", "second"])));
    let asked = server.next_sent()["result"].clone();
    let open: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(open, ["second"]);
    let second = asked["requestState"].as_str().unwrap().to_owned();
    assert_ne!(first, second);

    server.receive(&modern(
        3,
        &able,
        &json!({"inputResponses": {"second": yes()}, "requestState": second}),
    ));
    let run = server.running();
    for key in ["first", "second"] {
        assert!(run.context.answers.get(key, Method::Elicit, form.get()).is_some(), "{key}");
    }
    server.done(&run, Ok(Reply::Text("done".into())));
    assert_eq!(server.next_sent()["result"]["resultType"], "complete");
}

#[test]
fn a_tampered_or_foreign_state_is_rejected_and_the_reason_logged() {
    let mut server = Server::new();
    let able = json!({"elicitation": {}});
    server.receive(&modern(1, &able, &json!({})));
    let run = server.running();
    server.done(&run, Ok(questions(&["k"])));
    let state = server.next_sent()["result"]["requestState"].as_str().unwrap().to_owned();
    for (rest, reason) in [
        (json!({"requestState": format!("{state}AAAA")}), "no key opens it"),
        (json!({"requestState": state, "arguments": {"x": 2}}), "other arguments"),
        (json!({"requestState": state, "name": "other"}), "another"),
    ] {
        server.receive(&modern(2, &able, &rest));
        let error = server.next_sent()["error"].clone();
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!("Invalid or expired requestState"))
        );
        assert!(server.runs.is_empty());
        assert!(server.reports.pop().unwrap().contains(reason));
    }
    server.receive(&modern(3, &able, &json!({"requestState": state, "arguments": {"x": 1.0}})));
    assert_eq!(server.runs.len(), 1);
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let mut server = Server::new();
    let able = json!({"elicitation": {}});
    for unfit in [json!({"k": 12345}), json!({"wrong": yes()}), json!(null)] {
        server.receive(&modern(1, &able, &json!({"inputResponses": unfit})));
        let run = server.running();
        assert!(run.context.answers.get("k", Method::Elicit, to_raw(&form()).get()).is_none());
        server.done(&run, Ok(questions(&["k"])));
        assert_eq!(server.next_sent()["result"]["resultType"], "input_required");
    }
}

#[test]
fn undeclared_capabilities_are_errors_in_both_eras() {
    let mut server = Server::new();
    server.receive(&modern(1, &json!({}), &json!({})));
    let run = server.running();
    server.done(&run, Ok(questions(&["k"])));
    let error = server.next_sent()["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"], json!({"requiredCapabilities": {"elicitation": {}}}));

    let mut server = Server::new();
    server.open("2025-11-25", &json!({}));
    server.receive(&legacy(1));
    let run = server.running();
    server.done(&run, Ok(questions(&["k"])));
    let result = server.next_sent()["result"].clone();
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("did not declare elicitation"));
}

#[test]
fn returned_questions_become_requests_and_the_handler_runs_again() {
    let mut server = Server::new();
    server.open("2025-06-18", &json!({"elicitation": {}}));
    server.receive(&legacy(1));
    let run = server.running();
    server.done(&run, Ok(questions(&["a", "b"])));
    let (first, second) = (server.next_sent(), server.next_sent());
    assert_eq!(first["method"], "elicitation/create");
    // Before 2025-11-25 forms have no mode.
    assert!(first["params"].get("mode").is_none());
    server.receive(&json!({"jsonrpc": "2.0", "id": second["id"], "result": yes()}));
    assert!(server.runs.is_empty(), "one answer is missing");
    server.receive(&json!({"jsonrpc": "2.0", "id": first["id"], "result": {"action": "decline"}}));
    let again = server.running();
    assert_ne!(again.id, run.id, "it is another run");
    let form = to_raw(&form());
    for key in ["a", "b"] {
        assert!(again.context.answers.get(key, Method::Elicit, form.get()).is_some(), "{key}");
    }
    server.done(&again, Ok(questions(&["a", "c"])));
    let third = server.next_sent();
    server.receive(&json!({"jsonrpc": "2.0", "id": third["id"], "result": yes()}));
    let last = server.running();
    for key in ["a", "b", "c"] {
        assert!(last.context.answers.get(key, Method::Elicit, form.get()).is_some(), "{key}");
    }
    server.done(&last, Ok(Reply::Text("done".into())));
    assert_eq!(server.next_sent()["result"]["content"][0]["text"], "done");
}

#[test]
fn a_waiting_handler_gets_its_answer_and_withdraws_open_questions_at_its_end() {
    let mut server = Server::new();
    server.open("2025-11-25", &json!({"elicitation": {}}));
    server.receive(&legacy(1));
    let run = server.running();
    let ask = |number| ask(&run, number, &format!("k{number}"));
    server.handle(ask(0));
    let request = server.next_sent();
    server.receive(&json!({"jsonrpc": "2.0", "id": request["id"], "result": yes()}));
    assert_eq!(server.answered.pop().unwrap().unwrap(), yes());
    server.handle(ask(1));
    let request = server.next_sent();
    server.receive(
        &json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -1, "message": "No."}}),
    );
    assert_eq!(server.answered.pop().unwrap().unwrap_err(), "No.");
    server.handle(ask(2));
    let request = server.next_sent();
    server.done(&run, Ok(Reply::Text("done".into())));
    let said = [server.next_sent(), server.next_sent()];
    let withdrawn =
        said.iter().find(|message| message["method"] == "notifications/cancelled").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    server.receive(&json!({"jsonrpc": "2.0", "id": request["id"], "result": yes()}));
    assert!(server.answered.is_empty() && server.sent.is_empty(), "it came too late");
}

#[test]
fn a_waiting_handler_is_cancelled_when_its_client_disconnects() {
    let mut server = Server::new();
    server.open("2025-11-25", &json!({"elicitation": {}}));
    server.receive(&legacy(1));
    let waits = server.running();
    server.handle(ask(&waits, 1, "sure"));
    server.receive(&legacy(2));
    let returned = server.running();
    server.done(&returned, Ok(questions(&["sure"])));
    server.sent.clear();
    server.handle(Input::Closed);
    assert_eq!(server.cancelled, [waits.id], "the other has ended");
    assert!(server.answered.is_empty(), "an error would let it go on");
    assert!(server.runs.is_empty() && server.sent.is_empty());
}

#[test]
fn after_end_of_input_questions_fail_and_calls_are_answered() {
    const GONE: &str = "the client disconnected: this question gets no answer";
    let mut server = Server::new();
    server.open("2025-11-25", &json!({"elicitation": {}}));
    server.receive(&legacy(1));
    let waits = server.running();
    server.handle(ask(&waits, 1, "sure"));
    server.receive(&legacy(2));
    let returned = server.running();
    server.done(&returned, Ok(questions(&["sure"])));
    server.receive(&legacy(3));
    let late = server.running();
    server.sent.clear();
    server.handle(Input::EndOfInput);
    assert_eq!(server.answered.pop().unwrap().unwrap_err(), GONE);
    assert_eq!(server.next_sent()["result"]["content"][0]["text"], GONE, "what was returned");
    server.handle(ask(&late, 2, "sure"));
    assert_eq!(server.answered.pop().unwrap().unwrap_err(), GONE);
    assert!(server.cancelled.is_empty() && server.sent.is_empty());
    for run in [&waits, &late] {
        server.done(run, Ok(Reply::Text("went on".into())));
        assert_eq!(server.next_sent()["result"]["content"][0]["text"], "went on");
    }
    assert_eq!(server.in_flight(), 0);
}

#[test]
fn a_url_elicitation_error_without_urls_is_the_handlers_mistake() {
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let nameless = json!({"mode": "url", "message": "In?", "url": "https://a.example"});
    for data in [None, Some(json!([])), Some(json!([form])), Some(json!([nameless]))] {
        let mut server = Server::new();
        server.open("2025-11-25", &json!({"elicitation": {"url": {}}}));
        server.receive(&legacy(1));
        let data = data.map(|elicitations| to_raw(&json!({ "elicitations": elicitations })));
        let failure = Failure::Protocol { code: -32042, message: "sign in".into(), data };
        let run = server.running();
        server.done(&run, Err(failure));
        let result = server.next_sent()["result"].clone();
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("(reference ") && !text.contains("(reference )"), "{text}");
        assert!(server.reports.pop().unwrap().contains("error -32042 names the pages to visit"));
    }
}

#[test]
fn the_end_of_a_url_elicitation_in_an_error_is_reported_where_ids_exist() {
    for (revision, is_told) in [("2025-11-25", true), ("2025-06-18", false)] {
        let mut server = Server::new();
        server.open(revision, &json!({"elicitation": {"url": {}}}));
        server.receive(&legacy(1));
        let page = json!({"mode": "url", "message": "In?", "url": "https://a.example", "elicitationId": "own"});
        let data = to_raw(&json!({ "elicitations": [page] }));
        let message = "sign in first".to_owned();
        let failure = Failure::Protocol { code: -32042, message, data: Some(data) };
        let run = server.running();
        server.done(&run, Err(failure));
        assert_eq!(server.next_sent()["error"]["code"], -32042);
        server.handle(Input::PageDone("own"));
        assert_eq!(
            server.sent.pop().is_some_and(|message| message["params"]["elicitationId"] == "own"),
            is_told
        );
        server.handle(Input::PageDone("own"));
        assert!(server.sent.is_empty(), "it is told once");
    }
}
