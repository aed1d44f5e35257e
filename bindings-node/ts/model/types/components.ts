import type { Annotations, Icon, Meta, ToolAnnotations } from "./content.js";
import type { JsonSchema } from "./schema.js";

/** The revisions of the specification, oldest first. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28";
/** Log levels of RFC 5424, least severe first. Spec: Server Features › Utilities › Logging. */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Maybe<T> = T | Promise<T>;

/** The name and version of a client or server. */
export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly websiteUrl?: string | undefined;
  readonly icons?: readonly Icon[] | undefined;
}

interface Component {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly icons?: readonly Icon[] | undefined;
  readonly meta?: Meta | undefined;
}

/** A tool as listed to clients. Spec: Server Features › Tools › Tool. */
export interface Tool extends Component {
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema | undefined;
  readonly annotations?: ToolAnnotations | undefined;
}

/** A resource as listed to clients. Spec: Server Features › Resources › Resource. */
export interface Resource extends Component {
  readonly uri: string;
  readonly mimeType?: string | undefined;
  /** The size in bytes. */
  readonly size?: number | undefined;
  readonly annotations?: Annotations | undefined;
}

/** A resource template as listed to clients. Spec: Server Features › Resources › Resource templates. */
export interface ResourceTemplate extends Component {
  /** A URI template (RFC 6570). */
  readonly uriTemplate: string;
  readonly mimeType?: string | undefined;
  readonly annotations?: Annotations | undefined;
}

/** A prompt as listed to clients. Spec: Server Features › Prompts › Prompt. */
export interface Prompt extends Component {
  readonly arguments: readonly { name: string; description?: string | undefined; required: boolean }[];
}

/** Suggestions for an argument's value, the best first. */
export interface Completion {
  readonly values: readonly string[];
  /** The number of all suggestions. */
  readonly total?: number | undefined;
  readonly hasMore?: boolean | undefined;
}

/** One page of a list. The last page has no `nextCursor`. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | undefined;
}

/** A folder that the client shares with the server; `uri` begins with `file://`. */
export interface Root {
  uri: string;
  name?: string | undefined;
}
