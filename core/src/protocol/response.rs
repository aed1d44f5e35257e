//! Responses of a server in a revision-neutral form.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde_json::value::RawValue;

use super::{
    Implementation, Prompt, Question, Raw, Resource, ResourceTemplate, Revision,
    ServerCapabilities, Tool, json,
};

/// A response that is not yet lowered to a revision's wire form.
#[derive(Clone, Debug)]
pub enum Response {
    Empty,
    /// The response to `initialize` and to `server/discover`.
    Description(Arc<ServerDescription>),
    Tools(Listing<Tool>),
    Resources(Listing<Resource>),
    ResourceTemplates(Listing<ResourceTemplate>),
    /// All resources and all resource templates in one list.
    AllResources {
        resources: Vec<Arc<Resource>>,
        templates: Vec<Arc<ResourceTemplate>>,
    },
    Prompts(Listing<Prompt>),
    Tool(ToolOutcome),
    /// A resource's contents; `contents` is a JSON array.
    Contents {
        contents: String,
        meta: Option<Raw>,
        cache: CacheHint,
    },
    /// A prompt's messages; `messages` is a JSON array.
    Messages {
        messages: String,
        description: Option<String>,
        meta: Option<Raw>,
    },
    Completion {
        values: Vec<String>,
        total: Option<u64>,
        has_more: bool,
        meta: Option<Raw>,
    },
    /// The end of a subscription; `meta` holds the subscription's id.
    Ended {
        meta: Raw,
    },
    /// Questions that the client must answer before it repeats the request; `state` is returned with the answers.
    InputRequired {
        requests: Vec<Question>,
        state: Option<String>,
    },
    /// A complete result object of a vendor's method.
    Raw(Raw),
}

impl Response {
    /// Returns the `_meta` that the handler gave to the response.
    pub fn meta(&self) -> Option<Cow<'_, RawValue>> {
        let meta = match self {
            Self::Description(it) => it.meta.as_ref(),
            Self::Tools(it) => it.meta.as_ref(),
            Self::Resources(it) => it.meta.as_ref(),
            Self::ResourceTemplates(it) => it.meta.as_ref(),
            Self::Prompts(it) => it.meta.as_ref(),
            Self::Tool(it) => it.meta.as_ref(),
            Self::Contents { meta, .. }
            | Self::Messages { meta, .. }
            | Self::Completion { meta, .. } => meta.as_ref(),
            Self::Ended { meta } => Some(meta),
            Self::Raw(raw) => return json::apart(raw.get(), "_meta").ok()?.1.map(Cow::Owned),
            Self::Empty | Self::AllResources { .. } | Self::InputRequired { .. } => None,
        };
        meta.map(|meta| Cow::Borrowed(&**meta))
    }
}

impl<T> Listing<T> {
    /// Creates a page with all items that clients should not cache.
    pub fn whole(items: impl IntoIterator<Item = Arc<T>>) -> Self {
        Self {
            items: items.into_iter().collect(),
            spellings: Arc::default(),
            next_cursor: None,
            cache: CacheHint::default(),
            meta: None,
        }
    }
}

impl Spellings {
    pub fn get_or_make(&self, revision: Revision, make: impl FnOnce() -> String) -> &str {
        self.0[revision as usize].get_or_init(|| make().into())
    }
}

/// The server's name, version, capabilities and instructions.
#[derive(Clone, Debug)]
pub struct ServerDescription {
    pub info: Implementation,
    pub capabilities: ServerCapabilities,
    pub instructions: Option<String>,
    /// The supported revisions, newest first.
    pub revisions: Vec<Revision>,
    pub cache: CacheHint,
    pub meta: Option<Raw>,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    pub items: Arc<[Arc<T>]>,
    /// The items as JSON text, if they were serialized before.
    pub spellings: Arc<Spellings>,
    pub next_cursor: Option<String>,
    pub cache: CacheHint,
    pub meta: Option<Raw>,
}

/// The items of a list as JSON text, one per revision; serialized at first use, then shared.
#[derive(Debug, Default)]
pub struct Spellings([OnceLock<Box<str>>; Revision::ALL.len()]);

/// The duration and the audience for which a result may be cached.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CacheHint {
    /// The duration in milliseconds.
    pub ttl_ms: u64,
    /// True if the result holds data of one user only.
    pub private: bool,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome {
    /// The `content` array as JSON text.
    pub content: String,
    pub structured: Option<Structured>,
    pub is_error: bool,
    pub meta: Option<Raw>,
}

/// The structured result of a tool, and the kind of its output schema.
#[derive(Clone, Debug)]
pub struct Structured {
    /// The value as JSON text.
    pub json: String,
    /// `Some(true)` if the output schema describes an object, `Some(false)` if it describes anything else, `None`
    /// without a schema.
    pub schema_is_object: Option<bool>,
}
