import { type Check, checkedElsewhere, checkOptions, type Checks, logger, oneOf, refuseUnknown, yesOrNo } from "../model/checks.js";
import { SDK_OPTIONS } from "../model/sdk-options.js";
import type { CallOptions, ClientOptions } from "../model/types/client.js";
import { isObject } from "../model/values.js";

const callback: Check = (value) => (typeof value === "function" ? undefined : "must be a function");
const retry: Check = (value) =>
  isObject(value) || oneOf("safe", "never")(value) === undefined ? undefined : 'must be "safe" or "never", or an object { attempts, deadlineMs }';
// A signal from another realm is not an instance of this realm's class.
const signal: Check = (value) =>
  isObject(value) && typeof value["addEventListener"] === "function" ? undefined : "must be an AbortSignal, such as controller.signal";

/** The check of each option. */
const CLIENT: { readonly [K in keyof Required<ClientOptions>]: Check } = {
  revision: checkedElsewhere,
  validate: yesOrNo,
  retry,
  timeoutMs: checkedElsewhere,
  maxTimeoutMs: checkedElsewhere,
  headers: checkedElsewhere,
  clientInfo: (value) => (isObject(value) ? undefined : 'must be an object such as { name: "host", version: "1.0" }'),
  roots: checkedElsewhere,
  onElicit: callback,
  onSample: callback,
  onUrlDone: callback,
  onLog: callback,
  onProgress: callback,
  onListChanged: callback,
  onReconnect: callback,
  logger,
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

/** The options of each call. */
const MORE = {
  callTool: CALL,
  callToolRound: { ...CALL, answers: checkedElsewhere, state: checkedElsewhere },
  readResource: { ...CALL, variables: checkedElsewhere },
  getPrompt: CALL,
  request: CALL,
} satisfies Record<string, Checks>;

/** Refuses unknown options and values that are not allowed; `place` begins the text. */
export function checkClientOptions(place: string, options: ClientOptions): void {
  refuseUnknown(place, Object.keys(CLIENT), options, SDK_OPTIONS.client);
  checkOptions(place, CLIENT, { ...options });
}

/** Checks the options of one call. */
export function checkCallOptions(call: keyof typeof MORE, name: string, options: object): void {
  const place = `${call}(${JSON.stringify(name)})`;
  refuseUnknown(place, Object.keys(MORE[call]), options, SDK_OPTIONS.call);
  checkOptions(place, MORE[call], { ...options });
}
