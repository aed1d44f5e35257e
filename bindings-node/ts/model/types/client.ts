import type { ClientAuth } from "./auth.js";
import type { Implementation, LogLevel, Maybe, Revision, Root, Tool } from "./components.js";
import type { Message, Meta } from "./content.js";
import type { Logger } from "./logging.js";
import type { SampleResult } from "./questions.js";
import type { JsonSchema } from "./schema.js";
import type { AnyServer, Transport } from "./server.js";

/**
 * A server to start as a child process, connected over stdio. `env` is added to this process's environment; `cwd` defaults
 * to this process's folder; with `restart` (default: false) a process that ended is started again before the next call.
 *
 * Spec: Transports › stdio.
 */
export interface Command {
  type?: "stdio" | undefined;
  command: string;
  args?: readonly string[] | undefined;
  /**
   * Environment variables beside HOME, LOGNAME, PATH, SHELL, TERM and USER (on Windows the corresponding ones), which are
   * inherited; or `"inherit"` for all variables of this process, secrets included. Default: none.
   */
  env?: Readonly<Record<string, string>> | "inherit" | undefined;
  cwd?: string | undefined;
  restart?: boolean | undefined;
}

/**
 * A server to connect to. A string must be a URL (http, https, ws, wss, tcp, unix, http+unix); `{ url, headers }` and `{ command, args }` are
 * entries of a host's configuration.
 *
 * For http, https, ws and wss, the environment may name a proxy when the client connects: `HTTPS_PROXY` for https and wss,
 * `HTTP_PROXY` for http and ws, `ALL_PROXY` for both, as `http://user:password@host:port`. Loopback addresses and the hosts in
 * `NO_PROXY` need none; `*` lists every host. For https and wss the system's certificates are trusted, or those in the file
 * `SSL_CERT_FILE` and the folders `SSL_CERT_DIR` in their place, and those in the file `NODE_EXTRA_CA_CERTS` in addition; the option
 * `ca` replaces them all. A worker thread's own changes to `process.env` are not seen.
 */
export type Target =
  | AnyServer
  | Transport
  | string
  | URL
  | Command
  | { type?: string | undefined; url: string; headers?: Readonly<Record<string, string>> | undefined };

