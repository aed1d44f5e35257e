import type { Message, Meta } from "./content.js";
import type { SampleResult } from "./context.js";
import type { Implementation, LogLevel, Maybe, Revision, Root, Tool } from "./components.js";
import type { JsonSchema } from "./schema.js";
import type { AnyServer } from "./server.js";

/**
 * A wire of one's own: JSON-RPC messages as text, one at a time; `receive` gives undefined at the end.
 *
 * Spec: Base Protocol › Transports › Custom transports.
 */
export interface Transport {
  receive(): Promise<string | undefined>;
  send(message: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * A server to start as a child process and talk to over stdio: `env` beside this program's, `cwd` by default this
 * one's, `restart` (default: false) before the next call when it has ended. Spec: Transports › stdio.
 */
export interface Command {
  type?: "stdio" | undefined;
  command: string;
  args?: readonly string[] | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  cwd?: string | undefined;
  restart?: boolean | undefined;
}

/** A string must be a URL (http, https, ws, wss, tcp, unix); { url, headers } and { command, args } are entries of a host's configuration. */
export type Target =
  | AnyServer
  | Transport
  | string
  | URL
  | Command
  | { type?: string | undefined; url: string; headers?: Readonly<Record<string, string>> | undefined };

/** Options of clients. Times are milliseconds, sizes bytes. */
export interface ClientOptions {
  /** Default: `"auto"`, the newest that both sides speak. */
  revision?: "auto" | "0.7" | "bare" | Revision | readonly Revision[] | undefined;
  /** Check arguments against the tool's schema before sending. Default: false. */
  validate?: boolean | undefined;
  /** `"safe"` repeats reads, lists, and tools marked read-only or idempotent. Default: `"safe"`. */
  retry?: "safe" | "never" | { attempts?: number | undefined; deadlineMs?: number | undefined } | undefined;
  /** Milliseconds without an answer or progress, while nothing that the server asks is with a callback. Default: 60,000. */
  timeoutMs?: number | undefined;
  /** Milliseconds in all, however much progress is told. Default: no limit. */
  maxTimeoutMs?: number | undefined;
  /** Sent with every HTTP request and with a WebSocket's first, to the URL's own origin only; never logged. */
  headers?: Readonly<Record<string, string>> | undefined;
  clientInfo?: Implementation | undefined;
  /** `file:` URIs or paths. Before 2026-07-28 a client that gives none here has none for good. */
  roots?: readonly (string | Root)[] | (() => Maybe<readonly (string | Root)[]>) | undefined;
  /**
   * Gives the answers, `declined` or `cancelled`; for a form with one property, the bare value will do, and for one without,
   * true or false. What an answer leaves open gets its default.
   */
  onElicit?: ((request: ElicitRequest) => Maybe<unknown>) | undefined;
  /** With it the model may be given tools. */
  onSample?: ((request: SampleRequest) => Maybe<string | SampleResult>) | undefined;
  /** Is told the id of an `elicitUrl` whose page is done (2025-11-25). */
  onUrlDone?: ((elicitationId: string) => void) | undefined;
  onLog?: ((message: { level: LogLevel; logger: string | undefined; data: unknown }) => void) | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  onListChanged?: ((kind: "tools" | "resources" | "prompts") => void) | undefined;
  /**
   * Is told that what the server kept for this client is gone, and why: a command with `restart: true` was started again,
   * or a session over HTTP that the server had forgotten was begun anew. Subscriptions go on.
   */
  onReconnect?: ((info: { attempt: number; reason: Error }) => void) | undefined;
  /** How often one call may come back with questions. Default: 10. */
  maxRounds?: number | undefined;
  /** Bytes. Default: 16 MiB. */
  maxMessage?: number | undefined;
}

/** What a server asks the user, as `onElicit` gets it. Spec: Client Features › Elicitation. */
export interface ElicitRequest {
  readonly id: string | undefined;
  readonly mode: "form" | "url";
  readonly message: string;
  readonly schema: JsonSchema | undefined;
  readonly url: string | undefined;
  /** The server that asks, by its name in a `ClientGroup`: users must be told. */
  readonly server?: string | undefined;
}

/** What a server asks the client's model, as `onSample` gets it. Spec: Client Features › Sampling. */
export interface SampleRequest {
  readonly messages: readonly Message[];
  readonly maxTokens: number;
  readonly system: string | undefined;
  readonly temperature: number | undefined;
  readonly stop: readonly string[];
  readonly models: readonly string[];
  readonly costPriority: number | undefined;
  readonly speedPriority: number | undefined;
  readonly intelligencePriority: number | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice: "auto" | "required" | "none" | undefined;
  /** The server that asks, by its name in a `ClientGroup`. */
  readonly server?: string | undefined;
}

/** The server's questions; `state` goes back to it with the answers. */
export interface InputRequired {
  readonly questions: Readonly<
    Record<string, ({ kind: "elicit" } & ElicitRequest) | ({ kind: "sample" } & SampleRequest) | { kind: "roots" }>
  >;
  readonly state: string | undefined;
}

/** How far a call got. Spec: Base Protocol › Utilities › Progress. */
export interface Progress {
  readonly progress: number;
  readonly total: number | undefined;
  readonly message: string | undefined;
}

/** Options of one call; `timeoutMs` is by default the client's. */
export interface CallOptions<O = undefined> {
  output?: O;
  /** Cancels the call, which then fails with a `Cancelled` whose name is "AbortError". */
  signal?: AbortSignal | undefined;
  /** Milliseconds without progress. */
  timeoutMs?: number | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Default: true. */
  throwOnError?: boolean | undefined;
  meta?: Meta | undefined;
}

/** What a subscription tells: a list changed, or a resource was updated. */
export type Change = { kind: "tools" | "resources" | "prompts" } | { kind: "updated"; uri: string };

/** Changes that a server tells of, one by one. */
export interface Subscription extends AsyncIterableIterator<Change>, AsyncDisposable {
  /**
   * Asks the server now, instead of with the first `next()`: what changes after this has resolved is heard. It gives the
   * subscription itself, and throws what `next()` would.
   */
  open(): Promise<this>;
}
