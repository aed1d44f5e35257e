//! Answers to questions of a server: values that callbacks returned, as results of the protocol.

use std::sync::Once;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client_roots;
use crate::{
    client::Question,
    error::{Error, ErrorKind, Language, host_error::HostError},
    protocol::{
        Method, Raw, code,
        json::{self, to_raw},
    },
};

/// The log line about callbacks that return nothing for a URL, which is written once in a process.
static NOTHING_RETURNED: Once = Once::new();

/// Returns the result for a question. `given` is the value that the callback returned, as JSON, or null for none.
///
/// Errors are for the server and for the log, and so do not show the value.
pub(super) fn result(language: Language, question: &Question, given: &[u8]) -> Result<Raw, Error> {
    let result = json::from_bytes(given).map_err(|error| error.to_string());
    let result = result.and_then(|given| match question.method {
        Method::ListRoots => {
            let roots = client_roots::read_all(&given).map_err(|error| error.message)?;
            Ok(json!({ "roots": roots }))
        }
        Method::CreateMessage => sampled(language, given),
        _ => {
            let asked = serde_json::from_str(question.params.get()).unwrap_or_default();
            elicited(language, &asked, given)
        }
    });
    result.map(|value| to_raw(&value)).map_err(failed)
}

/// Reads the reason that a callback gave no answer: `{"kind", "message", "code"?, "data"?}` of an error of this library, or
/// `{"name", "raised"}` of another one, whose message may hold secrets, with the number of the exception. Kinds other than `declined` and `cancelled` become
/// JSON-RPC errors.
pub(super) fn refusal(json: &[u8]) -> Error {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CallbackRefusal {
        name: Option<String>,
        kind: String,
        message: String,
        code: Option<i64>,
        data: Option<Raw>,
        raised: Option<u32>,
    }
    let refusal: CallbackRefusal = json::from_bytes(json).unwrap_or_default();
    if let Some(name) = refusal.name {
        let error = failed(format!("the client could not answer: {name}"));
        return match refusal.raised {
            Some(number) => error.caused_by(HostError(number)),
            None => error,
        };
    }
    let (kind, default) = match refusal.kind.as_str() {
        "declined" => (ErrorKind::Declined, "the user declined"),
        "cancelled" => (ErrorKind::Cancelled, "the user cancelled"),
        _ => (ErrorKind::Protocol, "the question could not be answered"),
    };
    let message = if refusal.message.is_empty() { default.to_owned() } else { refusal.message };
    Error::new(kind, message)
        .with(|details| (details.code, details.data) = (refusal.code, refusal.data))
}

fn failed(message: String) -> Error {
    Error::new(ErrorKind::Protocol, message)
        .with(|details| details.code = Some(code::INTERNAL_ERROR))
}

/// Returns the result of an elicitation. A form with one property may be answered by the bare value, and one without
/// properties by a boolean.
fn elicited(language: Language, asked: &Value, given: Value) -> Result<Value, String> {
    let (accept, decline) = ("accept", json!({ "action": "decline" }));
    let given = match official(asked, given) {
        Official::Refused(result) => return Ok(result),
        Official::Accepted(content) => content,
        Official::Other(given) => given,
    };
    if asked["mode"] == "url" {
        if given.is_null() {
            NOTHING_RETURNED.call_once(|| {
                let callback = language.option("on_elicit");
                tracing::warn!(
                    "{callback} returned nothing for a URL, which declines it; return true once the user has agreed"
                );
            });
        }
        let is_declined = given.is_null() || given == false;
        return Ok(if is_declined { decline } else { json!({ "action": accept }) });
    }
    let (schema, none) = (&asked["requestedSchema"], Map::new());
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let only = fields.iter().next().filter(|_| fields.len() == 1);
    let mut content = match (given, only) {
        // Forms have no null: such a property is left open.
        (Value::Object(it), _) => it.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        (Value::Bool(true), None) if fields.is_empty() => Map::new(),
        (Value::Bool(false), None) if fields.is_empty() => return Ok(decline),
        // A callback that returns nothing may have forgotten to answer: a default must not answer for it.
        (Value::Null, Some((name, field)))
            if field.get("default").is_none() && !is_required(schema, name) =>
        {
            Map::new()
        }
        (given, Some((name, _))) if !given.is_null() => Map::from_iter([(name.clone(), given)]),
        (given, _) => return Err(no_form_answer(language, asked, fields, &given)),
    };
    for (name, value) in &mut content {
        choose(value, &fields.get(name).cloned().unwrap_or_default());
    }
    Ok(json!({ "action": accept, "content": content }))
}

/// The value of a callback for an elicitation.
enum Official {
    /// A result of the protocol that declines or cancels.
    Refused(Value),
    /// The content of a result of the protocol that accepts; `true` without content.
    Accepted(Value),
    /// A value of another shape.
    Other(Value),
}

