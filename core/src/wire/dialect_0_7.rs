//! Dialect 0.7: the protocol description with semantic versions 0.1.0 to 0.7.0, with its own names, results and codes.

mod client;
mod faults;
mod results;
mod version;

use self::version::is_semantic;
pub use self::{
    client::{initialize_params, lift_error, lift_result, read_initialize},
    results::introduction,
};
pub(super) use self::{faults::lower as fault, results::lower as result};
use super::{Codes, StructuredContent, Vocabulary, Wire, lift, rev_2024_11_05 as nearest};
use crate::{
    error::Fault,
    protocol::{
        Dialect, InitializeRequest, Inputs, Method, Method::*, Params, Request, Revision, code,
    },
};

/// The resource list of a client also contains the templates.
const WORDS: &[(&str, Method)] = &[
    ("list_tools", ListTools),
    ("list_resources", ListResources),
    ("list_prompts", ListPrompts),
    ("read_resource", ReadResource),
    ("call_tool", CallTool),
    ("render_prompt", GetPrompt),
    ("list_resources", ListResourceTemplates),
];

pub(super) static WIRE: Wire = Wire {
    revision: Revision::V2024_11_05,
    dialect: Some(Dialect::V0_7),
    words: WORDS,
    client_requests: &[
        Initialize,
        Ping,
        ListTools,
        ListResources,
        ListResourceTemplates,
        ListPrompts,
        ReadResource,
        CallTool,
        GetPrompt,
    ],
    client_notifications: &[],
    server_requests: &[],
    server_notifications: &[],
    input_requests: &[],
    // Content of any type is passed through.
    vocabulary: Vocabulary {
        batches: false,
        audio: true,
        resource_links: true,
        structured_content: StructuredContent::Any,
        ..nearest::VOCABULARY
    },
    codes: Codes { resource_not_found: code::DIALECT_RESOURCE_NOT_FOUND, ..nearest::CODES },
};

/// Returns `true` if a request is valid only in this dialect.
pub fn is_own(name: &str, params: &Params<'_>) -> bool {
    match name {
        "initialize" => match params.get("protocolVersion") {
            None => !matches!(params, Params::Other),
            Some(version) => is_semantic(version.get()),
        },
        _ => WORDS.iter().any(|(word, _)| *word == name),
    }
}

/// Returns `true` if a request without other evidence may be in this dialect, which shares these method names.
pub(super) fn may_be_own(name: &str) -> bool {
    matches!(Method::parse(name), Some(ListTools | ListResources | ListPrompts | Ping))
}

/// Parses a request; vendor methods are passed through.
pub(super) fn lift(name: &str, method: Method, params: &Params<'_>) -> Result<Request, Fault> {
    Ok(match method {
        Initialize => Request::Initialize(InitializeRequest {
            protocol_version: version::agree(params)?,
            capabilities: lift::object(params, "capabilities")?.map(ToOwned::to_owned),
            client_info: lift::object(params, "clientInfo")?.map(ToOwned::to_owned),
        }),
        Ping => Request::Ping,
        ListTools | ListPrompts => Request::ListWhole { list: method },
        ListResources | ListResourceTemplates => Request::ListWhole { list: ListResources },
        CallTool => Request::CallTool {
            name: lift::required(params, "name", "a string")?,
            arguments: lift::object(params, "arguments")?.map(ToOwned::to_owned),
            inputs: Inputs::default(),
        },
        ReadResource => Request::ReadResource {
            uri: lift::required(params, "uri", "a string")?,
            variables: Some(
                lift::object(params, "arguments")?
                    .map_or_else(|| crate::protocol::json::raw("{}".into()), ToOwned::to_owned),
            ),
            inputs: Inputs::default(),
        },
        GetPrompt => Request::GetPrompt {
            name: lift::required(params, "name", "a string")?,
            arguments: lift::loose_texts(params.get("arguments"), "params.arguments")?,
            inputs: Inputs::default(),
        },
        _ => return Err(Fault::unknown_method(name)),
    })
}
