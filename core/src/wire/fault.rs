//! What a request died of, as each revision reports it: a JSON-RPC error, or a tool's result with `isError`.

use super::Wire;
use crate::{
    error::{Fault, FaultKind},
    protocol::{ErrorObject, Method, MethodName, Raw, ToolOutcome, code, json},
};

/// A fault, spelled.
#[derive(Debug)]
pub enum Lowered {
    Error(ErrorObject),
    /// `tools/call` only: the model reads it.
    Tool(ToolOutcome),
}

/// The one table from faults to codes.
pub fn lower(wire: &Wire, method: Option<&MethodName>, fault: Fault) -> Lowered {
    let is_tool = method == Some(&MethodName::Standard(Method::CallTool));
    let as_result = is_tool
        && match fault.kind {
            FaultKind::Tool | FaultKind::Handler => true,
            FaultKind::InvalidArguments => wire.codes.invalid_arguments_are_results,
            FaultKind::MissingCapability => !wire.codes.missing_capability,
            _ => false,
        };
    if as_result {
        let meta = fault.data.filter(|_| fault.kind == FaultKind::Tool);
        return Lowered::Tool(failure(&fault.message, meta));
    }
    let code = match fault.kind {
        FaultKind::Unreadable => code::PARSE_ERROR,
        FaultKind::InvalidRequest => code::INVALID_REQUEST,
        FaultKind::UnknownMethod => code::METHOD_NOT_FOUND,
        FaultKind::InvalidParams | FaultKind::InvalidArguments => code::INVALID_PARAMS,
        FaultKind::ResourceNotFound => wire.codes.resource_not_found,
        FaultKind::UnsupportedRevision => code::UNSUPPORTED_PROTOCOL_VERSION,
        FaultKind::MissingCapability => match wire.codes.missing_capability {
            true => code::MISSING_REQUIRED_CLIENT_CAPABILITY,
            false => code::INTERNAL_ERROR,
        },
        FaultKind::Tool | FaultKind::Handler | FaultKind::Internal => code::INTERNAL_ERROR,
        FaultKind::Protocol(code) => code,
    };
    Lowered::Error(ErrorObject { code, message: fault.message, data: fault.data })
}

fn failure(message: &str, meta: Option<Raw>) -> ToolOutcome {
    let mut content = String::from(r#"[{"type":"text","text":"#);
    json::push_string(&mut content, message);
    content.push_str("}]");
    ToolOutcome { content, structured: None, is_error: true, meta }
}