/// Reads `{"action", "content"?}`, which callbacks of other SDKs return, unless the form asks for a field `action`.
fn official(asked: &Value, given: Value) -> Official {
    let is_asked = asked["requestedSchema"]["properties"].get("action").is_some();
    let Value::Object(mut result) = given else { return Official::Other(given) };
    let is_result = result.keys().all(|key| matches!(key.as_str(), "action" | "content" | "_meta"));
    let action = result.get("action").and_then(Value::as_str).filter(|_| is_result && !is_asked);
    match action {
        Some("accept") => Official::Accepted(match result.remove("content") {
            None | Some(Value::Null) => Value::Bool(true),
            Some(content) => content,
        }),
        Some("decline" | "cancel") => Official::Refused(Value::Object(result)),
        _ => Official::Other(Value::Object(result)),
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

fn no_form_answer(
    language: Language,
    asked: &Value,
    fields: &Map<String, Value>,
    given: &Value,
) -> String {
    let names: Vec<_> = fields.keys().map(String::as_str).collect();
    let (callback, given, message) =
        (language.option("on_elicit"), shape(given), &asked["message"]);
    let (object, refusals) = match language {
        Language::TypeScript => ("an object", "declined, or cancelled"),
        _ => ("a mapping", "Declined(), or Cancelled()"),
    };
    let wanted = match &names[..] {
        [] => "true or false".to_owned(),
        [only] => format!("the answer itself, {object} with {only}"),
        _ => format!("{object} with {}", names.join(", ")),
    };
    format!("{callback} returned {given} for {message}; return {wanted}, {refusals}")
}

/// Replaces the numbers of an enumeration by their strings: forms choose among strings.
fn choose(value: &mut Value, field: &Value) {
    if let Value::Array(list) = value {
        for it in list {
            choose(it, &field["items"]);
        }
        return;
    }
    let Value::Number(number) = value else { return };
    let titled = field["oneOf"].as_array().or(field["anyOf"].as_array());
    let titled = titled.into_iter().flatten().map(|choice| &choice["const"]);
    let choices: Vec<_> = field["enum"].as_array().into_iter().flatten().chain(titled).collect();
    let text = Value::String(number.to_string());
    if choices.contains(&&text) && !choices.contains(&&*value) {
        *value = text;
    }
}

/// Returns the result of sampling: a string or content is that of an unnamed model.
fn sampled(language: Language, given: Value) -> Result<Value, String> {
    let blocks = match given {
        Value::Object(it) if !is_content(&it) => return Ok(Value::Object(it)),
        Value::Array(list) => list,
        other => vec![other],
    };
    let mut content: Vec<_> =
        blocks.into_iter().map(|part| block(language, part)).collect::<Result<_, _>>()?;
    // One block is valid in every revision.
    let content = if content.len() == 1 { content.remove(0) } else { content.into() };
    Ok(
        json!({ "role": "assistant", "content": content, "model": "unknown", "stopReason": "endTurn" }),
    )
}

fn block(language: Language, given: Value) -> Result<Value, String> {
    match given {
        Value::String(text) => Ok(json!({ "type": "text", "text": text })),
        Value::Object(it) if is_content(&it) => Ok(Value::Object(it)),
        other => Err(format!(
            "{} must return a string, content, or a SampleResult, not {}",
            language.option("on_sample"),
            shape(&other)
        )),
    }
}

fn is_content(given: &Map<String, Value>) -> bool {
    given.contains_key("type") && !given.contains_key("role")
}

fn shape(given: &Value) -> &'static str {
    match given {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_the_protocol_answers_an_elicitation() {
        let form =
            json!({"message": "Who?", "requestedSchema": {"properties": {"name": {}, "age": {}}}});
        let single = json!({"requestedSchema": {"properties": {"action": {"type": "string"}}}});
        let url = json!({"mode": "url", "url": "https://example.com"});
        let ada = json!({"name": "Ada", "age": 36});
        for (asked, given, expected) in [
            (
                &form,
                json!({"action": "accept", "content": ada}),
                json!({"action": "accept", "content": ada}),
            ),
            (&form, json!({"action": "decline"}), json!({"action": "decline"})),
            (
                &form,
                json!({"action": "cancel", "content": null}),
                json!({"action": "cancel", "content": null}),
            ),
            (&form, ada.clone(), json!({"action": "accept", "content": ada})),
            (&url, json!({"action": "accept"}), json!({"action": "accept"})),
            (&url, json!({"action": "decline"}), json!({"action": "decline"})),
            // A field of the form has that name.
            (
                &single,
                json!({"action": "decline"}),
                json!({"action": "accept", "content": {"action": "decline"}}),
            ),
        ] {
            assert_eq!(elicited(Language::Python, asked, given), Ok(expected));
        }
        let error = elicited(Language::TypeScript, &form, json!({"action": "accept"})).unwrap_err();
        assert!(error.contains("name, age"), "{error}");
    }

    #[test]
    fn refusals_have_a_kind_and_a_message() {
        for (json, kind, code, message) in [
            (r#"{"kind":"declined","message":"no"}"#, ErrorKind::Declined, None, "no"),
            (
                r#"{"kind":"cancelled","message":""}"#,
                ErrorKind::Cancelled,
                None,
                "the user cancelled",
            ),
            (r#"{"kind":"tool","message":"m","code":-1}"#, ErrorKind::Protocol, Some(-1), "m"),
            (
                r#"{"name":"E"}"#,
                ErrorKind::Protocol,
                Some(-32603),
                "the client could not answer: E",
            ),
            ("?", ErrorKind::Protocol, None, "the question could not be answered"),
        ] {
            let error = refusal(json.as_bytes());
            assert_eq!((error.kind, error.code, error.message.as_str()), (kind, code, message));
        }
    }
}
