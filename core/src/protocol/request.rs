//! What a client asks, revision-neutral: each request with just what its method reads.

use super::{Method, MethodName, Raw};

/// A request, lifted from the wire.
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
    /// Tools, prompts, or resources with their templates, by the method that lists them: all at once.
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
        /// For what the URI leaves open; with these it may be a template itself: a JSON object.
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
    /// A method of a task, or of a vendor: its params as they came, without `_meta`.
    Other {
        method: MethodName,
        params: Raw,
    },
}

impl Request {
    /// What came with a request whose results may be questions (Multi Round-Trip Requests, "Supported Requests").
    pub fn inputs(&self) -> Option<&Inputs> {
        match self {
            Self::CallTool { inputs, .. }
            | Self::ReadResource { inputs, .. }
            | Self::GetPrompt { inputs, .. } => Some(inputs),
            _ => None,
        }
    }
}

/// How a legacy client introduces itself.
#[derive(Clone, Debug)]
pub struct InitializeRequest {
    pub protocol_version: String,
    pub capabilities: Option<Raw>,
    pub client_info: Option<Raw>,
}

/// What a modern client sends again after it was asked: its answers and the state that goes with them.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub responses: Option<Raw>,
    pub state: Option<String>,
}

/// What is to be completed.
#[derive(Clone, Debug)]
pub struct CompleteRequest {
    pub target: CompletionTarget,
    pub argument: String,
    pub value: String,
    /// Arguments given so far.
    pub given: Vec<(String, String)>,
}

/// Whose argument is to be completed.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum CompletionTarget {
    Prompt(String),
    /// A resource's URI or URI template.
    Resource(String),
}

impl CompletionTarget {
    /// What users mean by one text: a URI or a template, or else a prompt's name.
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