/** Options of clients. Times are milliseconds, sizes bytes. */
export interface ClientOptions {
  /** The revision, or those allowed. Default: `"auto"`, the newest that both sides support. */
  revision?: "auto" | "0.7" | "bare" | Revision | readonly Revision[] | undefined;
  /** Checks arguments against the tool's schema before sending them. Default: false. */
  validate?: boolean | undefined;
  /**
   * Functions that run around the requests of the program, the first one outermost. A failed tool call is a result with
   * `isError` there. Not for subscriptions and notifications. Default: none.
   */
  middleware?: readonly ClientMiddleware[] | undefined;
  /**
   * Does not request lists and resources again while the server's `ttlMs` says that they are fresh, unless it has notified of a
   * change. Applies from 2026-07-28 on; calls with `meta` are always sent. Default: true. Spec: Server Features › Utilities ›
   * Caching.
   */
  cacheResults?: boolean | undefined;
  /**
   * The requests that are repeated while the server can't be reached, after growing delays: `"safe"`, reads, lists, and calls of tools
   * marked read-only or idempotent, in 5 attempts within 30 s. Default: `"safe"`.
   */
  retry?: "safe" | "never" | { attempts?: number | undefined; deadlineMs?: number | undefined } | undefined;
  /**
   * Milliseconds without a response or progress, not counting the time of callbacks that answer the server; the pages of a
   * list are one response. Default: 60,000.
   */
  timeoutMs?: number | undefined;
  /** Milliseconds of a call in all, with its pages and rounds of questions, regardless of progress. Default: no limit. */
  maxTimeoutMs?: number | undefined;
  /** Milliseconds in which to connect: to reach the server and to agree on a revision. Default: `timeoutMs`. */
  connectTimeoutMs?: number | undefined;
  /** Sent with every HTTP request and with the WebSocket handshake, to the URL's own origin only; never logged. */
  headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The authorities whose certificates of servers are trusted for https and wss, in place of the system's and those of the
   * environment: the path of a PEM file, or its text or bytes. Default: none.
   */
  ca?: string | Uint8Array | undefined;
  /**
   * The certificate by which the server knows this client, with its chain, and its private key, each the path of a PEM file, or its
   * text or bytes. The origin of the URL is shown it, and no other server or proxy. Default: none.
   */
  certificate?: { cert: string | Uint8Array; key: string | Uint8Array } | undefined;
  /**
   * Sends the HTTP requests of this client, those of signing in included, in place of the network: a function like the global
   * `fetch`, for example one with a dispatcher, a log or a cache. It is given the URL and `method`, `headers`, `body`, `signal`, and
   * `redirect: "manual"`; it decides itself about proxies, certificates and which hosts may be reached. The client reads the body of
   * the response as it arrives, and aborts the signal when it needs no more of it. An error of the function is logged, and the request
   * fails as if the connection were lost. Default: none. WebSockets do not use it.
   */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * The credentials for a server over HTTP, in place of a header: `"oauth"` signs in with the user's browser, as `oauth()` of
   * `gudgeon/auth` does with options; an access token, or a function that returns one and is called again once the server rejects it;
   * the result of `clientCredentials()`, `enterpriseManaged()` or `workloadIdentity()`. Sent to the URL's own origin only. Default: none.
   */
  auth?: ClientAuth | undefined;
  clientInfo?: Implementation | undefined;
  /**
   * The extensions that this program implements, such as `{ "com.example/search": {} }`, with their settings. Handlers see them in
   * `ctx.clientCapabilities`. Default: none.
   */
  extensions?: Readonly<Record<string, Meta>> | undefined;
  /** Capabilities that no specification defines, with their settings. Default: none. */
  experimental?: Readonly<Record<string, Meta>> | undefined;
  /** `file:` URIs or absolute paths. Before 2026-07-28 `setRoots` works only if this option is given. */
  roots?: readonly (string | URL | Root)[] | (() => Maybe<readonly (string | URL | Root)[]>) | undefined;
  /**
   * Answers the server's questions to the user: an object with the form's values, `declined` or `cancelled`. For a form with
   * one property the bare value is enough, and for one without properties true or false. Missing properties get their
   * defaults. A question to visit a URL is answered by true or false; `undefined` declines.
   */
  onElicit?: ((request: ElicitRequest) => Maybe<unknown>) | undefined;
  /** Answers the server's questions to the model. Tools may be offered to it. */
  onSample?: ((request: SampleRequest) => Maybe<string | SampleResult>) | undefined;
  /** Called with the id of an `elicitUrl` whose page is finished (2025-11-25). */
  onUrlDone?: ((elicitationId: string) => void) | undefined;
  /** Called with each log message; `server` is the name of the sender in a `ClientGroup`, as for the next two. */
  onLog?: ((message: { level: LogLevel; logger: string | undefined; data: unknown; server?: string | undefined }) => void) | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Called with the list that changed. */
  onListChanged?: ((kind: "tools" | "resources" | "prompts", server?: string) => void) | undefined;
  /**
   * Called when the server's state for this client was lost and the client is connected again, with the reason: a command
   * with `restart: true` was started again, a lost connection to an address was opened again, or an expired HTTP session was
   * replaced. Subscriptions continue. In a `ClientGroup` also when a server is reached for the first time after failed attempts.
   */
  onReconnect?: ((info: { attempt: number; reason: Error; server?: string | undefined }) => void) | undefined;
  /**
   * Receives the errors of callbacks, and the events of the process, such as those of connections. Default: warnings and
   * errors go to stderr; the rest as well if the environment variable `NODE_DEBUG` contains `gudgeon`.
   */
  logger?: Logger | undefined;
  /**
   * The schemes of the URLs that a server may ask the user to visit. Questions with another URL are refused and logged.
   * Default: `["http", "https"]`.
   */
  allowedUrlSchemes?: readonly string[] | undefined;
  /** The number of rounds of questions within one call. Default: 10. */
  maxRounds?: number | undefined;
  /**
   * The maximum size of a message in bytes. Default: 16 MiB. A result may have 10,000 objects, such as content blocks, and a list 25,000,
   * their schemas, structured content and `_meta` not counted; with a larger `maxMessage` proportionally more.
   */
  maxMessage?: number | undefined;
}

