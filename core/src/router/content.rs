//! Blocks of content that handlers say, as JSON: which of them tools and prompts have.

use std::borrow::Cow;

use serde::Deserialize;

use super::handler::{Failure, bad_result};

/// Calls of tools and what they gave are told to models alone (Sampling, "Message Content Constraints"). Kinds that nobody
/// knows are the user's own affair.
pub(super) fn check(block: &str) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow)]
        r#type: Option<Cow<'a, str>>,
    }
    // Most blocks are told apart without being read.
    if !block.contains("tool_") {
        return Ok(());
    }
    let kind = serde_json::from_str::<Kind<'_>>(block).ok().and_then(|it| it.r#type);
    match kind.as_deref() {
        Some(kind @ ("tool_use" | "tool_result")) => Err(bad_result(format!(
            "content of the type {kind:?} is for a model that is asked, in sampling: say it in text here"
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
