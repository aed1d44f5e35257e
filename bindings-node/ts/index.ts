/** Gudgeon: the Model Context Protocol for TypeScript. */
export { Client } from "./client.js";
export { ClientGroup } from "./client-group.js";
export { assistant, audio, embed, file, image, other, resourceLink, text, toolOutcome, toolUse, user } from "./model/content.js";
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
} from "./model/errors.js";
export { currentContext } from "./call/current.js";
export { FastMCP, McpServer } from "./model/other-sdks.js";
export { middleware } from "./server/middleware.js";
export { ask, cancelled, declined } from "./model/questions.js";
export { PromptResult, ResourceResult, ToolResult } from "./model/results.js";
export { jsonSchema } from "./schema/compile.js";
export { Server } from "./server.js";
export type {
  Annotations, AnyServer, Audio, AudioContent, CallOptions, Change, ClientOptions, Command, Completion, Content, Context, ElicitRequest,
  EmbeddedResource, HttpOptions, Icon, Image, ImageContent, Implementation, Input, InputRequired, Json, JsonSchema, Listening, LogLevel,
  Message, Meta, Middleware, Other, Outcome, Output, Page, Principal, Progress, Prompt, PromptOptions, Question, Registry,
  Resource, ResourceContents, ResourceLink, ResourceOptions, ResourceTemplate, Revision, Root, SampleOptions, SampleRequest,
  SampleResult, Schema, SchemaLike, ServerOptions, Subscription, Target, Text, TextContent, Tool, ToolAnnotations, ToolOptions, ToolOutcome,
  ToolUse, Transport, TypedJsonSchema, Variables,
} from "./model/types.js";
