//! Parsing of requests into the neutral model: the members that a method reads, checked for shape.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Wire, dialect_0_7};
use crate::{
    error::Fault,
    protocol::{
        CompleteRequest, CompletionTarget, Dialect, InitializeRequest, Inputs, Method, MethodName,
        Params, Request, json,
    },
};

/// Lifts a client's request; unknown methods become vendor requests.
pub fn request(wire: &Wire, name: &str, params: &Params<'_>) -> Result<Request, Fault> {
    let Some(method) = wire.method(name) else {
        check_shape(params)?;
        return Ok(Request::Other {
            method: MethodName::Vendor(name.into()),
            params: params.without_meta(),
        });
    };
    if !wire.client_requests.contains(&method) {
        return Err(Fault::unknown_method(name));
    }
    check_shape(params)?;
    if wire.dialect == Some(Dialect::V0_7) {
        return dialect_0_7::lift(name, method, params);
    }
    let cursor = || optional::<String>(params, "cursor", "a string");
    let inputs = || match wire.input_requests.is_empty() {
        true => Ok(Inputs::default()),
        false => inputs(params),
    };
    Ok(match method {
        Method::Initialize => Request::Initialize(InitializeRequest {
            protocol_version: text(params, "protocolVersion")?,
            capabilities: object(params, "capabilities")?.map(ToOwned::to_owned),
            client_info: object(params, "clientInfo")?.map(ToOwned::to_owned),
        }),
        Method::Ping => Request::Ping,
        Method::Discover => Request::Discover,
        Method::ListTools => Request::ListTools { cursor: cursor()? },
        Method::ListResources => Request::ListResources { cursor: cursor()? },
        Method::ListResourceTemplates => Request::ListResourceTemplates { cursor: cursor()? },
        Method::ListPrompts => Request::ListPrompts { cursor: cursor()? },
        Method::CallTool => Request::CallTool {
            name: text(params, "name")?,
            arguments: object(params, "arguments")?.map(ToOwned::to_owned),
            inputs: inputs()?,
        },
        Method::ReadResource => {
            let uri = text(params, "uri")?;
            Request::ReadResource { uri, variables: None, inputs: inputs()? }
        }
        Method::GetPrompt => Request::GetPrompt {
            name: text(params, "name")?,
            arguments: texts(params.get("arguments"), "params.arguments")?,
            inputs: inputs()?,
        },
        Method::Complete => Request::Complete(complete(params)?),
        Method::SetLevel => Request::SetLevel { level: required(params, "level", "a log level")? },
        Method::Subscribe => Request::Subscribe { uri: text(params, "uri")? },
        Method::Unsubscribe => Request::Unsubscribe { uri: text(params, "uri")? },
        Method::Listen => {
            Request::Listen { notifications: required(params, "notifications", "a filter")? }
        }
        _ => Request::Other { method: method.into(), params: params.without_meta() },
    })
}

fn check_shape(params: &Params<'_>) -> Result<(), Fault> {
    match params {
        Params::Absent | Params::Object(_) => Ok(()),
        Params::Other => Err(Fault::invalid_params("params must be an object")),
    }
}

pub(super) fn required<T: DeserializeOwned>(
    params: &Params<'_>,
    name: &str,
    what: &str,
) -> Result<T, Fault> {
    optional(params, name, what)?
        .ok_or_else(|| Fault::invalid_params(format!("params.{name} is missing: expected {what}")))
}

fn text(params: &Params<'_>, name: &str) -> Result<String, Fault> {
    match optional_text(params, name)? {
        Some(text) => Ok(text),
        None => required(params, name, "a string"),
    }
}

fn optional_text(params: &Params<'_>, name: &str) -> Result<Option<String>, Fault> {
    match params.get(name).and_then(json::plain_text) {
        Some(text) => Ok(Some(text.to_owned())),
        None => optional(params, name, "a string"),
    }
}

fn optional<T: DeserializeOwned>(
    params: &Params<'_>,
    name: &str,
    what: &str,
) -> Result<Option<T>, Fault> {
    match params.get(name).map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some(raw) => serde_json::from_str(raw)
            .map(Some)
            .map_err(|_| Fault::invalid_params(format!("params.{name} must be {what}"))),
    }
}

pub(super) fn object<'a>(params: &Params<'a>, name: &str) -> Result<Option<&'a RawValue>, Fault> {
    match params.get(name) {
        None => Ok(None),
        Some(raw) if raw.get() == "null" => Ok(None),
        Some(raw) if raw.get().starts_with('{') => Ok(Some(raw)),
        Some(_) => Err(Fault::invalid_params(format!("params.{name} must be an object"))),
    }
}

fn inputs(params: &Params<'_>) -> Result<Inputs, Fault> {
    Ok(Inputs {
        responses: object(params, "inputResponses")?.map(ToOwned::to_owned),
        state: optional_text(params, "requestState")?,
    })
}

/// Reads an object whose values are strings, in order.
fn texts(raw: Option<&RawValue>, place: &str) -> Result<Vec<(String, String)>, Fault> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(raw.get())
        .map_err(|_| Fault::invalid_params(format!("{place} must be an object")))?;
    map.into_iter()
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => Ok((name, text)),
            _ => Err(Fault::invalid_params(format!("{place}.{name} must be a string"))),
        })
        .collect()
}

/// Like [`texts`]; other values are converted to their JSON text.
pub(super) fn loose_texts(
    raw: Option<&RawValue>,
    place: &str,
) -> Result<Vec<(String, String)>, Fault> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(raw.get())
        .map_err(|_| Fault::invalid_params(format!("{place} must be an object")))?;
    let text = |value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(map.into_iter().map(|(name, value)| (name, text(value))).collect())
}

fn complete(params: &Params<'_>) -> Result<CompleteRequest, Fault> {
    #[derive(serde::Deserialize)]
    struct Reference {
        r#type: String,
        name: Option<String>,
        uri: Option<String>,
    }
    #[derive(serde::Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    #[derive(serde::Deserialize)]
    struct Context<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let reference: Reference = required(params, "ref", "a prompt's or a resource's reference")?;
    let target = match (reference.r#type.as_str(), reference.name, reference.uri) {
        ("ref/prompt", Some(name), _) => CompletionTarget::Prompt(name),
        ("ref/resource", _, Some(uri)) => CompletionTarget::Resource(uri),
        _ => {
            return Err(Fault::invalid_params(
                r#"params.ref must be {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": …}"#,
            ));
        }
    };
    let argument: Argument = required(params, "argument", "an object with name and value")?;
    let given = match params.get("context") {
        None => Vec::new(),
        Some(raw) => {
            let context: Context<'_> = serde_json::from_str(raw.get())
                .map_err(|_| Fault::invalid_params("params.context must be an object"))?;
            texts(context.arguments, "params.context.arguments")?
        }
    };
    Ok(CompleteRequest { target, argument: argument.name, value: argument.value, given })
}
