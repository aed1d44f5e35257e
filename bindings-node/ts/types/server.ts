import type { IncomingMessage, ServerResponse } from "node:http";

import type { PromptResult, ToolResult } from "../results.js";
import type { Annotations, Icon, Message, Meta, SpecToolAnnotations, ToolAnnotations } from "./content.js";
import type { Context, Question } from "./context.js";
import type { Completion, Maybe, Prompt, Resource, ResourceTemplate, Revision, Tool } from "./components.js";
import type { Input, Output, Schema, Variables } from "./schema.js";
import type { Transport } from "./client.js";

/** An error class, as listed in `exposeErrors`. */
export type ErrorClass = new (...args: never[]) => Error;

/** Options of `new Server()`. Times are milliseconds, sizes bytes. */
export interface ServerOptions<L = unknown> {
  version?: string | undefined;
  title?: string | undefined;
  /** Told to the model: what the server is good for, and how its tools play together. */
  instructions?: string | undefined;
  websiteUrl?: string | undefined;
  icons?: readonly Icon[] | undefined;
  /** Runs once at start; what it gives is `ctx.lifespan`, and `close` runs at the end. */
  lifespan?: ((server: AnyServer) => Maybe<{ value: L; close?: (() => Maybe<void>) | undefined }>) | undefined;
  /** Entries a page of a list. Default: 100. */
  pageSize?: number | undefined;
  /**
   * Secrets that seal what clients carry between the rounds of a call (`requestState`): the first seals, every one opens.
   * Servers that share them can go on where another stopped. Default: those of the environment variable
   * `GUDGEON_STATE_KEYS`, separated by commas, else one of this process's own.
   */
  requestStateKeys?: readonly (string | Uint8Array)[] | undefined;
  /** Errors whose message the model may see. Default: `ToolError` only. */
  exposeErrors?: readonly ErrorClass[] | undefined;
  /** Shows stack traces to the client. Default: false. */
  debug?: boolean | undefined;
  /** Older descriptions of the protocol that are understood, too. Default: none. */
  dialects?: readonly ("0.7" | "bare")[] | undefined;
  /** Default: all. */
  revisions?: readonly Revision[] | undefined;
  /** `"portable"` writes schemas without `$ref`, which many hosts misread; `"full"` leaves them as they are. Default: `"portable"`. */
  schemaProfile?: "portable" | "full" | undefined;
  /** Milliseconds that a client may keep a list (2026-07-28). Default: it asks again. */
  listTtlMs?: number | undefined;
  /** Bytes. Default: 16 MiB. */
  maxMessage?: number | undefined;
  /** Bytes of what a client carries; beyond that it holds no answers of earlier rounds. Default: 256 KiB. */
  maxRequestState?: number | undefined;
  /**
   * Handlers that may wait for answers that come with a later request (2026-07-28); 0 for none. Beyond that the oldest
   * are stopped, and run again from their top when the answers come. Default: 1,000.
   */
  parkLimit?: number | undefined;
  /**
   * Milliseconds that a handler waits for its client's answer before it is stopped; its call fails then before
   * 2026-07-28, and runs again from its top when the answer comes from then on. Default: 300,000.
   */
  parkTtlMs?: number | undefined;
  /** Milliseconds that a client may take for its answers. Default: 900,000. */
  stateTtlMs?: number | undefined;
  /** Threads that read, write and speak the protocol for each address that the server listens at. Default: 1. */
  ioThreads?: number | undefined;
  /** What `fetch` and `node` go by, and the defaults of `run` and `listen`. */
  http?: HttpOptions | undefined;
}

/**
 * How HTTP is served. Times are milliseconds, sizes bytes. What is about connections (`maxHeaders`, `headerTimeoutMs`,
 * `idleTimeoutMs`, `tls`) is up to the host where `fetch` or `node` is called.
 */
