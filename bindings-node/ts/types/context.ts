import type { ResourceResult } from "../results.js";
import type { Content, Message, Meta } from "./content.js";
import type { Implementation, LogLevel, Maybe, Revision, Root } from "./components.js";
import type { Output, Schema } from "./schema.js";
import type { Principal, ServerMembers } from "./server.js";

/** How the user answered a question. */
export type Outcome<T> = { action: "accept"; value: T } | { action: "decline" } | { action: "cancel" };

/**
 * What a handler knows of its call, and how it talks to the client meanwhile.
 *
 * From 2026-07-28 the answers to a handler's questions come with another request of the client's. The handler waits for
 * it and goes on; what is known of the request (`requestId`, `headers`, `meta`, …) is then the later one's. Where it is
 * gone by then (another server got the request, or it had to leave), it is run again from its top, with the answers so
 * far: what must not be done twice belongs into `step`.
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
  /** Of legacy HTTP; undefined over stdio and in memory. */
  readonly sessionId: string | undefined;
  readonly revision: Revision | "0.7" | "bare";
  /** The HTTP request's; empty over stdio and in memory. */
  readonly headers: Headers;
  /** Who asks, where the host of a mounted server has told: `app.fetch(request, { principal })`, `request.principal`. */
  readonly principal: Principal | undefined;
  /** What the client says of itself; one that gives no name has "". */
  readonly client: Implementation & { readonly capabilities: Meta };
  /** The request's `_meta`. */
  readonly meta: Meta;
  readonly server: ServerMembers<L>;
  /** What the server's `lifespan` gave. */
  readonly lifespan: L;
  /** Lives as long as the legacy session. From 2026-07-28 there is none, and it throws `NotSupported`. */
  readonly session: Map<string, unknown>;
  /** Lives as long as the call; middleware leaves things here. */
  readonly state: Map<unknown, unknown>;
  /**
   * Fires when nobody waits for this run of the handler any more: the client cancels, the call has run out of time, the
   * server stops, or the handler waited for answers and had to leave.
   */
  readonly signal: AbortSignal;
  /**
   * How far this got, in any unit; it must grow, or it is dropped. Sent when called, where the client wants it; awaiting
   * it waits for room.
   *
   * @throws TypeError when a number is not finite. Spec: Base Protocol › Utilities › Progress.
   */
  progress(progress: number, rest?: { total?: number | undefined; message?: string | undefined }): Promise<void>;
  /**
   * What the client logs, from the level that it set. Sent when called. A client gets 1,000 messages at once, and then 100
   * a second as long as it reads them; what is left out is counted, and the client is told. Spec: Server Features ›
   * Utilities › Logging.
   */
  log(level: LogLevel, data: unknown, rest?: { logger?: string | undefined }): Promise<void>;
  debug(data: unknown): Promise<void>;
  info(data: unknown): Promise<void>;
  warning(data: unknown): Promise<void>;
  error(data: unknown): Promise<void>;
  /**
   * Asks the user by a form. What is asked before the event loop's turn ends goes out together, as with `Promise.all`.
   *
   * @param message - What the user reads.
   * @param schema - A plain type (asked as the one property `value`), or an object with flat properties.
   * @param rest - `key`: the question's name. Default: `"elicit-<n>"`, in the order asked.
   * @throws Declined, Cancelled when the user says no, or closes the form.
   * @throws ProtocolError when three answers did not fit, or the client answers with an error.
   * @throws NotSupported when the client declared no elicitation, or the connection carries no questions.
   * @throws DOMException named `AbortError` when `signal` fires; what the handler gives after that is dropped.
   *
   * What does not fit the form, or is refused by the schema's own check (a `refine` of zod's, say, async or not), is asked
   * for again, three times in all.
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
  /** `elicit` that gives a no back instead of throwing it. */
  tryElicit<const S extends Schema>(
    message: string,
    schema: S,
    rest?: { key?: string | undefined },
  ): Promise<Outcome<Output<S>>>;
  /** Sends the user to a page; gives the elicitation's id. */
  elicitUrl(message: string, url: string, rest?: { key?: string | undefined }): Promise<string>;
  /**
   * Asks the client's model. Throws `NotSupported` as `elicit` does, and `Declined` where the user does not want it asked;
   * from 2026-07-28 on the client does not come back then. Spec: Client Features › Sampling.
   */
  sample(
    messages: string | readonly (string | Message)[],
    options?: SampleOptions & { key?: string | undefined },
  ): Promise<SampleResult>;
  /** Asks for the places that the client lets the server work in. Spec: Client Features › Roots. */
  roots(rest?: { key?: string | undefined }): Promise<Root[]>;
  /** Several questions in one round. Those alone are asked again whose answers don't fit. */
  ask<const Q extends readonly Question<unknown>[]>(
    ...questions: Q
  ): Promise<{ -readonly [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }>;
  /**
   * The answer to a question that the handler returned before, or undefined: also where its schema refused the answer, so
   * that the question is returned once more. The schema must not be async.
   *
   * @throws Declined, Cancelled when the user said no, or closed the form.
   * @throws ProtocolError when three answers did not fit.
   */
  answer<T>(question: Question<T>): T | undefined;
  /**
   * Does something once, however often the handler is run: an earlier run's value is given again. It is written down when
   * `fn` is done, so that a process which dies just then does it again: at least once, not exactly once.
   *
   * @param key - Names it within the call; a second step with this key gives the first one's value.
   * @param fn - Its value goes through JSON, the first time as well. When it throws, nothing is written down.
   * What it asks is numbered for itself, as `<key>/elicit-1`.
   * @throws TypeError when JSON can't represent the value.
   */
  step<T>(key: string, fn: () => Maybe<T>): Promise<T>;
  /** Reads a resource of this server; throws `ResourceNotFound`. */
  readResource(uri: string): Promise<ResourceResult>;
  /** Legacy HTTP: let the client poll; the answer waits in the event store. */
  closeStream(rest?: { retryMs?: number | undefined }): Promise<void>;
}

declare const question: unique symbol;

/** A question for the client's user or model; made by `ask.*`, asked by `ctx.ask()` or by returning it. */
export interface Question<T> {
  readonly [question]: T;
}

/** What the client's model is told. Spec: Client Features › Sampling. */
export interface SampleOptions {
  /** Default: 1,024. */
  maxTokens?: number | undefined;
  /** The system prompt. */
  system?: string | undefined;
  temperature?: number | undefined;
  /** Texts at which the model stops. */
  stop?: readonly string[] | undefined;
  /** Names or parts of names of models, best first. */
  models?: string | readonly string[] | undefined;
  /** From 0 to 1, as the two below. */
  costPriority?: number | undefined;
  speedPriority?: number | undefined;
  intelligencePriority?: number | undefined;
  tools?: readonly unknown[] | undefined;
  toolChoice?: "auto" | "required" | "none" | undefined;
}

/** What the client's model said; `text` is all its texts, joined by line breaks. */
export interface SampleResult {
  readonly role: "user" | "assistant";
  readonly content: readonly Content[];
  readonly text: string;
  readonly model: string;
  readonly stopReason: string | undefined;
}
