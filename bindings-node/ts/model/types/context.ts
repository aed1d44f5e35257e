import type { PromptResult, ResourceResult, ToolResult } from "../results.js";
import type {
  Completion, Implementation, LogLevel, Maybe, Prompt, Resource, ResourceTemplate, Revision, Root, Tool,
} from "./components.js";
import type { Upstream } from "./client.js";
import type { Message, Meta } from "./content.js";
import type { HttpOptions, PromptOptions, ResourceOptions, ToolOptions } from "./options.js";
import type { Outcome, Question, SampledMessages, SampleOptions, SampleResult, SpecSampleRequest } from "./questions.js";
import type { Input, Output, Schema, Variables } from "./schema.js";
import type { AnyServer, Listening, Principal, Registry, Transport } from "./server.js";

/**
 * A handler's view of its call, with the functions that reach the client during the call.
 *
 * From 2026-07-28 the answers to a handler's questions arrive with a later request of the client. The handler is suspended
 * until then; afterwards `requestId`, `headers`, `meta` and the like are those of the later request. If the suspended
 * handler is gone by then (another server received the request, or the limit of suspended handlers was reached), the
 * handler runs again from its start with the answers so far. Put side effects that must not be repeated into `step`.
 *
 * @example
 * ```ts
 * import { Client, Server } from "gudgeon";
 *
 * const app = new Server("shelf");
 * app.tool("index", {}, async (_, ctx) => {
 *   await ctx.progress(1, { total: 2, message: "half way" });
 *   return ctx.revision;
 * });
 *
 * const client = await Client.connect(app);
 * const result = await client.callTool("index", {}, { onProgress: ({ message }) => console.log(message) }); // half way
 * console.log(result.text); // 2026-07-28
 * await client.close();
 * ```
 */
