//! The data types of messages in the newest vocabulary, revision-neutral and without logic.

mod base;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod canonical;
#[cfg(not(feature = "bindings"))]
pub(crate) mod canonical;
mod capabilities;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod code;
mod client_key;
#[cfg(not(feature = "bindings"))]
pub(crate) mod code;
mod completion;
mod content;
mod dialect;
mod elicitation;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod exact;
#[cfg(not(feature = "bindings"))]
pub(crate) mod exact;
mod flow;
pub(crate) mod file_uri;
mod implementation;
mod input;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod json;
#[cfg(not(feature = "bindings"))]
pub(crate) mod json;
mod jsonrpc;
mod lifecycle;
mod logging;
mod partial;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod meta;
#[cfg(not(feature = "bindings"))]
pub(crate) mod meta;
pub(crate) mod meta_key;
mod method;
mod own_capabilities;
mod page;
mod principal;
pub(crate) mod scope_hierarchy;
mod prompt;
mod request;
mod resource;
mod response;
mod revision;
mod roots;
mod sampling;
mod shares;
mod subscription;
mod task;
mod tool;
mod trace_context;
pub(crate) mod unknown;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod valid_json;
#[cfg(not(feature = "bindings"))]
pub(crate) mod valid_json;

pub use base::{Members, Role};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
    TaskElicitationCapability, TaskRequestsCapability, TaskSamplingCapability, TaskToolsCapability,
    TasksCapability,
};
pub(crate) use client_key::ClientKey;
pub use code::ErrorCode;
pub use completion::Completion;
pub use content::{
    Annotations, ContentBlock, EmbeddedResource, MediaContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use dialect::Dialect;
pub use elicitation::{
    ElicitAction, ElicitRequestFormParams, ElicitRequestParams, ElicitRequestUrlParams,
    ElicitResult,
};
pub use implementation::{Icon, Implementation};
pub use input::InputRequest;
pub(crate) use jsonrpc::BYTE_ORDER_MARK;
pub use jsonrpc::{Id, Raw};
pub use logging::LoggingLevel;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub use messages::*;
#[cfg(not(feature = "bindings"))]
pub(crate) use messages::*;
pub use method::MethodName;
pub use page::CacheScope;
pub use principal::Principal;
pub use prompt::{GetPromptResult, Prompt, PromptArgument, PromptMessage};
pub use request::CompletionTarget;
pub use resource::{
    BlobResourceContents, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    TextResourceContents,
};
pub use revision::Revision;
pub use roots::Root;
pub use sampling::{
    CreateMessageRequestParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode,
};
#[cfg(any(feature = "server", feature = "auth"))]
pub(crate) use shares::Shares;
pub(crate) use shares::is_within_share;
pub use task::{TaskMetadata, TaskSupport, ToolExecution};
pub use tool::{CallToolResult, Tool, ToolAnnotations};

/// The types of messages that only the core and the language bindings handle.
#[doc(hidden)]
pub mod messages {
    pub use super::base::{EmptyResult, NotificationParams, RequestParams, ResultType};
    pub use super::capabilities::{
        ListCapability, MissingRequiredClientCapabilityData, ResourcesCapability,
        ServerCapabilities,
    };
    pub use super::completion::{
        CompleteRequestParams, CompleteResult, CompletionArgument, CompletionContext,
        CompletionReference, PromptReference, ResourceTemplateReference,
    };
    pub use super::elicitation::{
        ElicitationCompleteNotificationParams, UrlElicitationRequiredData,
    };
    pub use super::flow::{CancelledNotificationParams, ProgressNotificationParams};
    pub use super::input::{InputRequiredResult, InputResponses, Question};
    pub use super::jsonrpc::{ErrorObject, Frame, MAX_BATCH, Malformed, Message, Params};
    pub use super::lifecycle::{
        DiscoverResult, InitializeRequestParams, InitializeResult, UnsupportedProtocolVersionData,
    };
    pub use super::logging::{LoggingMessageNotificationParams, SetLevelRequestParams};
    pub use super::meta::Meta;
    pub use super::method::{Method, MethodKind, Sender};
    pub use super::own_capabilities::OwnCapabilities;
    pub use super::page::PaginatedRequestParams;
    pub use super::partial::PartialMessage;
    pub use super::prompt::{GetPromptRequestParams, ListPromptsResult};
    pub use super::request::{CompleteRequest, InitializeRequest, Inputs, Request};
    pub use super::resource::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams,
        ResourceUpdatedNotificationParams, SubscribeRequestParams, UnsubscribeRequestParams,
    };
    pub use super::response::{
        CacheHint, Listing, Response, ServerDescription, Spellings, Structured, ToolOutcome,
    };
    pub use super::revision::Era;
    pub use super::roots::ListRootsResult;
    pub use super::subscription::{
        SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
        SubscriptionsListenRequestParams, SubscriptionsListenResult,
    };
    pub use super::task::{
        CancelTaskResult, CreateTaskResult, GetTaskPayloadResult, GetTaskResult, ListTasksResult,
        MODEL_IMMEDIATE_RESPONSE, RELATED_TASK, RelatedTaskMetadata, Task, TaskRequestParams,
        TaskStatus, TaskStatusNotificationParams,
    };
    pub use super::tool::{CallToolRequestParams, ListToolsResult};
    pub use super::trace_context::{TraceContext, TraceIds};
}
