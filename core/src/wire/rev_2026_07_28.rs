//! 2026-07-28: stateless; an envelope in every request, a type in every result, and questions inside results.

use super::{Codes, StructuredContent, Vocabulary, Wire, rev_2025_11_25 as before};
use crate::protocol::{Method, Method::*, Revision, code};

const CLIENT_REQUESTS: &[Method] = &[
    Discover,
    ListResources,
    ListResourceTemplates,
    ReadResource,
    Listen,
    ListPrompts,
    GetPrompt,
    ListTools,
    CallTool,
    Complete,
];
const CLIENT_NOTIFICATIONS: &[Method] = &[Cancelled];
const SERVER_NOTIFICATIONS: &[Method] = &[
    Cancelled,
    Progress,
    ResourceListChanged,
    SubscriptionsAcknowledged,
    ResourceUpdated,
    PromptListChanged,
    ToolListChanged,
    LogMessage,
];
const INPUT_REQUESTS: &[Method] = &[CreateMessage, ListRoots, Elicit];

pub(super) static WIRE: Wire = Wire {
    revision: Revision::V2026_07_28,
    dialect: None,
    words: &[],
    client_requests: CLIENT_REQUESTS,
    client_notifications: CLIENT_NOTIFICATIONS,
    server_requests: &[],
    server_notifications: SERVER_NOTIFICATIONS,
    input_requests: INPUT_REQUESTS,
    vocabulary: Vocabulary {
        structured_content: StructuredContent::Any,
        stamped_results: true,
        ..before::VOCABULARY
    },
    codes: Codes {
        resource_not_found: code::INVALID_PARAMS,
        invalid_arguments_are_results: true,
        missing_capability: true,
        keeps_reserved: true,
    },
};
