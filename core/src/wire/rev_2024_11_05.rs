//! 2024-11-05: the first revision.

use super::{Codes, StructuredContent, Vocabulary, Wire};
use crate::protocol::{Method, Method::*, Revision, code};

pub(super) const CLIENT_REQUESTS: &[Method] = &[
    Initialize,
    Ping,
    ListResources,
    ListResourceTemplates,
    ReadResource,
    Subscribe,
    Unsubscribe,
    ListPrompts,
    GetPrompt,
    ListTools,
    CallTool,
    SetLevel,
    Complete,
];
pub(super) const CLIENT_NOTIFICATIONS: &[Method] =
    &[Cancelled, Initialized, Progress, RootsListChanged];
pub(super) const SERVER_REQUESTS: &[Method] = &[Ping, CreateMessage, ListRoots];
pub(super) const SERVER_NOTIFICATIONS: &[Method] = &[
    Cancelled,
    Progress,
    ResourceListChanged,
    ResourceUpdated,
    PromptListChanged,
    ToolListChanged,
    LogMessage,
];

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    batches: true,
    primed_streams: false,
    titles: false,
    icons: false,
    tool_annotations: false,
    structured_content: StructuredContent::Absent,
    audio: false,
    resource_links: false,
    completions_capability: false,
    progress_messages: false,
    stamped_results: false,
    rich_forms: false,
    sampled_lists: false,
    absent_error_id: false,
};

pub(super) const CODES: Codes = Codes {
    resource_not_found: code::RESOURCE_NOT_FOUND,
    invalid_arguments_are_results: false,
    missing_capability: false,
    keeps_reserved: false,
};

pub(super) static WIRE: Wire = Wire {
    revision: Revision::V2024_11_05,
    dialect: None,
    words: &[],
    client_requests: CLIENT_REQUESTS,
    client_notifications: CLIENT_NOTIFICATIONS,
    server_requests: SERVER_REQUESTS,
    server_notifications: SERVER_NOTIFICATIONS,
    input_requests: &[],
    vocabulary: VOCABULARY,
    codes: CODES,
};