export interface HttpOptions {
  /** What clients call it behind a proxy; decides Host and Origin. */
  publicUrl?: string | undefined;
  /** Web pages that may call, such as `"https://example.org"`. Default: those of this machine. */
  allowedOrigins?: readonly string[] | undefined;
  /** Hosts that requests may be for, such as `"example.org"`. Default: on a loopback address `localhost`; else all. */
  allowedHosts?: readonly string[] | undefined;
  /** Web pages that may call and read the answers: `true` for all. Default: none. */
  cors?: boolean | readonly string[] | undefined;
  /** The 2024-11-05 pair at `/sse`; behind `fetch` it needs the whole path, which `mount` of Hono cuts. Default: false. */
  legacySse?: boolean | undefined;
  /** Longer bodies are refused. Default: 4 MiB. */
  maxBody?: number | undefined;
  /** Default: 10,000. */
  maxSessions?: number | undefined;
  /** Of one session. Default: 16. */
  maxStreams?: number | undefined;
  /** Requests in flight; more are told to come back. Default: 1,000. */
  maxInFlight?: number | undefined;
  /** Longer heads of requests are refused. Default: 64 KiB. */
  maxHeaders?: number | undefined;
  /** Default: 10,000. */
  headerTimeoutMs?: number | undefined;
  /** A connection on which nothing moves is closed. Default: 60,000. */
  idleTimeoutMs?: number | undefined;
  /** A session that is silent for so long ends. Default: 1,800,000. */
  sessionIdleMs?: number | undefined;
  /** Milliseconds between comments on a quiet stream. Default: 15,000. */
  keepAliveMs?: number | undefined;
  /** Legacy streams can be resumed. Default: true. */
  eventStore?: boolean | undefined;
  /** Paths of PEM files: certificate chain and key. */
  tls?: { cert: string; key: string } | undefined;
  /** Milliseconds for calls in flight when the server stops, or a client on tcp:// or unix: says no more. Default: 10,000. */
  shutdownGraceMs?: number | undefined;
}

interface Options {
  title?: string | undefined;
  description?: string | undefined;
  icons?: readonly Icon[] | undefined;
  meta?: Meta | undefined;
  tags?: readonly string[] | undefined;
  /**
   * Milliseconds that a call may run; then it is cancelled and answered with an error. They stand still while the handler
   * waits for its client's answer (`parkTtlMs` bounds that). Default: no limit.
   */
  timeoutMs?: number | undefined;
  /**
   * Who sees it and may call it, asked each time, so that it may look at what is configured as well; the principal is
   * whom the host let in (`app.fetch(request, { principal })`, `request.principal` of `app.node`), never whoever a
   * connection belongs to. Default: everybody.
   */
  visible?: ((principal: Principal | undefined) => boolean) | undefined;
  /** Default: true. */
  enabled?: boolean | undefined;
}

/** Options of `server.tool()`. Spec: Server Features › Tools › Tool. */
export interface ToolOptions<I, O> extends Options {
  /** Must describe an object. Default: no arguments. */
  input?: I;
  /** Another name of `input`. */
  inputSchema?: I;
  output?: O;
  /**
   * Whether a call with an argument that the input schema does not name is refused. It applies to schemas of zod and other
   * libraries that leave this open; a plain JSON Schema says so by `additionalProperties`. Default: `"refuse"`.
   */
  unknownArguments?: "refuse" | "ignore" | undefined;
  annotations?: ToolAnnotations | SpecToolAnnotations | undefined;
  /**
   * At most so many calls at once; others wait. A handler that waits for its client's answer leaves its place to another,
   * and stands in line for one again before it goes on. Default: no limit.
   */
  concurrency?: number | undefined;
  /**
   * May the handler run again from its top when the client's answers come and it is gone? With `"forbid"` such a call is
   * refused, no question is asked where the handler could not wait for the answer, and the handler can't return
   * questions. Default: `"allow"`.
   */
  replay?: "allow" | "forbid" | undefined;
  exposeErrors?: readonly ErrorClass[] | undefined;
}

/** Options of `server.resource()`. Spec: Server Features › Resources › Resource. */
export interface ResourceOptions extends Options {
  name?: string | undefined;
  mimeType?: string | undefined;
  annotations?: Annotations | undefined;
  /** Bytes. */
  size?: number | undefined;
  /** Milliseconds that a client may keep it (2026-07-28). Default: it asks again. */
  ttlMs?: number | undefined;
  /**
   * "public" where caches may give it to everybody, "private" where they must not (2026-07-28). Default: "private" where
   * it is known who asks, by a principal or an `Authorization` header; else "public".
   */
  cacheScope?: "public" | "private" | undefined;
  /**
   * Milliseconds that the server itself keeps a result, per URI and principal, until `notifyUpdated` or a change of the
   * resources. Reads at the same time share one call; what a user answered is never kept, and nothing is where
   * middleware runs around `resources/read`. Default: it calls the handler each time.
   */
  cacheMs?: number | undefined;
}

/** Options of `server.prompt()`. Spec: Server Features › Prompts › Prompt. */
export interface PromptOptions<A> extends Options {
  args?: A;
}

/** What a handler gets for its arguments. */
export type Given<I> = [I] extends [undefined] ? Record<string, never> : Output<I>;

/** With an output schema the handler returns what that schema takes, or a ToolResult; without, anything JSON can say, or content. */
export type Reply<O> = [O] extends [undefined] ? unknown : Input<O> | ToolResult | Question<unknown>;

