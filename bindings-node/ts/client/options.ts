import { type Check, checkOptions, logger, type Taker } from "../model/checks.js";
import type { ClientOptions } from "../model/types/client.js";
import { isObject } from "../model/values.js";

// A signal from another realm is not an instance of this realm's class.
const signal: Check = (value) =>
  isObject(value) && typeof value["addEventListener"] === "function" ? undefined : "must be an AbortSignal, such as controller.signal";

const middleware: Check = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === "function") ? undefined : "must be an array of functions (request, next)";

/** The functions that take options of a call. */
const TAKERS = {
  callTool: "call",
  callToolRound: "callRound",
  readResource: "readResource",
  getPrompt: "call",
  request: "call",
  complete: "complete",
} as const satisfies Record<string, Taker>;

/** Refuses unknown options and values that are not allowed; `place` begins the text. */
export function checkClientOptions(place: string, options: ClientOptions): void {
  checkOptions("client", place, options, { logger, middleware });
  if (isObject(options.retry)) checkOptions("retry", `${place}: retry`, options.retry);
}

/** Checks the options of a request that has none of its own; `call` is the method. */
export function checkRequestOptions(call: string, options: object): void {
  checkOptions("request", `${call}()`, options, { signal });
}

/** Checks the options of one call. */
export function checkCallOptions(call: keyof typeof TAKERS, name: string, options: object): void {
  checkOptions(TAKERS[call], `${call}(${JSON.stringify(name)})`, options, { signal });
}
