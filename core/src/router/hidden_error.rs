//! The advice in the log for an error whose text its caller does not see.

use crate::error::Language;

/// Kinds of failures that are not errors of a handler's own, so that their text helps nobody but the server's author.
const INTERNAL: [&str; 3] = ["internal", "invalid result", "panic"];

/// Returns the end of the log line of a failure: the way to show callers the text of such an error, in the notation of the
/// language. `None` if callers should not see it.
pub(super) fn advice(language: Language, kind: &str) -> Option<&'static str> {
    if INTERNAL.contains(&kind) {
        return None;
    }
    Some(match language {
        Language::Rust => "the caller does not see why: return ToolError::new(text) to say it",
        Language::Python => {
            "the caller does not see why: raise ToolError(text) to say it, or list the class in expose_errors"
        }
        Language::TypeScript => {
            "the caller does not see why: throw new ToolError(text) to say it, or list the class in exposeErrors"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_written_in_the_language_of_the_server() {
        let advice = |language| advice(language, "ValueError").unwrap();
        assert!(advice(Language::Rust).contains("return ToolError::new(text)"));
        assert!(!advice(Language::Rust).contains("expose"));
        assert!(advice(Language::Python).contains("raise ToolError(text)"));
        assert!(advice(Language::Python).contains("expose_errors"));
        assert!(advice(Language::TypeScript).contains("throw new ToolError(text)"));
        assert!(advice(Language::TypeScript).contains("exposeErrors"));
    }

    #[test]
    fn a_mistake_of_the_server_is_not_meant_for_callers() {
        for kind in INTERNAL {
            assert_eq!(advice(Language::Python, kind), None);
        }
    }
}