/** The function that answers a `Request`; hosts such as Hono, Next and Bun take it as it is. */
export interface FetchHandler {
  (request: Request, extra?: { principal?: Principal | undefined }): Promise<Response>;
  /** What hosts hand over beside the request (an environment, a route's parameters) is ignored, apart from `principal`. */
  <Host>(request: Request, host: Host extends { principal: unknown } ? never : Host, ...more: unknown[]): Promise<Response>;
}

/** Any server, whatever its lifespan gives. */
export interface AnyServer {
  readonly name: string;
  readonly fetch: FetchHandler;
  readonly node: (request: IncomingMessage & { principal?: Principal | undefined }, response: ServerResponse) => void;
}

/** Everything that the class `Server` offers. */
export interface ServerMembers<L> extends AnyServer {
  tool<const I extends Schema | undefined = undefined, const O extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: Given<I>, ctx: Context<L>) => Maybe<Reply<O>>,
  ): this;
  resource<const U extends string>(
    uri: U,
    options: ResourceOptions,
    handler: (variables: Variables<U>, ctx: Context<L>) => unknown,
  ): this;
  prompt<const A extends Schema | undefined = undefined>(
    name: string,
    options: PromptOptions<A>,
    handler: (
      args: Given<A>,
      ctx: Context<L>,
    ) => Maybe<string | Message | readonly (string | Message)[] | PromptResult | Question<unknown>>,
  ): this;
  /** Completes an argument of a prompt (its name) or a variable of a resource template (its URI template). */
  complete(
    target: string,
    argument: string,
    handler: (
      prefix: string,
      given: Readonly<Record<string, string>>,
      ctx: Context<L>,
    ) => Maybe<readonly string[] | Completion>,
  ): this;
  /** Answers a vendor's own method. */
  method<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => unknown,
  ): this;
  /** Ready-made ones: `middleware.timing()`, `.logging()`, `.rateLimit()`, `.responseLimit()`. */
  middleware(handler: Middleware<L>, options?: { on?: string | readonly string[] | undefined }): this;
  mount(prefix: string, other: AnyServer): this;
  mount(other: AnyServer, prefix: string): this;
  /** Hears a vendor's own notification. */
  notification<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => Maybe<void>,
  ): this;
  onRootsChanged(handler: (ctx: Context<L>) => Maybe<void>): this;

  readonly tools: Registry<Tool>;
  readonly resources: Registry<Resource>;
  readonly resourceTemplates: Registry<ResourceTemplate>;
  readonly prompts: Registry<Prompt>;
  notifyUpdated(uri: string): void;
  /** What `elicitUrl` sent somebody to is finished. */
  notifyUrlDone(elicitationId: string): void;

  /** stdio, or the given URL; resolves when the server has stopped. */
  run(at?: string, options?: HttpOptions): Promise<void>;
  /** Resolves when it listens. */
  listen(at: string, options?: HttpOptions): Promise<Listening>;
  /** Serves one peer over a wire of one's own. */
  serve(transport: Transport): Promise<void>;
  /** Leaves the lifespan of a mounted server; twice is fine. */
  close(): Promise<void>;
}

/** What runs around handlers: it gives `next()`'s result, another one, or throws. */
export type Middleware<L = unknown> = (
  request: { readonly method: string; readonly params: Readonly<Record<string, unknown>>; readonly ctx: Context<L> },
  next: () => Promise<unknown>,
) => Promise<unknown>;

/** What a server offers of one kind, in order. Every change sends its list_changed by itself. */
export interface Registry<T> extends Iterable<T> {
  readonly size: number;
  has(name: string): boolean;
  get(name: string): T | undefined;
  remove(name: string): void;
  /**
   * Changes what clients see of a component.
   *
   * @param changes - New values: `title`, `description`, `icons`, `meta`, `annotations`; of resources `name`, `mimeType` and
   *   `size` as well. Undefined takes a member away.
   * @throws TypeError when nothing has this name, or a member is unknown, can't change, or has a wrong value.
   */
  update(name: string, changes: Readonly<Record<string, unknown>>): void;
  enable(...names: (string | { tags: readonly string[] })[]): void;
  disable(...names: (string | { tags: readonly string[] })[]): void;
}

/** A server that listens at `url`. */
export interface Listening extends AsyncDisposable {
  readonly url: string;
  close(): Promise<void>;
}

/** Who asks, as the host of a mounted server has found out. */
export interface Principal {
  readonly subject: string;
  readonly clientId?: string | undefined;
  readonly scopes: ReadonlySet<string>;
  readonly claims: Readonly<Record<string, unknown>>;
}