export interface Context<L = unknown> {
  readonly requestId: string | number;
  /** The session's id over legacy HTTP; undefined over stdio and in memory. */
  readonly sessionId: string | undefined;
  readonly revision: Revision | "0.7" | "bare";
  /** The headers of the HTTP request; empty over stdio and in memory. */
  readonly headers: Headers;
  /** The caller, as the server (`auth`) or its host (`app.fetch(request, { principal })`, `request.principal`) authenticated it. */
  readonly principal: Principal | undefined;
  /** The client's description of itself; the name is "" if it gave none. */
  readonly client: Implementation & { readonly capabilities: Meta };
  /** The capabilities that the client declared: `client.capabilities`. */
  readonly clientCapabilities: Meta;
  /** The request's `_meta`. */
  readonly meta: Meta;
  readonly server: ServerMembers<L>;
  /** The `value` that the server's `lifespan` returned. */
  readonly lifespan: L;
  /**
   * Values kept for the lifetime of the legacy session. From 2026-07-28 there are no sessions: reading it throws `NotSupported`.
   *
   * With a `store`, values of sessions over HTTP are read before the handler starts, and stored when it ends, before its reply is sent:
   * at most 256 KiB of JSON for a session. Reading it throws if the store does not reply.
   */
  readonly session: Map<string, unknown>;
  /** Values kept for the lifetime of the call, such as those that middleware passes to the handler. */
  readonly state: Map<unknown, unknown>;
  /**
   * Aborted when the result of this run is no longer needed: the client cancelled, the call timed out, the server stops, or
   * the suspended handler was discarded.
   */
  readonly signal: AbortSignal;
  /**
   * Reports progress, in any unit, if the client asked for it. Values that do not increase are dropped. The message is sent
   * when the function is called; awaiting it waits until the send buffer has room.
   *
   * @throws TypeError if a number is not finite.
   *
   * Spec: Base Protocol › Utilities › Progress.
   */
  progress(progress: number, rest?: { total?: number | undefined; message?: string | undefined }): Promise<void>;
  /**
   * Sends a log message to the client, if its level is at least the one that the client set. The message is sent when the
   * function is called. The rate is limited to a burst of 1,000 messages and then 100 a second; the client is told how many
   * were dropped.
   *
   * Spec: Server Features › Utilities › Logging.
   */
  log(level: LogLevel, data: unknown, rest?: { logger?: string | undefined }): Promise<void>;
  debug(data: unknown): Promise<void>;
  info(data: unknown): Promise<void>;
  warning(data: unknown): Promise<void>;
  error(data: unknown): Promise<void>;
  /**
   * Asks the user to fill in a form. Questions asked within one iteration of the event loop, as with `Promise.all`, are sent
   * together. An answer that does not fit the form, or fails a check of the schema library (such as zod's `refine`, async or
   * not), is asked for again, three times in all.
   *
   * @param message - The question, shown to the user.
   * @param schema - A primitive type (asked as the one property `value`), or an object with flat properties.
   * @param rest - `key`: the question's name. Default: `"elicit-<n>"`, in the order asked.
   * @throws Declined if the user declines; Cancelled if the user closes the form.
   * @throws ProtocolError after three invalid answers, or if the client answers with an error.
   * @throws NotSupported if the client did not declare elicitation, or the connection can't carry questions.
   * @throws DOMException named "AbortError" when `signal` is aborted; the handler's result is then dropped.
   *
   * Spec: Client Features › Elicitation; Base Protocol › Patterns › Multi round-trip requests.
   *
   * @example
   * ```ts
   * import { Client, Server } from "gudgeon";
   *
   * const app = new Server("shop");
   * app.tool("buy", {}, async (_, ctx) => {
   *   const sure = await ctx.elicit("Buy it?", { type: "boolean" });
   *   if (!sure) return "nothing bought";
   *   const receipt = await ctx.step("charge", () => "receipt 7");
   *   const mail = await ctx.elicit("Where to send the receipt?", { type: "string" });
   *   return `${receipt} for ${mail}`;
   * });
   *
   * const answers: Record<string, unknown> = { "Buy it?": true, "Where to send the receipt?": "ada@example.org" };
   * const client = await Client.connect(app, { onElicit: ({ message }) => answers[message] });
   * console.log((await client.callTool("buy")).text); // receipt 7 for ada@example.org
   * await client.close();
   * ```
   */
  elicit<const S extends Schema>(message: string, schema: S, rest?: { key?: string | undefined }): Promise<Output<S>>;
  /** Asks as `elicit` does, and returns a refusal instead of throwing it. */
  tryElicit<const S extends Schema>(
    message: string,
    schema: S,
    rest?: { key?: string | undefined },
  ): Promise<Outcome<Output<S>>>;
  /** Asks the user to open a URL; returns the elicitation's id. */
  elicitUrl(message: string, url: string, rest?: { key?: string | undefined }): Promise<string>;
  /**
   * Asks the client's model. Messages and params may have the specification's shape: `ctx.sample({ messages, maxTokens: 100 })`.
   *
   * @throws NotSupported as `elicit` does; Declined if the user does not allow it, except from 2026-07-28 on, where the
   *   client then ends the call.
   *
   * Spec: Client Features › Sampling.
   */
  sample(
    messages: SampledMessages | SpecSampleRequest,
    options?: SampleOptions & { key?: string | undefined },
  ): Promise<SampleResult>;
  /** Asks for the folders that the client lets the server work in. Spec: Client Features › Roots. */
  roots(rest?: { key?: string | undefined }): Promise<Root[]>;
  /** Asks several questions in one round. Only those with invalid answers are asked again. */
  ask<const Q extends readonly Question<unknown>[]>(
    ...questions: Q
  ): Promise<{ -readonly [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }>;
  /**
   * Returns the answer to a question that the handler returned earlier. Returns undefined if there is none, or if it failed
   * the schema, so that the handler returns the question again. The schema must not be async.
   *
   * @throws Declined if the user declined; Cancelled if the user closed the form.
   * @throws ProtocolError after three invalid answers.
   */
  answer<T>(question: Question<T>): T | undefined;
  /**
   * Runs a side effect and records its value, so that a replay of the handler returns the recorded value instead of running
   * it again. The value is recorded after `fn` returns: a process that dies in between runs it again, so it runs at least
   * once, not exactly once.
   *
   * @param key - The step's name within the call; a second step with the same key returns the first one's value.
   * @param fn - The side effect. Its value is converted to JSON and back, on the first run too. Nothing is recorded if it
   *   throws. Questions that it asks are numbered separately, as `<key>/elicit-1`.
   * @throws TypeError if the value can't be written as JSON.
   */
  step<T>(key: string, fn: () => Maybe<T>): Promise<T>;
  /** Reads a resource of this server or of its upstream servers. Throws `ResourceNotFound` if there is none. */
  readResource(uri: string): Promise<ResourceResult>;
  /** Closes the stream of a call over legacy HTTP; the client polls, and the result waits in the event store. */
  closeStream(rest?: { retryMs?: number | undefined }): Promise<void>;
}

/** The members of the class `Server`. */
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
  /** Registers a handler of a vendor's method. */
  method<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => unknown,
  ): this;
  /** Registers middleware, such as `middleware.timing()`, `.logging()`, `.rateLimit()` or `.responseLimit()`. */
  middleware(handler: Middleware<L>, options?: { on?: string | readonly string[] | undefined }): this;
  mount(prefix: string, other: AnyServer | Upstream): this;
  mount(other: AnyServer | Upstream, prefix: string): this;
  /** Registers a handler of a vendor's notification. */
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
  /** Notifies the client that the page of an `elicitUrl` is finished. */
  notifyUrlDone(elicitationId: string): void;

  /** Serves over stdio or at a URL; resolves when the server has stopped. */
  run(at?: string, options?: HttpOptions): Promise<void>;
  /** Listens at a URL; resolves when it does. */
  listen(at: string, options?: HttpOptions): Promise<Listening>;
  /** Serves one peer over a custom transport. */
  serve(transport: Transport): Promise<void>;
  /** Ends a mounted server and leaves its lifespan. Further calls do nothing. */
  close(): Promise<void>;
}

/** The type of a handler's arguments. */
export type Given<I> = [I] extends [undefined] ? Record<string, never> : Output<I>;

/** The type of a tool handler's result: the input of its output schema or a `ToolResult`; without a schema, JSON or content. */
export type Reply<O> = [O] extends [undefined] ? unknown : Input<O> | ToolResult | Question<unknown>;

/** A function that runs around requests: it returns the result of `next()` or another one, or throws. */
export type Middleware<L = unknown> = (
  request: { readonly method: string; readonly params: Readonly<Record<string, unknown>>; readonly ctx: Context<L> },
  next: () => Promise<unknown>,
) => Promise<unknown>;
