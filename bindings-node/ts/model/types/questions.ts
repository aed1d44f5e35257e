import type { Content, Message } from "./content.js";

/** The user's answer to a question. */
export type Outcome<T> = { action: "accept"; value: T } | { action: "decline" } | { action: "cancel" };

declare const question: unique symbol;

/** A question for the client's user or model, made by `ask.*`. It is asked with `ctx.ask()`, or by returning it. */
export interface Question<T> {
  readonly [question]: T;
}

/** Options of `ctx.sample()`. Spec: Client Features › Sampling. */
export interface SampleOptions {
  /** Default: 1,024. */
  maxTokens?: number | undefined;
  /** The system prompt. */
  system?: string | undefined;
  temperature?: number | undefined;
  /** Stop sequences. */
  stop?: readonly string[] | undefined;
  /** Names of models, or parts of names, the preferred one first. */
  models?: string | readonly string[] | undefined;
  /** From 0 to 1, like the two below. */
  costPriority?: number | undefined;
  speedPriority?: number | undefined;
  intelligencePriority?: number | undefined;
  tools?: readonly unknown[] | undefined;
  toolChoice?: "auto" | "required" | "none" | undefined;
}

/** Messages for a model: strings are the user's; plain objects have the specification's shape. */
export type SampledMessages = string | Message | SpecMessage | readonly (string | Message | SpecMessage)[];

/** A message in the specification's shape, as other SDKs take it. Spec: Client Features › Sampling. */
export interface SpecMessage {
  readonly role: "user" | "assistant";
  readonly content: SpecContent | readonly SpecContent[];
}

/** A piece of content in the specification's shape, such as `{ type: "text", text: "Hello" }`. */
export interface SpecContent {
  readonly type: "text" | "image" | "audio" | "tool_use" | "tool_result";
  readonly [member: string]: unknown;
}

/** The params of `sampling/createMessage` in the specification's shape, as other SDKs take them. Spec: Client Features › Sampling. */
export interface SpecSampleRequest {
  readonly messages: readonly (string | Message | SpecMessage)[];
  /** Default: 1,024. */
  readonly maxTokens?: number | undefined;
  readonly systemPrompt?: string | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly modelPreferences?: object | undefined;
  readonly includeContext?: "none" | "thisServer" | "allServers" | undefined;
  readonly metadata?: object | undefined;
  readonly tools?: readonly object[] | undefined;
  readonly toolChoice?: { readonly mode?: "auto" | "required" | "none" | undefined } | undefined;
}

/** The answer of the client's model; `text` is all its text content, joined by line breaks. */
export interface SampleResult {
  readonly role: "user" | "assistant";
  readonly content: readonly Content[];
  readonly text: string;
  readonly model: string;
  readonly stopReason: string | undefined;
}
