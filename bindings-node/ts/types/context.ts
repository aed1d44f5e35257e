import type { ResourceResult } from "../results.js";
import type { Content, Message, Meta } from "./content.js";
import type { Implementation, LogLevel, Maybe, Revision, Root } from "./offers.js";
import type { Output, Schema } from "./schema.js";
import type { Principal, ServerMembers } from "./server.js";

/** How the user answered a question. */
export type Outcome<T> = { action: "accept"; value: T } | { action: "decline" } | { action: "cancel" };

/** What a handler knows of its call, and how it talks to the client meanwhile. */
export interface Context<L = unknown> {
  readonly requestId: string | number;
  readonly sessionId: string | undefined;
  readonly revision: Revision | "0.7" | "bare";
  readonly headers: Headers;
  readonly principal: Principal | undefined;
  readonly client: Implementation & { readonly capabilities: Meta };
  readonly meta: Meta;
  readonly server: ServerMembers<L>;
  readonly lifespan: L;
  /** Lives as long as the legacy session. */
  readonly session: Map<string, unknown>;
  /** Lives as long as the call; middleware leaves things here. */
  readonly state: Map<unknown, unknown>;
  /** Fires when the client cancels, or the call has run out of time. */
  readonly signal: AbortSignal;
  /** Sent when called; awaiting it waits for room. */
  progress(progress: number, rest?: { total?: number | undefined; message?: string | undefined }): Promise<void>;
  log(level: LogLevel, data: unknown, rest?: { logger?: string | undefined }): Promise<void>;
  debug(data: unknown): Promise<void>;
  info(data: unknown): Promise<void>;
  warning(data: unknown): Promise<void>;
  error(data: unknown): Promise<void>;
  /** Throws `Declined` or `Cancelled` when the user does. */
  elicit<const S extends Schema>(message: string, schema: S, rest?: { key?: string | undefined }): Promise<Output<S>>;
  tryElicit<const S extends Schema>(
    message: string,
    schema: S,
    rest?: { key?: string | undefined },
  ): Promise<Outcome<Output<S>>>;
  /** Sends the user to a page; gives the elicitation's id. */
  elicitUrl(message: string, url: string, rest?: { key?: string | undefined }): Promise<string>;
  sample(
    messages: string | readonly (string | Message)[],
    options?: SampleOptions & { key?: string | undefined },
  ): Promise<SampleResult>;
  roots(rest?: { key?: string | undefined }): Promise<Root[]>;
  /** Several questions in one round. */
  ask<const Q extends readonly Question<unknown>[]>(
    ...questions: Q
  ): Promise<{ -readonly [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }>;
  /** The answer to a question that the handler returned before, or undefined. */
  answer<T>(question: Question<T>): T | undefined;
  /** Journals a side effect, so that a replay does not repeat it: at least once, not exactly once. */
  step<T>(key: string, fn: () => Maybe<T>): Promise<T>;
  readResource(uri: string): Promise<ResourceResult>;
  /** Legacy HTTP: let the client poll; the answer waits in the event store. */
  closeStream(rest?: { retryMs?: number | undefined }): Promise<void>;
}

declare const question: unique symbol;

/** A question for the client's user or model; made by `ask.*`, asked by `ctx.ask()` or by returning it. */
export interface Question<T> {
  readonly [question]: T;
}

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

export interface SampleResult {
  readonly role: "user" | "assistant";
  readonly content: readonly Content[];
  readonly text: string;
  readonly model: string;
  readonly stopReason: string | undefined;
}
