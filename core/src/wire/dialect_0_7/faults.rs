//! Error codes of dialect 0.7: JSON-RPC's own, and codes by kind.

use serde_json::{Map, Value};

use crate::{
    error::{Fault, FaultKind},
    protocol::{ErrorObject, Method, MethodName, Raw, ToolOutcome, code, json},
    wire::Lowered,
};

const NOT_INITIALIZED: i64 = 1001;
const SESSION_EXPIRED: i64 = code::DIALECT_SESSION_EXPIRED;
const TIMEOUT: i64 = 2001;
const TOO_LARGE: i64 = 2002;
const RESOURCE_NOT_FOUND: i64 = code::DIALECT_RESOURCE_NOT_FOUND;
const READING_FAILED: i64 = 3002;
const TOOL_NOT_FOUND: i64 = 4001;
const TOOL_ARGUMENTS: i64 = code::DIALECT_TOOL_ARGUMENTS;
const TOOL_FAILED: i64 = code::DIALECT_TOOL_FAILED;
const UNSAYABLE: i64 = 5001;
const UNEXPECTED: i64 = 6001;

/// Converts a fault: the failure of a tool becomes a result, other faults become errors.
pub(in crate::wire) fn lower(method: Option<&MethodName>, fault: Fault) -> Lowered {
    let method = match method {
        Some(MethodName::Standard(method)) => Some(*method),
        _ => None,
    };
    let Fault { kind, message, data, .. } = fault;
    let code = match (kind, method) {
        (FaultKind::Tool, Some(Method::CallTool)) => {
            return Lowered::Tool(ToolOutcome {
                content: json::to_raw(&[serde_json::json!({"type": "text", "text": message})])
                    .get()
                    .to_owned(),
                structured: None,
                is_error: true,
                meta: None,
            });
        }
        (FaultKind::Unreadable, _) => code::PARSE_ERROR,
        (FaultKind::InvalidRequest | FaultKind::InsufficientScope, _) => code::INVALID_REQUEST,
        (FaultKind::UnknownMethod, _) => code::METHOD_NOT_FOUND,
        (FaultKind::InvalidArguments, Some(Method::CallTool)) => TOOL_ARGUMENTS,
        (
            FaultKind::InvalidParams
            | FaultKind::InvalidArguments
            | FaultKind::HeaderMismatch
            | FaultKind::UnsupportedRevision,
            _,
        ) => code::INVALID_PARAMS,
        (FaultKind::NotInitialized, _) => NOT_INITIALIZED,
        (FaultKind::SessionExpired, _) => SESSION_EXPIRED,
        (FaultKind::TimedOut, _) => TIMEOUT,
        (FaultKind::TooLarge, _) => TOO_LARGE,
        (FaultKind::ResourceNotFound, _) => {
            let data = Some(with_detail(data.as_ref(), &message));
            let error = ErrorObject { data, ..ErrorObject::new(RESOURCE_NOT_FOUND, message) };
            return Lowered::Error(error);
        }
        (FaultKind::UnknownTool, _) => TOOL_NOT_FOUND,
        (FaultKind::Protocol(code), _) => code,
        (_, Some(Method::ReadResource)) => READING_FAILED,
        (_, Some(Method::CallTool)) => TOOL_FAILED,
        (
            FaultKind::MissingCapability
            | FaultKind::Tool
            | FaultKind::Handler
            | FaultKind::Declined
            | FaultKind::Internal,
            _,
        ) => UNEXPECTED,
    };
    Lowered::Error(ErrorObject { code, message, data })
}

/// Returns the error for a result that the dialect can't express.
pub(super) fn inexpressible(what: &str, kind: &str) -> ErrorObject {
    let message = format!("{what} holds content of the type {kind:?}, and 0.7 supports text only");
    let data = Some(json::to_raw(&serde_json::json!({ "type": kind })));
    ErrorObject { data, ..ErrorObject::new(UNSAYABLE, message) }
}

fn with_detail(data: Option<&Raw>, detail: &str) -> Raw {
    let mut members: Map<String, Value> =
        data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    members.insert("detail".into(), detail.into());
    json::to_raw(&members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_by_kind_and_method() {
        let rows = [
            (FaultKind::Unreadable, None, -32700),
            (FaultKind::InvalidRequest, None, -32600),
            (FaultKind::UnknownMethod, None, -32601),
            (FaultKind::InvalidParams, Some(Method::CallTool), -32602),
            (FaultKind::UnsupportedRevision, Some(Method::Initialize), -32602),
            (FaultKind::NotInitialized, None, 1001),
            (FaultKind::SessionExpired, None, 1002),
            (FaultKind::TimedOut, Some(Method::CallTool), 2001),
            (FaultKind::TimedOut, Some(Method::ReadResource), 2001),
            (FaultKind::TooLarge, None, 2002),
            (FaultKind::ResourceNotFound, Some(Method::ReadResource), 3001),
            (FaultKind::Handler, Some(Method::ReadResource), 3002),
            (FaultKind::Tool, Some(Method::ReadResource), 3002),
            (FaultKind::UnknownTool, Some(Method::CallTool), 4001),
            (FaultKind::InvalidArguments, Some(Method::CallTool), 4002),
            (FaultKind::Handler, Some(Method::CallTool), 4003),
            (FaultKind::MissingCapability, Some(Method::CallTool), 4003),
            (FaultKind::Handler, Some(Method::GetPrompt), 6001),
            (FaultKind::Internal, None, 6001),
            (FaultKind::Protocol(77), Some(Method::CallTool), 77),
        ];
        for (kind, method, expected) in rows {
            let method = method.map(MethodName::Standard);
            let Lowered::Error(error) = lower(method.as_ref(), Fault::new(kind, "why")) else {
                panic!("{kind:?} is not an error");
            };
            assert_eq!(error.code, expected, "{kind:?} of {method:?}");
        }
    }

    #[test]
    fn what_a_tool_says_of_its_failure_is_its_result() {
        let tool = MethodName::Standard(Method::CallTool);
        let Lowered::Tool(outcome) = lower(Some(&tool), Fault::new(FaultKind::Tool, "no")) else {
            panic!("an error");
        };
        assert!(outcome.is_error);
        assert_eq!(outcome.content, r#"[{"type":"text","text":"no"}]"#);
    }
}
