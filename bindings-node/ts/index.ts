/** Gudgeon: the Model Context Protocol for TypeScript. */
export {
  assistant, audio, embed, file, image, other, resourceLink, text, toolOutcome, toolUse, user,
} from "./model/content.js";
export {
  AuthError, CallTimeout, Cancelled, ConnectFailed, ConnectionLost, Declined, type ErrorKind, McpError, NotSupported,
  ProtocolError, ResourceNotFound, ToolError, UrlElicitationRequired,
} from "./model/errors.js";
export { cancelled, declined } from "./model/questions.js";
export { PromptResult, ResourceResult, ToolResult } from "./model/results.js";
export { FastMCP, McpServer } from "./model/sdk-names.js";
export type {
  CallOptions, Change, ClientMiddleware, ClientOptions, ClientRequest, Command, ElicitRequest, InputRequired, Progress, RequestOptions, SampleRequest, SubscribeOptions, Subscription, Target, Upstream, UpstreamOptions, UpstreamTarget,
} from "./model/types/client.js";
export type {
  Completion, Implementation, Json, LogLevel, Page, Prompt, Resource, ResourceTemplate, Revision, Root, Tool,
} from "./model/types/components.js";
export type {
  Annotations, Audio, AudioContent, Content, EmbeddedResource, Icon, Image, ImageContent, Message, Meta, Other,
  ResourceContents, ResourceLink, Text, TextContent, ToolAnnotations, ToolOutcome, ToolUse,
} from "./model/types/content.js";
export type { Context, Middleware } from "./model/types/context.js";
export type { Logger } from "./model/types/logging.js";
export type { HttpOptions, PromptOptions, ResourceOptions, ServerOptions, ToolOptions } from "./model/types/options.js";
export type { Outcome, Question, SampledMessages, SampleOptions, SampleResult, SpecContent, SpecMessage, SpecSampleRequest } from "./model/types/questions.js";
export type { Input, JsonSchema, Output, Schema, SchemaLike, TypedJsonSchema, Variables } from "./model/types/schema.js";
export type { FastifyReply, FastifyRequest, FetchContext, NodeRequest } from "./model/types/hosts.js";
export type { AnyServer, FetchHandler, Listening, Principal, Registry, RouteCaller, RouteHandler, RouteMethod, RouteOptions, Transport } from "./model/types/server.js";
export type { Store, StoreMessage } from "./model/types/store.js";
export { ask } from "./schema/ask.js";
export { jsonSchema } from "./schema/compile.js";
export { currentContext } from "./call/current.js";
export { resolveInside } from "./call/paths.js";
export { middleware } from "./server/middleware.js";
export { upstream } from "./client/upstream.js";
export { Client } from "./client.js";
export { ClientGroup } from "./client-group.js";
export { Server } from "./server.js";

