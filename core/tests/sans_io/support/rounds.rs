//! Rounds of questions (2026-07-28) for an `asker::Server`.

use gudgeon::{
    engine::{HandlerEvent, Run},
    router::Reply,
    service::Input,
};
use serde_json::{Value, json};

use crate::support::asker::{Server, ask, modern};

pub(crate) fn able() -> Value {
    json!({"elicitation": {}})
}

pub(crate) fn waits(run: &Run) -> Input<'static> {
    Input::Handler(run.id, HandlerEvent::Waits { blocks: false })
}

pub(crate) fn call(id: u64, tool: &str, rest: &Value) -> Value {
    let mut params = json!({"name": tool});
    for (key, value) in rest.as_object().unwrap() {
        params[key] = value.clone();
    }
    modern(id, &able(), &params)
}

pub(crate) fn retry(id: u64, tool: &str, state: &str, responses: &Value) -> Value {
    call(id, tool, &json!({"requestState": state, "inputResponses": responses}))
}

/// Calls a tool whose handler asks under these keys, and gives the handler and the state.
pub(crate) fn asked(server: &mut Server, id: u64, tool: &str, keys: &[&str]) -> (Run, String) {
    server.receive(&call(id, tool, &json!({})));
    let run = server.running();
    let state = asks(server, &run, keys);
    (run, state)
}

/// A handler asks under these keys: the state that its client is given.
pub(crate) fn asks(server: &mut Server, run: &Run, keys: &[&str]) -> String {
    for (number, key) in keys.iter().enumerate() {
        server.handle(ask(run, number as u64, key));
    }
    server.handle(waits(run));
    state(server, keys)
}

pub(crate) fn state(server: &mut Server, keys: &[&str]) -> String {
    let said = server.next_sent();
    let result = &said["result"];
    assert_eq!(result["resultType"], "input_required", "{said}");
    let open: Vec<_> = result["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(open, keys);
    result["requestState"].as_str().unwrap().to_owned()
}

pub(crate) fn done(server: &mut Server, run: &Run, text: &str) {
    server.done(run, Ok(Reply::Text(text.into())));
}

pub(crate) fn text(said: &Value) -> (u64, &str) {
    let text = said["result"]["content"][0]["text"].as_str();
    (said["id"].as_u64().unwrap(), text.unwrap_or_else(|| panic!("{said}")))
}

pub(crate) fn refused(said: &Value) -> bool {
    said["error"]["code"] == -32602 && said["error"]["message"] == "Invalid or expired requestState"
}
