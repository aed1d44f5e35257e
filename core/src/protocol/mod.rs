//! The data types of messages in the newest vocabulary, revision-neutral and without logic.

mod base;
pub mod canonical;
mod capabilities;
pub mod code;
mod completion;
mod content;
mod dialect;
mod elicitation;
pub mod exact;
mod flow;
mod form;
mod implementation;
mod input;
pub mod json;
mod jsonrpc;
mod lifecycle;
mod logging;
pub mod meta;
mod method;
mod page;
mod principal;
mod prompt;
mod request;
mod resource;
mod response;
mod revision;
mod roots;
mod sampling;
mod subscription;
mod task;
mod tool;

pub use base::{EmptyResult, Members, NotificationParams, RequestParams, ResultType, Role};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListCapability, MissingRequiredClientCapabilityData,
    ResourcesCapability, RootsCapability, SamplingCapability, ServerCapabilities,
    TaskElicitationCapability, TaskRequestsCapability, TaskSamplingCapability, TaskToolsCapability,
    TasksCapability,
};
pub use completion::{
    CompleteRequestParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference, PromptReference, ResourceTemplateReference,
};
pub use content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent,
    ToolResultContent, ToolUseContent,
};
pub use dialect::Dialect;
pub use elicitation::{
    ElicitAction, ElicitRequestFormParams, ElicitRequestParams, ElicitRequestUrlParams,
    ElicitResult, ElicitationCompleteNotificationParams, UrlElicitationRequiredData,
};
pub use flow::{CancelledNotificationParams, ProgressNotificationParams};
pub use form::{
    BooleanSchema, Choice, Choices, FieldSchema, FormSchema, MultiSelectSchema, NumberSchema,
    SingleSelectSchema, StringSchema,
};
pub use implementation::{Icon, Implementation};
pub use input::{InputRequest, InputRequiredResult, InputResponses, Question};
pub use jsonrpc::{ErrorObject, Frame, Id, Malformed, Message, Params, Raw};
pub use lifecycle::{
    DiscoverResult, InitializeRequestParams, InitializeResult, UnsupportedProtocolVersionData,
};
pub use logging::{LoggingLevel, LoggingMessageNotificationParams, SetLevelRequestParams};
pub use meta::Meta;
pub use method::{Method, MethodKind, MethodName, Sender};
pub use page::{CacheScope, PaginatedRequestParams};
pub use principal::Principal;
pub use prompt::{
    GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage,
};
pub use request::{CompleteRequest, CompletionTarget, InitializeRequest, Inputs, Request};
pub use resource::{
    BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult,
    ReadResourceRequestParams, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParams, SubscribeRequestParams, TextResourceContents,
    UnsubscribeRequestParams,
};
pub use response::{
    CacheHint, Listing, Response, ServerDescription, Spellings, Structured, ToolOutcome,
};
pub use revision::{Era, Revision};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageRequestParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingMessage, ToolChoice, ToolChoiceMode,
};
pub use subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams, SubscriptionsListenResult,
};
pub use task::{
    CancelTaskResult, CreateTaskResult, GetTaskPayloadResult, GetTaskResult, ListTasksResult,
    MODEL_IMMEDIATE_RESPONSE, RELATED_TASK, RelatedTaskMetadata, Task, TaskMetadata,
    TaskRequestParams, TaskStatus, TaskStatusNotificationParams, TaskSupport, ToolExecution,
};
pub use tool::{CallToolRequestParams, CallToolResult, ListToolsResult, Tool, ToolAnnotations};
