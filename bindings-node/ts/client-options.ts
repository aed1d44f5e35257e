import { type Check, type Checks, checkedElsewhere, checkOptions, oneOf, refuseAbsent, refuseUnknown, yesOrNo } from "./checks.js";
import { isObject } from "./content.js";
import type { CallOptions, ClientOptions } from "./types.js";

const callback: Check = (value) => (typeof value === "function" ? undefined : "must be a function");
const retry: Check = (value) =>
  isObject(value) || oneOf("safe", "never")(value) === undefined ? undefined : 'must be "safe" or "never", or an object { attempts, deadlineMs }';
// One of another realm is none of this one's class.
const signal: Check = (value) =>
  isObject(value) && typeof value["addEventListener"] === "function" ? undefined : "must be an AbortSignal, such as controller.signal";

/** Each option and what is wrong with a value that it can't have. */
const CLIENT: { readonly [K in keyof Required<ClientOptions>]: Check } = {
  revision: checkedElsewhere,
  validate: yesOrNo,
  retry,
  timeoutMs: checkedElsewhere,
  maxTimeoutMs: checkedElsewhere,
  headers: checkedElsewhere,
  auth: checkedElsewhere,
  clientInfo: (value) => (isObject(value) ? undefined : 'must be an object such as { name: "host", version: "1.0" }'),
  roots: checkedElsewhere,
  onElicit: callback,
  onSample: callback,
  onUrlDone: callback,
  onLog: callback,
  onProgress: callback,
  onListChanged: callback,
  onReconnect: callback,
  maxRounds: checkedElsewhere,
  maxMessage: checkedElsewhere,
};

const CALL: { readonly [K in keyof Required<CallOptions>]: Check } = {
  output: checkedElsewhere,
  signal,
  timeoutMs: checkedElsewhere,
  onProgress: callback,
  throwOnError: yesOrNo,
  meta: (value) => (isObject(value) ? undefined : "must be an object"),
};

/** What other calls take beside that. */
const MORE = {
  callTool: CALL,
  callToolRound: { ...CALL, answers: checkedElsewhere, state: checkedElsewhere },
  readResource: { ...CALL, variables: checkedElsewhere },
  getPrompt: CALL,
  request: CALL,
} satisfies Record<string, Checks>;

const ABSENT = { auth: 'send a token by headers: { authorization: "Bearer …" }' };

/** Refuses what no client has, and values that can't be meant. */
export function checkClientOptions(place: string, options: ClientOptions): void {
  refuseUnknown(place, Object.keys(CLIENT), options);
  refuseAbsent(place, ABSENT, options);
  checkOptions(place, CLIENT, { ...options });
}

/** The same of one call's. */
export function checkCallOptions(call: keyof typeof MORE, name: string, options: object): void {
  const place = `${call}(${JSON.stringify(name)})`;
  refuseUnknown(place, Object.keys(MORE[call]), options);
  checkOptions(place, MORE[call], { ...options });
}
