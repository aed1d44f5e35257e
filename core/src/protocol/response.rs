//! What a server answers, revision-neutral.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde_json::value::RawValue;

use super::{
    Implementation, Prompt, Question, Raw, Resource, ResourceTemplate, Revision,
    ServerCapabilities, Tool, json,
};

/// The answer to a request, not yet spelled for any revision.
#[derive(Clone, Debug)]
pub enum Response {
    Empty,
    /// To `initialize` and to `server/discover`.
    Description(Arc<ServerDescription>),
    Tools(Listing<Tool>),
    Resources(Listing<Resource>),
    ResourceTemplates(Listing<ResourceTemplate>),
    /// All of both, in one list.
    AllResources {
        resources: Vec<Arc<Resource>>,
        templates: Vec<Arc<ResourceTemplate>>,
    },
    Prompts(Listing<Prompt>),
    Tool(ToolOutcome),
    /// A resource's `contents` array.
    Contents {
        contents: String,
        meta: Option<Raw>,
        cache: CacheHint,
    },
    /// A prompt's `messages` array.
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
    /// The end of a subscription, which `_meta` names.
    Ended {
        meta: Raw,
    },
    /// What the client must answer before it sends the request again, with the state that it then brings back.
    InputRequired {
        requests: Vec<Question>,
        state: Option<String>,
    },
    /// A whole result object, for methods that only its sender and its handler know.
    Raw(Raw),
}

impl Response {
    /// Its own `_meta`, as its handler gave it.
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
        meta.map(|it| Cow::Borrowed(&**it))
    }
}

impl<T> Listing<T> {
    /// Everything there is, as one page that nobody need keep.
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

/// Who the server is and what it can do.
#[derive(Clone, Debug)]
pub struct ServerDescription {
    pub info: Implementation,
    pub capabilities: ServerCapabilities,
    pub instructions: Option<String>,
    /// Newest first.
    pub revisions: Vec<Revision>,
    pub cache: CacheHint,
    pub meta: Option<Raw>,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    pub items: Arc<[Arc<T>]>,
    /// The items as text, where that was made before.
    pub spellings: Arc<Spellings>,
    pub next_cursor: Option<String>,
    pub cache: CacheHint,
    pub meta: Option<Raw>,
}

/// One list's items as JSON text, by revision: made when first asked for, then shared.
#[derive(Debug, Default)]
pub struct Spellings([OnceLock<Box<str>>; Revision::ALL.len()]);

/// How long, and by whom, a result may be kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CacheHint {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// It holds something of one user's.
    pub private: bool,
}

/// What a tool answered.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome {
    /// The `content` array as JSON.
    pub content: String,
    pub structured: Option<Structured>,
    pub is_error: bool,
    pub meta: Option<Raw>,
}

/// A tool's structured value, and what its output schema promises.
#[derive(Clone, Debug)]
pub struct Structured {
    /// The value as JSON.
    pub json: String,
    /// `Some(true)`: the schema describes an object; `Some(false)`: something else; `None`: there is no schema.
    pub schema_is_object: Option<bool>,
}
