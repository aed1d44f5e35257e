//! The reaction of a recorded server to each message of the client.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    frames::message::{Kind, RawObject},
    transcript::{Entry, Side},
};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const PROGRESS_TOKEN: &str = "progressToken";

/// A message of the client, and what the server sent because of it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) line: usize,
    pub(super) method: String,
    /// Without `_meta`.
    pub(super) params: Value,
    /// The recorded id and progress token, as JSON text; a notification has no id.
    pub(super) id: Option<String>,
    pub(super) token: Option<String>,
    pub(super) steps: Vec<ScriptStep>,
}

/// A message that a recorded server sent.
#[derive(Clone, Debug)]
pub(super) enum ScriptStep {
    Notify(RawObject),
    /// A request to the client, whose response the server waited for.
    Ask(RawObject),
    Respond(RawObject),
}

impl Act {
    pub(super) fn has_response(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ScriptStep::Respond(_)))
    }
}

/// Returns the acts of a connection, in order.
pub(super) fn acts(entries: &[Entry]) -> Vec<Act> {
    let mut acts: Vec<Act> = Vec::new();
    // The requests in progress, by id.
    let mut open: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        let Some(message) = RawObject::parse(entry.message.get().as_bytes()) else { continue };
        match (entry.from, message.kind()) {
            (Side::Client, Kind::Request { id, method }) => {
                open.insert(id.clone(), acts.len());
                let token = message.meta(PROGRESS_TOKEN);
                let (line, params) = (entry.line, params(&message));
                acts.push(Act { line, method, params, id: Some(id), token, steps: Vec::new() });
            }
            (Side::Client, Kind::Notification { method }) => {
                let (line, params) = (entry.line, params(&message));
                let (id, token, steps) = (None, None, Vec::new());
                acts.push(Act { line, method, params, id, token, steps });
            }
            (Side::Client, _) | (Side::Server, Kind::Other) => (),
            (Side::Server, Kind::Response { id }) => {
                if let Some(index) = open.remove(&id) {
                    acts[index].steps.push(ScriptStep::Respond(message));
                }
            }
            (Side::Server, kind) => {
                let step = |message| match kind {
                    Kind::Request { .. } => ScriptStep::Ask(message),
                    _ => ScriptStep::Notify(message),
                };
                let progress = message.object("params").and_then(|params| {
                    params.get(PROGRESS_TOKEN).map(|token| token.get().to_owned())
                });
                let by_token =
                    acts.iter().position(|act| act.token.is_some() && act.token == progress);
                // A subscription is open until the end; what happened there was caused by something else.
                let latest = open
                    .values()
                    .copied()
                    .filter(|index| acts[*index].method != "subscriptions/listen")
                    .max();
                let last = acts.len().checked_sub(1);
                // Without any message of the client before it, it can't be placed.
                let Some(index) = by_token.or(latest).or(last) else { continue };
                acts[index].steps.push(step(message));
            }
        }
    }
    acts
}

/// Returns the params of a message without `_meta`.
pub(super) fn params(message: &RawObject) -> Value {
    let mut params = message
        .get("params")
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    if let Value::Object(params) = &mut params {
        params.shift_remove("_meta");
    }
    params
}

/// Replaces the ids and tokens that a notification of the server repeats; both maps are from recorded to present JSON text.
/// Returns `None` if the client did not ask for the notification.
pub(super) fn addressed(
    mut message: RawObject,
    ids: &HashMap<String, String>,
    tokens: &HashMap<String, String>,
) -> Option<RawObject> {
    if let Some(id) = message.meta(SUBSCRIPTION_ID) {
        message.set_meta(SUBSCRIPTION_ID, ids.get(&id)?);
    }
    if message.string("method").is_some_and(|method| method == "notifications/progress") {
        let mut params = message.object("params")?;
        let token = params.get(PROGRESS_TOKEN)?.get().to_owned();
        params.set_json(PROGRESS_TOKEN, tokens.get(&token)?);
        message.set("params", &params);
    }
    Some(message)
}
