//! Requests in a revision-neutral form: for each method the params that the server uses.

use super::{Method, MethodName, Raw};

/// A request lifted from its wire form.
#[derive(Clone, Debug)]
pub enum Request {
    Initialize(InitializeRequest),
    Ping,
    Discover,
    ListTools {
        cursor: Option<String>,
    },
    ListResources {
        cursor: Option<String>,
    },
    ListResourceTemplates {
        cursor: Option<String>,
    },
    ListPrompts {
        cursor: Option<String>,
    },
    /// Lists all tools, all prompts, or all resources together with their templates, without pages. `list` is the
    /// method that lists them.
    ListWhole {
        list: Method,
    },
    CallTool {
        name: String,
        arguments: Option<Raw>,
        inputs: Inputs,
    },
    ReadResource {
        uri: String,
        /// Values of template variables as a JSON object; with them, `uri` may be a URI template.
        variables: Option<Raw>,
        inputs: Inputs,
    },
    GetPrompt {
        name: String,
        arguments: Vec<(String, String)>,
        inputs: Inputs,
    },
    Complete(CompleteRequest),
    SetLevel {
        level: super::LoggingLevel,
    },
    Subscribe {
        uri: String,
    },
    Unsubscribe {
        uri: String,
    },
    Listen {
        notifications: super::SubscriptionFilter,
    },
    /// A request about a task, or a vendor's method; the params are as received, without `_meta`.
    Other {
        method: MethodName,
        params: Raw,
    },
}

impl Request {
    /// Returns the input responses of the methods whose results can contain questions (Multi Round-Trip Requests,
    /// "Supported Requests").
    pub fn inputs(&self) -> Option<&Inputs> {
        match self {
            Self::CallTool { inputs, .. }
            | Self::ReadResource { inputs, .. }
            | Self::GetPrompt { inputs, .. } => Some(inputs),
            _ => None,
        }
    }
}

/// The version, capabilities and identity of a legacy client.
#[derive(Clone, Debug)]
pub struct InitializeRequest {
    pub protocol_version: String,
    pub capabilities: Option<Raw>,
    pub client_info: Option<Raw>,
}

/// The answers of a modern client that repeats a request, and the `requestState` that belongs to them.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub responses: Option<Raw>,
    pub state: Option<String>,
}

/// A completion request.
#[derive(Clone, Debug)]
pub struct CompleteRequest {
    pub target: CompletionTarget,
    pub argument: String,
    pub value: String,
    /// The values of the arguments that are already filled in.
    pub given: Vec<(String, String)>,
}

/// The prompt or resource whose argument is to be completed.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum CompletionTarget {
    Prompt(String),
    /// The URI or URI template of a resource.
    Resource(String),
}

impl CompletionTarget {
    /// Interprets a string: a URI or URI template is a resource, any other string is a prompt's name.
    #[doc(hidden)] // For the language bindings and the tests.
    pub fn named(target: String) -> Self {
        match target.contains("://") || target.contains('{') {
            true => Self::Resource(target),
            false => Self::Prompt(target),
        }
    }
}

impl Request {
    pub fn method(&self) -> MethodName {
        MethodName::Standard(match self {
            Self::Initialize(_) => Method::Initialize,
            Self::Ping => Method::Ping,
            Self::Discover => Method::Discover,
            Self::ListTools { .. } => Method::ListTools,
            Self::ListResources { .. } => Method::ListResources,
            Self::ListResourceTemplates { .. } => Method::ListResourceTemplates,
            Self::ListPrompts { .. } => Method::ListPrompts,
            Self::ListWhole { list } => *list,
            Self::CallTool { .. } => Method::CallTool,
            Self::ReadResource { .. } => Method::ReadResource,
            Self::GetPrompt { .. } => Method::GetPrompt,
            Self::Complete(_) => Method::Complete,
            Self::SetLevel { .. } => Method::SetLevel,
            Self::Subscribe { .. } => Method::Subscribe,
            Self::Unsubscribe { .. } => Method::Unsubscribe,
            Self::Listen { .. } => Method::Listen,
            Self::Other { method, .. } => return method.clone(),
        })
    }
}
