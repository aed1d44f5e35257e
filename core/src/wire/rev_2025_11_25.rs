//! 2025-11-25: icons, tasks, URL elicitation; the last revision with a handshake.

use super::{Codes, Vocabulary, Wire, rev_2024_11_05, rev_2025_06_18 as before};
use crate::protocol::{Method, Method::*, Revision};

const CLIENT_REQUESTS: &[Method] = &[
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
    GetTask,
    GetTaskResult,
    CancelTask,
    ListTasks,
    SetLevel,
    Complete,
];
const CLIENT_NOTIFICATIONS: &[Method] =
    &[Cancelled, Initialized, Progress, TaskStatus, RootsListChanged];
const SERVER_REQUESTS: &[Method] =
    &[Ping, GetTask, GetTaskResult, CancelTask, ListTasks, CreateMessage, ListRoots, Elicit];
const SERVER_NOTIFICATIONS: &[Method] = &[
    Cancelled,
    Progress,
    ResourceListChanged,
    ResourceUpdated,
    PromptListChanged,
    ToolListChanged,
    TaskStatus,
    LogMessage,
    ElicitationComplete,
];

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    icons: true,
    rich_forms: true,
    sampled_lists: true,
    absent_error_id: true,
    primed_streams: true,
    ..before::VOCABULARY
};

pub(super) static WIRE: Wire = Wire {
    revision: Revision::V2025_11_25,
    dialect: None,
    words: &[],
    client_requests: CLIENT_REQUESTS,
    client_notifications: CLIENT_NOTIFICATIONS,
    server_requests: SERVER_REQUESTS,
    server_notifications: SERVER_NOTIFICATIONS,
    input_requests: &[],
    vocabulary: VOCABULARY,
    codes: Codes { invalid_arguments_are_results: true, ..rev_2024_11_05::CODES },
};
