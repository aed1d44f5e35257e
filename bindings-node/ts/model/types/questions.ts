import type { Content } from "./content.js";

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

/** The answer of the client's model; `text` is all its text content, joined by line breaks. */
export interface SampleResult {
  readonly role: "user" | "assistant";
  readonly content: readonly Content[];
  readonly text: string;
  readonly model: string;
  readonly stopReason: string | undefined;
}
