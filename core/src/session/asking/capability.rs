//! The client capability that each question requires.

use serde_json::{Map, Value, json};

use super::mode;
use crate::{
    error::{Fault, FaultKind, option_name},
    protocol::{Method, Question, Raw, json},
    wire::Wire,
};

/// Errors if the client did not declare the capability for a question (Multi Round-Trip Requests, "Server
/// Requirements").
pub(super) fn check_declared(
    questions: &[Question],
    capabilities: Option<&Raw>,
    wire: &Wire,
) -> Result<(), Fault> {
    let declared: Value = capabilities
        .and_then(|capabilities| serde_json::from_str(capabilities.get()).ok())
        .unwrap_or_default();
    let mut required = Map::new();
    let mut refusal = None;
    for question in questions {
        let is_defined = has_words(question, wire);
        let declared = if is_defined { &declared } else { &Value::Null };
        let Some(missing) = missing(question, declared) else {
            continue;
        };
        refusal.get_or_insert_with(|| match (is_defined, capabilities) {
            (true, None) if may_lack_session(wire) => without_session(question),
            _ => missing.refusal(question, wire, is_defined),
        });
        let needed = required.entry(missing.feature).or_insert_with(|| json!({}));
        if let (Some(part), Some(needed)) = (missing.part, needed.as_object_mut()) {
            needed.insert(part.to_owned(), json!({}));
        }
    }
    match refusal {
        None => Ok(()),
        Some(message) => Err(Fault::new(FaultKind::MissingCapability, message)
            .with_data(Some(json::to_raw(&json!({ "requiredCapabilities": required }))))),
    }
}

/// Returns `true` if the revision defines this question.
fn has_words(question: &Question, wire: &Wire) -> bool {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let is_newer = mode(&params) == "url" || uses_tools(&params);
    [wire.server_requests, wire.input_requests]
        .iter()
        .any(|methods| methods.contains(&question.method))
        && (wire.has_pages_and_tools() || !is_newer)
}

/// Returns `true` if a sampling request uses tools; `params` is a JSON object.
pub fn wants_tools(params: &str) -> bool {
    serde_json::from_str(params).is_ok_and(|params| uses_tools(&params))
}

fn uses_tools(params: &Value) -> bool {
    params.get("tools").or_else(|| params.get("toolChoice")).is_some()
}

/// Returns whether clients declare their capabilities in a session, which a server may not keep.
fn may_lack_session(wire: &Wire) -> bool {
    wire.dialect.is_none() && wire.client_requests.contains(&Method::Initialize)
}

/// Returns the refusal of a question to a client of which nothing is known.
fn without_session(question: &Question) -> String {
    let sessions = option_name("sessions");
    let method = question.method.as_str();
    format!(
        "this server keeps no sessions (option {sessions}), so it does not know what its client declared: {method} needs \
         sessions, or a client of 2026-07-28"
    )
}

/// A capability or a part of one.
struct Missing {
    feature: &'static str,
    part: Option<&'static str>,
}

impl Missing {
    fn refusal(&self, question: &Question, wire: &Wire, is_defined: bool) -> String {
        let name = match self.part {
            None => self.feature.to_owned(),
            Some(part) => format!("{}.{part}", self.feature),
        };
        let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
        let (reason, who) = match (is_defined, wire.dialect) {
            (true, _) => (format!("the client did not declare {name}"), ("it", "its")),
            (false, None) => (
                format!("revision {} has no {name}", wire.revision),
                ("the client", "the client's"),
            ),
            (false, Some(dialect)) => (
                format!("dialect {:?} has no {name}", dialect.as_str()),
                ("the client", "the client's"),
            ),
        };
        let what = match (question.method, params.get("message").and_then(Value::as_str)) {
            (Method::Elicit, Some(message)) => format!("{} can't be asked {message:?}", who.0),
            (Method::CreateMessage, _) => format!("{} model can't be asked", who.1),
            _ => format!("{} can't be asked for {}", who.0, self.feature),
        };
        format!("{reason}, so {what}")
    }
}

/// Returns the capability that this question requires and the client did not declare.
fn missing(question: &Question, declared: &Value) -> Option<Missing> {
    let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
    let has = |feature: &str| declared.get(feature).filter(|value| !value.is_null());
    let part = |feature: &str, part: &str| has(feature)?.get(part).filter(|value| !value.is_null());
    let missing = |feature, part| Some(Missing { feature, part });
    match question.method {
        Method::Elicit if mode(&params) == "url" => match part("elicitation", "url") {
            Some(_) => None,
            None => missing("elicitation", Some("url")),
        },
        // A client that names no mode supports forms (Elicitation, "Capabilities").
        Method::Elicit => {
            match (has("elicitation"), part("elicitation", "url"), part("elicitation", "form")) {
                (None, ..) => missing("elicitation", None),
                (_, Some(_), None) => missing("elicitation", Some("form")),
                _ => None,
            }
        }
        Method::CreateMessage => {
            let with_tools = uses_tools(&params);
            match (has("sampling"), with_tools, part("sampling", "tools")) {
                (_, true, None) => missing("sampling", Some("tools")),
                (None, ..) => missing("sampling", None),
                _ => None,
            }
        }
        _ => match has("roots") {
            Some(_) => None,
            None => missing("roots", None),
        },
    }
}
