import type { Auth } from "./auth.js";
import type { Maybe, Revision } from "./components.js";
import type { Annotations, Icon, Meta, SpecToolAnnotations, ToolAnnotations } from "./content.js";
import type { Logger } from "./logging.js";
import type { AnyServer, Principal } from "./server.js";
import type { Store } from "./store.js";

/** An error class, as listed in `exposeErrors`. */
export type ErrorClass = new (...args: never[]) => Error;

/** Options of `new Server()`. Times are milliseconds, sizes bytes. */
export interface ServerOptions<L = unknown> {
  version?: string | undefined;
  title?: string | undefined;
  /** Instructions for the model: the server's purpose, and how its tools belong together. */
  instructions?: string | undefined;
  websiteUrl?: string | undefined;
  icons?: readonly Icon[] | undefined;
  /**
   * The methods that authenticate callers over HTTP and WebSocket; stdio is not affected, and `tcp://` and `unix:` addresses are
   * refused. The URL of an issuer whose JWTs are accepted, the result of `jwt()`, `introspection()` or `apiKeys()` of `gudgeon/auth`, a
   * function `(token, request) => Principal | undefined`, async or not, or a list of these. Default: everybody may call.
   */
  auth?: Auth | readonly Auth[] | undefined;
  /**
   * The state that servers share, see docs/store.md. `"memory"` is that of each process, and the default but for the workers of a cluster,
   * which share a file. `"sqlite:path"` is a file, for the processes of one machine, and `"redis://host:6379"` (also `rediss:`, `valkey:` and
   * `valkeys:`, with user and password before the host) a server, for several machines; else an object with the methods of `Store`. Servers
   * behind one address need the same.
   */
  store?: string | Store | undefined;
  /** The scopes that a scope includes, such as `{ "books:write": ["books:read"] }`. Default: none. */
  scopeImplies?: Readonly<Record<string, readonly string[]>> | undefined;
  /**
   * True to hide tools, resources and prompts from callers that lack their `scopes`: lists leave them out, and requests for
   * them fail as for unknown ones. Default: false; they are listed, and a call is answered with 403 and the scopes to ask for.
   */
  hideUnauthorized?: boolean | undefined;
  /** Runs once at the start. Handlers find its `value` in `ctx.lifespan`; `close` runs at the end. */
  lifespan?: ((server: AnyServer) => Maybe<{ value: L; close?: (() => Maybe<void>) | undefined }>) | undefined;
  /**
   * The extensions that the server implements, such as `{ "com.example/search": {} }`, with their settings. Clients see them in
   * `client.server.capabilities`; `method` and `notification` register handlers for their methods. Default: none.
   */
  extensions?: Readonly<Record<string, Meta>> | undefined;
  /** Capabilities that no specification defines, with their settings. Default: none. */
  experimental?: Readonly<Record<string, Meta>> | undefined;
  /** The number of entries in a page of a list. Default: 100. */
  pageSize?: number | undefined;
  /**
   * Secrets of at least 32 bytes that encrypt the `requestState` which clients carry between the rounds of a call. The first
   * encrypts, all of them decrypt. Servers of one name with the same keys can continue each other's calls. Default: the keys in
   * the environment variable `GUDGEON_STATE_KEYS`, separated by commas; those in the file that
   * `GUDGEON_STATE_KEYS_FILE` names; without both, a random key of this process.
   */
  requestStateKeys?: readonly (string | Uint8Array)[] | undefined;
  /**
   * The path of a file of such keys, separated by commas or line breaks, in place of `requestStateKeys`. It is read again within
   * seconds after it has changed; if it can't be used then, an error is logged, and the keys that were read before stay in use.
   * Default: none.
   */
  requestStateKeysFile?: string | undefined;
  /** Error classes whose messages the model may see. Default: `ToolError` only. */
  exposeErrors?: readonly ErrorClass[] | undefined;
  /** Shows stack traces to the client. Default: false, unless the environment variable `GUDGEON_DEBUG` is 1, which `gudgeon dev` sets. */
  debug?: boolean | undefined;
  /** Older protocol descriptions that the server also accepts. Default: none. */
  dialects?: readonly ("0.7" | "bare")[] | undefined;
  /** The revisions that the server accepts. Default: all. */
  revisions?: readonly Revision[] | undefined;
  /** `"portable"` writes schemas without `$ref`, which many hosts do not resolve; `"full"` leaves schemas unchanged. Default: `"portable"`. */
  schemaProfile?: "portable" | "full" | undefined;
  /**
   * Decodes a string that a model sent in place of another value (`"5"`, `"[1, 2]"`) as JSON: only where the schema accepts no
   * string, at most 16 levels deep, and if the arguments are valid then. Does not affect what a schema library converts by
   * itself. Default: true.
   */
  convertArguments?: boolean | undefined;
  /** Milliseconds for which a client may cache a list (2026-07-28). Default: no caching. */
  listTtlMs?: number | undefined;
  /** The maximum size of a message in bytes. Default: 16 MiB. */
  maxMessage?: number | undefined;
  /** The maximum size of `requestState` in bytes; a larger one is sent without the answers of earlier rounds. Default: 256 KiB. */
  maxRequestState?: number | undefined;
  /**
   * The number of handlers that may be suspended until a later request brings their answers (2026-07-28); 0 for none. Beyond
   * the limit the oldest are discarded, and run again from their start when the answers arrive. Default: 1,000.
   */
  suspendedLimit?: number | undefined;
  /**
   * Milliseconds for which a handler waits for its client's answer before it is discarded. Before 2026-07-28 its call then
   * fails; from 2026-07-28 the handler runs again from its start when the answer arrives. Default: 300,000.
   */
  suspendedTtlMs?: number | undefined;
  /** Milliseconds within which a client must return a `requestState`. Default: 900,000. */
  stateTtlMs?: number | undefined;
  /** The number of native threads for input, output and the protocol, for each address that the server listens at. Default: 1. */
  ioThreads?: number | undefined;
  /**
   * Receives what handlers and this server have to report, and the events of the process, such as those of connections.
   * Default: warnings and errors go to stderr; the rest as well if the environment variable `NODE_DEBUG` contains `gudgeon`.
   */
  logger?: Logger | undefined;
  /** The HTTP options of `fetch` and `node`, and the defaults of `run` and `listen`. */
  http?: HttpOptions | undefined;
}

