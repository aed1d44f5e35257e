//! Conversion of faults for each revision: a JSON-RPC error, or a tool result with `isError`.

use http::StatusCode;
use serde::Deserialize;

use super::{Wire, dialect_0_7};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        Dialect, ErrorObject, Method, MethodName, Raw, ToolOutcome, code,
        json::{self, ObjectWriter},
        meta,
    },
};

/// A fault in the form of one revision.
#[derive(Debug)]
pub enum Lowered {
    Error(ErrorObject),
    /// A tool result that the model reads; `tools/call` only.
    Tool(ToolOutcome),
}

/// Maps a fault to its error code. This is the only such table.
pub fn lower(wire: &Wire, method: Option<&MethodName>, mut fault: Fault) -> Lowered {
    if fault.kind == FaultKind::Declined {
        fault.message = format!("The user declined: {}", fault.message);
    }
    if wire.dialect == Some(Dialect::V0_7) {
        return dialect_0_7::fault(method, fault);
    }
    let is_tool = method == Some(&MethodName::Standard(Method::CallTool));
    let as_result = is_tool
        && match fault.kind {
            FaultKind::Tool | FaultKind::Handler | FaultKind::Declined | FaultKind::TimedOut => {
                true
            }
            FaultKind::InvalidArguments => wire.codes.invalid_arguments_are_results,
            FaultKind::MissingCapability => !wire.codes.missing_capability,
            _ => false,
        };
    if as_result {
        let meta = fault.data.filter(|_| fault.kind == FaultKind::Tool);
        return Lowered::Tool(failure(&fault.message, meta));
    }
    if is_tool && fault.kind == FaultKind::InvalidArguments && fault.data.is_none() {
        let mut data = ObjectWriter::with_capacity(40);
        data.raw(meta::INVALID_ARGUMENTS, "true");
        fault.data = Some(json::raw(data.finish()));
    }
    let code = match fault.kind {
        FaultKind::Unreadable => code::PARSE_ERROR,
        FaultKind::InvalidRequest
        | FaultKind::TooLarge
        | FaultKind::NotInitialized
        | FaultKind::InsufficientScope
        | FaultKind::SessionExpired => code::INVALID_REQUEST,
        FaultKind::UnknownMethod => code::METHOD_NOT_FOUND,
        FaultKind::InvalidParams | FaultKind::InvalidArguments | FaultKind::UnknownTool => {
            code::INVALID_PARAMS
        }
        FaultKind::ResourceNotFound | FaultKind::Protocol(code::RESOURCE_NOT_FOUND) => {
            wire.codes.resource_not_found
        }
        FaultKind::UnsupportedRevision => code::UNSUPPORTED_PROTOCOL_VERSION,
        FaultKind::HeaderMismatch => code::HEADER_MISMATCH,
        FaultKind::MissingCapability => match wire.codes.missing_capability {
            true => code::MISSING_REQUIRED_CLIENT_CAPABILITY,
            false => code::INTERNAL_ERROR,
        },
        FaultKind::Tool
        | FaultKind::Handler
        | FaultKind::Declined
        | FaultKind::TimedOut
        | FaultKind::Internal => code::INTERNAL_ERROR,
        // A code chosen by a handler; codes reserved by the specification are replaced.
        FaultKind::Protocol(code) if wire.codes.keeps_reserved && code::is_reserved(code) => {
            code::INTERNAL_ERROR
        }
        FaultKind::Protocol(code) => code,
    };
    Lowered::Error(ErrorObject { code, message: fault.message, data: fault.data })
}

/// Returns the result of `tools/call` that an error stands for: the model reads which arguments are invalid, as in revisions that
/// have no error for them.
pub fn lift_invalid_arguments(error: &ErrorObject) -> Option<Raw> {
    #[derive(Deserialize)]
    struct Marked {
        #[serde(rename = "gudgeon/invalidArguments")]
        is_result: bool,
    }
    let marked = serde_json::from_str(error.data.as_ref()?.get()).ok()?;
    let Marked { is_result: true } = marked else { return None };
    let mut result = ObjectWriter::with_capacity(error.message.len() + 64);
    result.raw("content", &failure(&error.message, None).content).raw("isError", "true");
    Some(json::raw(result.finish()))
}

