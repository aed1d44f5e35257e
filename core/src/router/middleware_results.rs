//! Results as the middleware of the language bindings sees and changes them, and the errors of middleware.

use serde_json::{Map, Value};

use super::{
    completion,
    handler::{Failure, Reply, bad_result},
    middleware::{self, Resolution},
    middleware_params::HandlerKind,
    prompt, resource, tool,
};
use crate::{
    error::Error,
    protocol::{CacheHint, Method, MethodName, Response, json::ObjectWriter},
    wire,
};

/// The member of a page that holds the entries of any list.
const ITEMS: &str = "items";

/// Writes a result of the router. `fixedParams` is `true` if the params can't be changed any more; an error describes
/// the params that the client sent, so it stays correct.
pub(super) fn write(input: &mut ObjectWriter, response: &Response) {
    let is_error = matches!(response, Response::Tool(it) if it.is_error);
    input.raw("result", &wire::plain_result(response)).member("fixedParams", &!is_error);
}

/// Writes the name of the type by which the bindings represent results of a method, or the entries of a list, and the
/// member of the result that holds them. Other results are plain objects.
pub(super) fn write_type(input: &mut ObjectWriter, method: &MethodName) {
    let MethodName::Standard(method) = method else { return };
    let (name, member) = match method {
        Method::ListTools => ("Tool", Some("tools")),
        Method::ListResources => ("Resource", Some("resources")),
        Method::ListResourceTemplates => ("ResourceTemplate", Some("resourceTemplates")),
        Method::ListPrompts => ("Prompt", Some("prompts")),
        Method::Complete => ("Completion", Some("completion")),
        Method::CallTool => ("ToolResult", None),
        _ => return,
    };
    input.member("type", name);
    if let Some(member) = member {
        input.member("member", member);
    }
}

/// Returns the complete result for what the bindings' middleware returned: the suggestions of a completion stand by
/// themselves. Errors if it is not an object.
pub(super) fn complete(method: &MethodName, result: String) -> Result<Reply, Failure> {
    let is_completion = *method == MethodName::Standard(Method::Complete);
    let found = match result.as_bytes().first() {
        Some(b'{') if is_completion && !is_whole(&result) => {
            return Ok(Reply::Result(format!(r#"{{"completion":{result}}}"#)));
        }
        Some(b'[') if is_completion => return Ok(Reply::Json(result)),
        Some(b'{') => return Ok(Reply::Result(result)),
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    };
    let method = method.as_str();
    Err(bad_result(format!(
        "middleware returned {found} for {method}; return the result of next(), or an object"
    )))
}

fn is_whole(completion: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(completion)
        .is_ok_and(|members| members.contains_key("completion"))
}

/// Takes the entries out of a list's result: its own member, or those of a page, which has the hint of the router's list.
pub(super) fn entries(
    result: &mut Map<String, Value>,
    name: &str,
    answer: Option<&Resolution>,
) -> Result<(Value, Option<CacheHint>), Failure> {
    if let Some(entries) = result.remove(name) {
        return Ok((entries, None));
    }
    let entries =
        result.remove(ITEMS).ok_or_else(|| bad_result(format!("the result has no {name:?}")))?;
    let cache = match answer {
        Some(Resolution::Answer(Ok(Response::Tools(it)))) => it.cache,
        Some(Resolution::Answer(Ok(Response::Resources(it)))) => it.cache,
        Some(Resolution::Answer(Ok(Response::ResourceTemplates(it)))) => it.cache,
        Some(Resolution::Answer(Ok(Response::Prompts(it)))) => it.cache,
        _ => CacheHint::default(),
    };
    Ok((entries, Some(cache)))
}

/// The error of middleware that changed the params of a request which runs no handler.
pub fn params_changed(method: &str) -> String {
    format!("middleware can't change the params of {method}, only its result")
}

/// The error of middleware that returned nothing in place of a result.
pub fn nothing_returned(method: &str) -> String {
    format!(
        "middleware returned nothing for {method}, although next() returned a result; return that result, or another \
         one"
    )
}

impl HandlerKind {
    /// Returns the kind of the handlers that answer a method.
    pub fn for_method(method: &str) -> Self {
        match Method::parse(method) {
            Some(Method::CallTool) => Self::Tool,
            Some(Method::ReadResource) => Self::Resource,
            Some(Method::GetPrompt) => Self::Prompt,
            Some(Method::Complete) => Self::Completion,
            _ => Self::Method,
        }
    }

    /// Returns the complete result of a handler's reply, as JSON. `uri` and `mime_type` are those of the resource.
    /// Errors if handlers of this kind can't reply so.
    pub fn result(self, uri: &str, mime_type: Option<&str>, reply: Reply) -> Result<String, Error> {
        let response = match self {
            Self::Tool => tool::outcome(None, reply).map(Response::Tool),
            Self::Resource => resource::contents(uri, mime_type, CacheHint::default(), reply),
            Self::Prompt => prompt::messages(reply),
            Self::Completion => completion::response(reply),
            Self::Method => middleware::plain(reply),
        };
        response.map(|response| wire::plain_result(&response)).map_err(|error| match error {
            Failure::Exception { message, .. } => Error::misuse(message),
            other => Error::misuse(format!("{other:?}")),
        })
    }
}
