//! Validation of sampling requests: content types that the revision defines, and conversations in which every tool call
//! is followed by its result (2025-11-25, Sampling, "Message Content Constraints").

use serde_json::{Map, Value};

use super::misused;
use crate::{error::Fault, wire::Wire};

/// A violation of the order of tool calls and results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OrderViolation {
    /// A tool call without a result in the next message.
    Missing,
    /// Tool results mixed with other content.
    Mixed,
}

impl OrderViolation {
    /// Returns the message that a client sends to its server.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "Tool result missing in request",
            Self::Mixed => "Tool results mixed with other content",
        }
    }
}

/// Returns the first violation in the messages of a request.
pub fn order_violation(params: &str) -> Option<OrderViolation> {
    let params: Value = serde_json::from_str(params).ok()?;
    first_violation(messages(params.get("messages"))).map(|(_, violation)| violation)
}

pub(super) fn check(params: &Map<String, Value>, wire: &Wire) -> Result<(), Fault> {
    let messages = messages(params.get("messages"));
    for (at, message) in messages.iter().enumerate() {
        for kind in kinds(message) {
            check_kind(kind, at, wire)?;
        }
    }
    match first_violation(messages) {
        Some((at, OrderViolation::Missing)) => {
            return Err(misused(&format!(
                "messages[{at}] calls tools, and the next message is not the user's with a result for each of these calls"
            )));
        }
        Some((at, OrderViolation::Mixed)) => {
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

/// Returns the content blocks of a message, which may be a single block or a list.
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

/// Blocks of unknown types are passed through unchecked.
fn check_kind(kind: &str, at: usize, wire: &Wire) -> Result<(), Fault> {
    let fix = match kind {
        "audio" if !wire.vocabulary.audio => ("audio", "text or an image"),
        "tool_use" | "tool_result" if !wire.vocabulary.sampled_lists => {
            ("tool calls and tool results", "text")
        }
        "resource" | "resource_link" => {
            return Err(misused(&format!(
                "messages[{at}] has a resource in it, which a model can't receive: send the resource's text, an image or \
                 audio"
            )));
        }
        _ => return Ok(()),
    };
    Err(misused(&format!(
        "a model can't receive {} in {}, which does not support it: send {}",
        fix.0,
        wire.name(),
        fix.1,
    )))
}

fn first_violation(messages: &[Value]) -> Option<(usize, OrderViolation)> {
    let mut open: Vec<&Value> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let all = blocks(message);
        let results = ids(all, "tool_result", "toolUseId");
        if !results.is_empty() && results.len() < all.len() {
            return Some((at, OrderViolation::Mixed));
        }
        if open.iter().any(|call| !results.contains(call)) {
            return Some((at - 1, OrderViolation::Missing));
        }
        open = ids(all, "tool_use", "id");
    }
    (!open.is_empty()).then(|| (messages.len() - 1, OrderViolation::Missing))
}

/// Returns one member of each block of the given type; `null` where a block lacks it.
fn ids<'b>(blocks: &'b [Value], of: &str, name: &str) -> Vec<&'b Value> {
    let of_kind = blocks.iter().filter(|block| kind(block) == of);
    of_kind.map(|block| block.get(name).unwrap_or(&Value::Null)).collect()
}

fn check_choice(params: &Map<String, Value>) -> Result<(), Fault> {
    let choice = params.get("toolChoice").filter(|choice| !choice.is_null());
    match choice.map(|choice| choice.get("mode")) {
        None | Some(None) => Ok(()),
        Some(Some(Value::String(mode))) if matches!(&**mode, "auto" | "required" | "none") => {
            Ok(())
        }
        Some(Some(mode)) => Err(misused(&format!(
            "{mode} is not a tool choice: use one of \"auto\", \"required\" and \"none\""
        ))),
    }
}

fn check_priorities(params: &Map<String, Value>) -> Result<(), Fault> {
    let preferences = params.get("modelPreferences");
    for name in ["costPriority", "speedPriority", "intelligencePriority"] {
        let Some(priority) = preferences.and_then(|preferences| preferences.get(name)) else {
            continue;
        };
        if !priority.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number)) {
            return Err(misused(&format!("{name} is a number from 0 to 1, not {priority}")));
        }
    }
    Ok(())
}
