//! What a model can be asked: the content that a revision has words for, and conversations in which every call of a tool
//! is followed by its result (2025-11-25, Sampling, "Message Content Constraints").

use serde_json::{Map, Value};

use super::misused;
use crate::{error::Fault, wire::Wire};

/// What breaks the order of a conversation about tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Disorder {
    /// A call of a tool that the next message does not answer.
    Missing,
    /// Results of tools beside other content.
    Mixed,
}

impl Disorder {
    /// As a client tells its server.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "Tool result missing in request",
            Self::Mixed => "Tool results mixed with other content",
        }
    }
}

/// The first disorder in the messages of a request.
pub fn disorder(params: &str) -> Option<Disorder> {
    let params: Value = serde_json::from_str(params).ok()?;
    first_disorder(messages(params.get("messages"))).map(|(_, it)| it)
}

pub(super) fn check(params: &Map<String, Value>, wire: &Wire) -> Result<(), Fault> {
    let messages = messages(params.get("messages"));
    for (at, message) in messages.iter().enumerate() {
        for kind in kinds(message) {
            check_kind(kind, at, wire)?;
        }
    }
    match first_disorder(messages) {
        Some((at, Disorder::Missing)) => {
            return Err(misused(&format!(
                "messages[{at}] calls tools, and the next message is not the user's with a result for each of these calls"
            )));
        }
        Some((at, Disorder::Mixed)) => {
            return Err(misused(&format!(
                "messages[{at}] has results of tools beside other content: they stand in a message of their own"
            )));
        }
        None => (),
    }
    check_choice(params)?;
    check_priorities(params)
}

fn messages(given: Option<&Value>) -> &[Value] {
    given.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// One block, or a list of them.
fn blocks(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(block) => std::slice::from_ref(block),
        None => &[],
    }
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn kinds(message: &Value) -> impl Iterator<Item = &str> {
    blocks(message).iter().map(kind)
}

/// Kinds that nobody knows are the user's own affair.
fn check_kind(kind: &str, at: usize, wire: &Wire) -> Result<(), Fault> {
    let mend = match kind {
        "audio" if !wire.vocabulary.audio => ("audio", "text or an image"),
        "tool_use" | "tool_result" if !wire.vocabulary.sampled_lists => {
            ("calls of tools and their results", "text")
        }
        "resource" | "resource_link" => {
            return Err(misused(&format!(
                "messages[{at}] has a resource in it, which no model can be given: give it the resource's text, an image or \
                 audio"
            )));
        }
        _ => return Ok(()),
    };
    Err(misused(&format!(
        "a model can't be given {} in {}, which has no words for it: give it {}",
        mend.0,
        wire.name(),
        mend.1,
    )))
}

fn first_disorder(messages: &[Value]) -> Option<(usize, Disorder)> {
    let mut open: Vec<&Value> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let all = blocks(message);
        let results = ids(all, "tool_result", "toolUseId");
        if !results.is_empty() && results.len() < all.len() {
            return Some((at, Disorder::Mixed));
        }
        if open.iter().any(|call| !results.contains(call)) {
            return Some((at - 1, Disorder::Missing));
        }
        open = ids(all, "tool_use", "id");
    }
    (!open.is_empty()).then(|| (messages.len() - 1, Disorder::Missing))
}

/// Of the blocks of one kind; `null` for one that has none.
fn ids<'b>(blocks: &'b [Value], of: &str, name: &str) -> Vec<&'b Value> {
    let of_kind = blocks.iter().filter(|it| kind(it) == of);
    of_kind.map(|it| it.get(name).unwrap_or(&Value::Null)).collect()
}

fn check_choice(params: &Map<String, Value>) -> Result<(), Fault> {
    let choice = params.get("toolChoice").filter(|it| !it.is_null());
    match choice.map(|it| it.get("mode")) {
        None | Some(None) => Ok(()),
        Some(Some(Value::String(mode))) if matches!(&**mode, "auto" | "required" | "none") => {
            Ok(())
        }
        Some(Some(mode)) => Err(misused(&format!(
            "{mode} is no way to choose tools: there are \"auto\", \"required\" and \"none\""
        ))),
    }
}

fn check_priorities(params: &Map<String, Value>) -> Result<(), Fault> {
    let preferences = params.get("modelPreferences");
    for name in ["costPriority", "speedPriority", "intelligencePriority"] {
        let Some(priority) = preferences.and_then(|it| it.get(name)) else { continue };
        if !priority.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)) {
            return Err(misused(&format!("{name} is a number from 0 to 1, not {priority}")));
        }
    }
    Ok(())
}