/**
 * Options of HTTP. Times are milliseconds, sizes bytes. Under `fetch` and `node` the host decides about connections:
 * `maxHeaders`, `headerTimeoutMs`, `idleTimeoutMs`, `tls`, `proxyProtocol` and `drainDelayMs` have no effect there.
 */
export interface HttpOptions {
  /** The URL under which clients reach the server behind a proxy; sets the allowed `Host` and `Origin`. */
  publicUrl?: string | undefined;
  /**
   * Origins of web pages that may send requests, such as `"https://example.org"`, `"https://*.example.org"` for all hosts below
   * it, or `"*"` for all origins but `"null"`. Default: those of this machine.
   */
  allowedOrigins?: readonly string[] | undefined;
  /**
   * Hosts by which clients may call, such as `"example.org"`, `"example.org:8443"`, `"*.example.org"`, or `"*"` for all.
   * Default: on a loopback address `localhost`; else all.
   */
  allowedHosts?: readonly string[] | undefined;
  /** Origins of web pages that may send requests and read the responses (CORS); `true` for all. Default: none. */
  cors?: boolean | readonly string[] | undefined;
  /** Serves HTTP+SSE of 2024-11-05 at `/sse`. Under `fetch` it needs the whole path, which Hono's `mount` shortens. Default: false. */
  legacySse?: boolean | undefined;
  /**
   * The path, such as `"/healthz"`, that answers GET and HEAD with 200 as long as the server runs. Neither host nor credentials are
   * checked there, and a server that is full answers as well. Under `fetch` and `node` every path that ends with it. Default: none.
   */
  health?: string | undefined;
  /**
   * The path, such as `"/readyz"`, that answers GET and HEAD with 200 while calls are accepted, and with 503 before the lifespan is
   * entered and once the shutdown has begun; otherwise like `health`. Default: none.
   */
  ready?: string | undefined;
  /**
   * The path, such as `"/metrics"`, that answers GET and HEAD with the metrics of the server in Prometheus' text format, to everybody
   * who reaches it, as `health` does. `docs/metrics.md` lists them. Default: none.
   */
  metrics?: string | undefined;
  /** The maximum size of a request's body. Default: 4 MiB. */
  maxBody?: number | undefined;
  /**
   * The sessions of clients before 2026-07-28. `"sealed"` (default): each process with the same `requestStateKeys` understands
   * their ids, so that they survive restarts and need no sticky routing. `"none"`: each request is served by itself, without
   * questions to the client, subscriptions and log messages.
   */
  sessions?: "sealed" | "none" | undefined;
  /** The maximum number of sessions that hold something in memory; beyond it, the one idle for longest loses that. Default: 10,000. */
  maxSessions?: number | undefined;
  /** The maximum number of streams of one session. Default: 16. */
  maxStreams?: number | undefined;
  /** The maximum number of requests in flight; further ones are rejected with 503. Default: 1,000. */
  maxInFlight?: number | undefined;
  /** The maximum size of a request's line and headers. Default: 64 KiB. */
  maxHeaders?: number | undefined;
  /** The time limit for a request's headers. Default: 10,000. */
  headerTimeoutMs?: number | undefined;
  /**
   * The time after which a connection without a request, or whose client reads nothing, is closed. It must be longer than the one
   * for which a proxy in front of the server keeps its connections. Default: 75,000.
   */
  idleTimeoutMs?: number | undefined;
  /** The time limit for more of a request's body. Default: 60,000. */
  bodyTimeoutMs?: number | undefined;
  /**
   * The time after which an idle session loses what it holds in memory: subscriptions, values of `ctx.session`, events to send
   * again. Default: 1,800,000.
   */
  sessionIdleMs?: number | undefined;
  /** The interval between keep-alive comments on an idle stream. Default: 15,000. */
  keepAliveMs?: number | undefined;
  /** Keeps events, so that legacy streams can be resumed. Default: true. */
  eventStore?: boolean | undefined;
  /**
   * The paths of PEM files with the certificate chain and the key. They are read again within seconds after they have changed; if they
   * can't be used then, an error is logged, and those that were read before stay in use.
   */
  tls?: { cert: string; key: string } | undefined;
  /**
   * The proxies in front of the server: addresses, networks such as `"10.0.0.0/8"`, and `"unix"` for those that connect to a Unix
   * socket. Of their requests, `Forwarded` or `X-Forwarded-For`, `-Host` and `-Proto` name the client, and the host and scheme
   * that it used; of others they are ignored. Under `fetch` the connection's address is the `remoteAddress` of its second
   * argument. Default: none.
   */
  trustedProxies?: readonly string[] | undefined;
  /**
   * If true, each connection begins with a header of the PROXY protocol, version 1 or 2, which names the client. It needs
   * `trustedProxies`; connections of others are closed. Default: false.
   */
  proxyProtocol?: boolean | undefined;
  /** Milliseconds for calls in flight to finish when the server stops, or when a client on tcp:// or unix: ends its input. Default: 10,000. */
  shutdownGraceMs?: number | undefined;
  /**
   * Milliseconds for which a server that listens goes on after a signal, or after `close`, while `ready` answers 503 and each response
   * closes its connection; `shutdownGraceMs` begins afterwards. Default: 0.
   */
  drainDelayMs?: number | undefined;
}

