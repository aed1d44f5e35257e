import type { Annotations, Icon, Meta, ToolAnnotations } from "./content.js";
import type { JsonSchema } from "./schema.js";

/** The revisions of the specification, oldest first. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28";
/** From chatty to grave (RFC 5424). Spec: Server Features › Utilities › Logging. */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** What JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Maybe<T> = T | Promise<T>;

/** A program that speaks MCP. */
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

/** A tool as clients see it. Spec: Server Features › Tools › Tool. */
export interface Tool extends Component {
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema | undefined;
  readonly annotations?: ToolAnnotations | undefined;
}

/** A resource as clients see it; `size` in bytes. Spec: Server Features › Resources › Resource. */
export interface Resource extends Component {
  readonly uri: string;
  readonly mimeType?: string | undefined;
  /** Bytes. */
  readonly size?: number | undefined;
  readonly annotations?: Annotations | undefined;
}

/** A template of resources as clients see it. Spec: Server Features › Resources › Resource templates. */
export interface ResourceTemplate extends Component {
  /** RFC 6570. */
  readonly uriTemplate: string;
  readonly mimeType?: string | undefined;
  readonly annotations?: Annotations | undefined;
}

/** A prompt as clients see it. Spec: Server Features › Prompts › Prompt. */
export interface Prompt extends Component {
  readonly arguments: readonly { name: string; description?: string | undefined; required: boolean }[];
}

/** Suggestions for an argument's value, best first. */
export interface Completion {
  readonly values: readonly string[];
  /** How many there are in all. */
  readonly total?: number | undefined;
  readonly hasMore?: boolean | undefined;
}

/** One page of a list; without `nextCursor` it is the last. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | undefined;
}

/** A folder that the client lets the server know of; `uri` begins with `file://`. */
export interface Root {
  uri: string;
  name?: string | undefined;
}