/** The options of the clients that reach an upstream server; its own clients answer its questions and get its messages. */
export type UpstreamOptions = Omit<
  ClientOptions,
  "middleware" | "onElicit" | "onSample" | "onUrlDone" | "onLog" | "onProgress" | "onListChanged" | "onReconnect" | "roots"
> & { roots?: readonly (string | URL | Root)[] | undefined };

type ReachedByClients = Exclude<Target, AnyServer | Transport>;

/** One or several servers to mount into another one: as for a client, or as for a group, with the names as further prefixes. */
export type UpstreamTarget =
  | ReachedByClients
  | Readonly<Record<string, ReachedByClients>>
  | { readonly mcpServers: Readonly<Record<string, ReachedByClients>> }
  | { readonly servers: Readonly<Record<string, ReachedByClients>> };

/** Servers to mount into another one, as `upstream()` returns them. */
export interface Upstream {
  /** The names of the servers, as errors show them. */
  readonly servers: readonly string[];
}

/** A request of a client as its middleware sees it: the params and the result are plain JSON. */
export interface ClientRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/**
 * Middleware of a client. `next()` sends the request, or the changed one that is given, and resolves to the result, which a list has
 * with the entries of all pages. It may be called again, or not at all. What the function returns is the result.
 */
export type ClientMiddleware = (request: ClientRequest, next: (changed?: ClientRequest) => Promise<unknown>) => Maybe<unknown>;

/** A server's question to the user, as passed to `onElicit`. Spec: Client Features › Elicitation. */
export interface ElicitRequest {
  readonly id: string | undefined;
  readonly mode: "form" | "url";
  readonly message: string;
  readonly schema: JsonSchema | undefined;
  readonly url: string | undefined;
  /** The name in the `ClientGroup` of the server that asks; users must see it. */
  readonly server?: string | undefined;
}

/** A server's question to the client's model, as passed to `onSample`. Spec: Client Features › Sampling. */
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
  /** The name in the `ClientGroup` of the server that asks. */
  readonly server?: string | undefined;
}

/** A server's questions; `state` is sent back with the answers. */
export interface InputRequired {
  readonly questions: Readonly<
    Record<string, ({ kind: "elicit" } & ElicitRequest) | ({ kind: "sample" } & SampleRequest) | { kind: "roots" }>
  >;
  readonly state: string | undefined;
}

/** The progress of a call. Spec: Base Protocol › Utilities › Progress. */
export interface Progress {
  readonly progress: number;
  readonly total: number | undefined;
  readonly message: string | undefined;
}

/** Options of a request, such as that of a list. */
export interface RequestOptions {
  /** Cancels the request, which then fails with a `Cancelled` whose name is "AbortError". */
  signal?: AbortSignal | undefined;
  /** Milliseconds without a response or progress; the pages of a list are one response. Default: the client's. */
  timeoutMs?: number | undefined;
}

/** Options of one call. */
export interface CallOptions<O = undefined> extends RequestOptions {
  /** The schema that the result's `data` is validated by. */
  output?: O;
  onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Throws a `ToolError` for a result with `isError`, and a `ProtocolError` for one that does not fit the output schema of the
   * tool; if false, the result is returned. Default: true.
   */
  throwOnError?: boolean | undefined;
  meta?: Meta | undefined;
}

/** A change that a subscription reports: of a list, or of a resource. */
export type Change = { kind: "tools" | "resources" | "prompts" } | { kind: "updated"; uri: string };

/** The changes that a subscription asks for: of the resources `uris`, and of lists. Default: none. */
export interface SubscribeOptions {
  uris?: readonly string[] | undefined;
  tools?: boolean | undefined;
  resources?: boolean | undefined;
  prompts?: boolean | undefined;
}

/** The changes that a server reports, or the servers of a group, one by one. */
export interface Subscription<C extends Change = Change> extends AsyncIterableIterator<C>, AsyncDisposable {
  /**
   * Subscribes now, instead of with the first `next()`: every change after this resolves is reported. Returns the
   * subscription itself; throws what `next()` would throw.
   */
  open(): Promise<this>;
}