/// Returns the HTTP status of a modern error; an error chosen by a handler has the status of a normal answer.
pub fn status(code: i64) -> StatusCode {
    match code {
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::INVALID_PARAMS
        | code::HEADER_MISMATCH
        | code::MISSING_REQUIRED_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::INTERNAL_ERROR => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    }
}

fn failure(message: &str, meta: Option<Raw>) -> ToolOutcome {
    let mut content = String::from(r#"[{"type":"text","text":"#);
    json::push_string(&mut content, message);
    content.push_str("}]");
    ToolOutcome { content, structured: None, is_error: true, meta }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Revision;

    #[test]
    fn invalid_arguments_are_a_result_for_clients_of_this_library_in_every_revision() {
        let method = MethodName::Standard(Method::CallTool);
        for revision in Revision::ALL {
            let fault = Fault::new(FaultKind::InvalidArguments, "argument 'a'");
            match lower(Wire::for_revision(revision), Some(&method), fault) {
                Lowered::Tool(outcome) => {
                    assert!(outcome.is_error && revision >= Revision::V2025_11_25);
                }
                Lowered::Error(error) => {
                    assert!(error.code == -32602 && revision < Revision::V2025_11_25);
                    let result = lift_invalid_arguments(&error).unwrap();
                    let text = r#"[{"type":"text","text":"argument 'a'"}]"#;
                    assert_eq!(result.get(), format!(r#"{{"content":{text},"isError":true}}"#));
                }
            }
        }
        // Those of a prompt are an error.
        let fault = Fault::new(FaultKind::InvalidArguments, "");
        let Lowered::Error(error) = lower(Wire::for_revision(Revision::V2025_06_18), None, fault)
        else {
            panic!("a result");
        };
        assert!(error.data.is_none());
        for data in [None, Some("{}"), Some("1"), Some(r#"{"gudgeon/invalidArguments":false}"#)] {
            let data = data.map(|text| json::raw(text.into()));
            let error = ErrorObject { data, ..ErrorObject::new(-32602, "") };
            assert!(lift_invalid_arguments(&error).is_none());
        }
    }

    #[test]
    fn http_statuses_of_modern_errors() {
        let rows = [
            (FaultKind::Unreadable, 400),
            (FaultKind::InvalidRequest, 400),
            (FaultKind::InvalidParams, 400),
            (FaultKind::ResourceNotFound, 400),
            (FaultKind::HeaderMismatch, 400),
            (FaultKind::MissingCapability, 400),
            (FaultKind::UnsupportedRevision, 400),
            (FaultKind::UnknownMethod, 404),
            (FaultKind::Internal, 500),
            (FaultKind::Protocol(-32000), 200),
            (FaultKind::Protocol(7), 200),
        ];
        for (kind, expected) in rows {
            let wire = Wire::for_revision(Revision::V2026_07_28);
            let Lowered::Error(error) = lower(wire, None, Fault::new(kind, "")) else {
                panic!("{kind:?} is not an error");
            };
            assert_eq!(status(error.code).as_u16(), expected, "{kind:?}");
        }
    }

    #[test]
    fn codes_that_the_specification_keeps_to_itself_are_not_sent() {
        // 2026-07-28, "Error Codes": of -32020 to -32099 only the defined ones, and never -32002 or -32042.
        let sent = |revision, chosen| {
            let fault = Fault::new(FaultKind::Protocol(chosen), "");
            match lower(Wire::for_revision(revision), None, fault) {
                Lowered::Error(error) => error.code,
                Lowered::Tool(_) => panic!("{chosen} is not an error"),
            }
        };
        for (chosen, modern) in [
            (-32002, -32602),
            (-32042, -32603),
            (-32023, -32603),
            (-32099, -32603),
            (-32020, -32020),
            (-32022, -32022),
            (-32100, -32100),
            (-32019, -32019),
            (-31000, -31000),
        ] {
            assert_eq!(sent(Revision::V2026_07_28, chosen), modern);
            assert_eq!(sent(Revision::V2025_11_25, chosen), chosen);
        }
    }
}