interface Options {
  title?: string | undefined;
  description?: string | undefined;
  icons?: readonly Icon[] | undefined;
  meta?: Meta | undefined;
  tags?: readonly string[] | undefined;
  /**
   * Milliseconds after which a call is cancelled and answered with an error. The time during which the handler waits for its
   * client's answer does not count (`suspendedTtlMs` limits that). Default: no limit.
   */
  timeoutMs?: number | undefined;
  /** The scopes that a caller over HTTP needs to use it, beside those of the server's methods. Default: none. */
  scopes?: readonly string[] | undefined;
  /**
   * Decides whether a caller sees and may use it; called for each request. The principal is the one that the server or its host
   * authenticated (`new Server("…", { auth })`; `app.fetch(request, { principal })`, `request.principal` of `app.node`), or
   * undefined. Default: visible to every caller.
   */
  visible?: ((principal: Principal | undefined) => boolean) | undefined;
  /** If false, clients neither see nor can use it. Default: true. */
  enabled?: boolean | undefined;
}

/** Options of `server.tool()`. Spec: Server Features › Tools › Tool. */
export interface ToolOptions<I, O> extends Options {
  /** The schema of the arguments; it must describe an object. Default: no arguments. */
  input?: I;
  /** Another name of `input`. */
  inputSchema?: I;
  output?: O;
  /**
   * `"refuse"` refuses calls with arguments that the input schema does not name, `"ignore"` ignores such arguments. It applies to
   * schemas of zod and other libraries that leave this open; a plain JSON Schema says so by `additionalProperties`. Default:
   * `"refuse"`.
   */
  unknownArguments?: "refuse" | "ignore" | undefined;
  /** As for the server, for this tool. */
  convertArguments?: boolean | undefined;
  /** As for the server, for this tool. */
  schemaProfile?: "portable" | "full" | undefined;
  annotations?: ToolAnnotations | SpecToolAnnotations | undefined;
  /**
   * The maximum number of concurrent calls; others are queued. A handler that waits for its client's answer does not count,
   * and is queued again before it continues. Default: no limit.
   */
  concurrency?: number | undefined;
  /**
   * Allows or forbids to run the handler again from its start, if it was discarded when the client's answers arrive. With
   * `"forbid"` such a call fails, questions fail where the handler can't be suspended, and the handler can't return
   * questions. Default: `"allow"`.
   */
  replay?: "allow" | "forbid" | undefined;
  /** Error classes whose messages the model may see, beside those of the server's option. */
  exposeErrors?: readonly ErrorClass[] | undefined;
}

