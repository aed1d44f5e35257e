/** Gudgeon: the Model Context Protocol for TypeScript. */
export { Client } from "./client.js";
export { ClientGroup } from "./client-group.js";
export { assistant, audio, embed, file, image, other, resourceLink, text, toolOutcome, toolUse, user } from "./content.js";
export {
  AuthError,
  CallTimeout,
  Cancelled,
  ConnectFailed,
  ConnectionLost,
  Declined,
  type ErrorKind,
  McpError,
  NotSupported,
  ProtocolError,
  ResourceNotFound,
  ToolError,
  UrlElicitationRequired,
} from "./errors.js";
export { currentContext } from "./current.js";
export { FastMCP, McpServer } from "./foreign.js";
export { middleware } from "./middleware.js";
export { ask, cancelled, declined } from "./questions.js";
export { PromptResult, ResourceResult, ToolResult } from "./results.js";
export { jsonSchema } from "./schema.js";
export { Server } from "./server.js";
export type {
  Annotations, AnyServer, Audio, AudioContent, CallOptions, Change, ClientOptions, Command, Completion, Content, Context, ElicitRequest,
  EmbeddedResource, HttpOptions, Icon, Image, ImageContent, Implementation, Input, InputRequired, Json, JsonSchema, Listening, LogLevel,
  Message, Meta, Middleware, Other, Outcome, Output, Page, Principal, Progress, Prompt, PromptOptions, Question, Registry,
  Resource, ResourceContents, ResourceLink, ResourceOptions, ResourceTemplate, Revision, Root, SampleOptions, SampleRequest,
  SampleResult, Schema, SchemaLike, ServerOptions, Subscription, Target, Text, TextContent, Tool, ToolAnnotations, ToolOptions, ToolOutcome,
  ToolUse, Transport, TypedJsonSchema, Variables,
} from "./types.js";
