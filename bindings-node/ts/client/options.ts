import { type Check, checkOptions, checkValues, logger, oneOf, refuseUnknown, type Taker } from "../model/checks.js";
import type { ClientOptions } from "../model/types/client.js";
import { isObject } from "../model/values.js";

const retry: Check = (value) =>
  isObject(value) || oneOf("safe", "never")(value) === undefined ? undefined : 'must be "safe" or "never", or an object { attempts, deadlineMs }';
const limits = {
  attempts: (value) => (Number.isInteger(value) && Number(value) >= 1 ? undefined : "must be a whole number from 1"),
  deadlineMs: (value) => (typeof value === "number" && value >= 0 ? undefined : "must be a number of milliseconds"),
} satisfies Record<string, Check>;
// A signal from another realm is not an instance of this realm's class.
const signal: Check = (value) =>
  isObject(value) && typeof value["addEventListener"] === "function" ? undefined : "must be an AbortSignal, such as controller.signal";

/** The functions that take options of a call. */
const TAKERS = {
  callTool: "call",
  callToolRound: "callRound",
  readResource: "readResource",
  getPrompt: "call",
  request: "call",
} as const satisfies Record<string, Taker>;

/** Refuses unknown options and values that are not allowed; `place` begins the text. */
export function checkClientOptions(place: string, options: ClientOptions): void {
  checkOptions("client", place, options, { retry, logger });
  if (!isObject(options.retry)) return;
  refuseUnknown(`${place}: retry`, Object.keys(limits), options.retry);
  checkValues(`${place}: retry`, limits, options.retry);
}

/** Checks the options of one call. */
export function checkCallOptions(call: keyof typeof TAKERS, name: string, options: object): void {
  checkOptions(TAKERS[call], `${call}(${JSON.stringify(name)})`, options, { signal });
}
