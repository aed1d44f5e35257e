//! Checks of content blocks that handlers return as JSON.

use std::borrow::Cow;

use serde::Deserialize;

use super::handler::{Failure, bad_result};

/// Blocks of tool calls and tool results are allowed in sampling messages only (Sampling, "Message Content
/// Constraints"). Unknown block types are passed through unchecked.
pub(super) fn check(block: &str) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow)]
        r#type: Option<Cow<'a, str>>,
    }
    // Most blocks are accepted or rejected by their type alone, without parsing.
    if !block.contains("tool_") {
        return Ok(());
    }
    let kind = serde_json::from_str::<Kind<'_>>(block).ok().and_then(|kind| kind.r#type);
    match kind.as_deref() {
        Some(kind @ ("tool_use" | "tool_result")) => Err(bad_result(format!(
            "content of the type {kind:?} is for sampling only: use text here"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_models_is_not_for_callers() {
        for block in [
            r#"{"type":"tool_use","id":"1","name":"look","input":{}}"#,
            r#"{"toolUseId":"1","content":[],"type": "tool_result"}"#,
        ] {
            assert!(check(block).is_err(), "{block}");
        }
        for block in [
            r#"{"type":"text","text":"\"type\":\"tool_use\""}"#,
            r#"{"type":"hologram","of":"tool_use"}"#,
            r#"{"type":"text","text":"tool_box"}"#,
        ] {
            assert!(check(block).is_ok(), "{block}");
        }
    }
}