/** Options of `server.resource()`. Spec: Server Features › Resources › Resource. */
export interface ResourceOptions extends Options {
  /** Default: the URI. */
  name?: string | undefined;
  mimeType?: string | undefined;
  annotations?: Annotations | undefined;
  /** The size in bytes. */
  size?: number | undefined;
  /** Milliseconds for which a client may cache it (2026-07-28). Default: no caching. */
  ttlMs?: number | undefined;
  /**
   * "public" if shared caches may return it to any caller, "private" if not (2026-07-28). Default: "private" if the caller is
   * known by a principal or an `Authorization` header, else "public".
   */
  cacheScope?: "public" | "private" | undefined;
  /**
   * Milliseconds for which the server caches a result, by URI and principal, until `notifyUpdated` or a change of the
   * resources. Concurrent reads share one call. Results that depend on a user's answer are not cached, and nothing is if
   * middleware runs around `resources/read`. Default: no caching.
   */
  cacheMs?: number | undefined;
  /**
   * Variables of a template that are paths, besides `{+path}`. For them an absolute path, a drive letter, a backslash, NUL or
   * ".." is not found. Default: none.
   */
  paths?: readonly string[] | undefined;
  /** Variables that take absolute paths too, such as a URL in `{+url}`. Default: none. */
  uncheckedPaths?: readonly string[] | undefined;
}

/** Options of `server.prompt()`. Spec: Server Features › Prompts › Prompt. */
export interface PromptOptions<A> extends Options {
  /** The schema of the arguments, an object. Default: no arguments. */
  args?: A;
}
