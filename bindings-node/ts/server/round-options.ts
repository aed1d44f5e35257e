import { bytes, type Check, checkOptions, countOrNone, someMilliseconds } from "../model/checks.js";
import type { ServerOptions } from "../model/types/options.js";

/** The options of `requestState` and of suspended handlers. */
type RoundOptions = Pick<ServerOptions, "requestStateKeys" | "maxRequestState" | "stateTtlMs" | "parkLimit" | "parkTtlMs">;

const CHECKS: { readonly [K in keyof Omit<Required<RoundOptions>, "requestStateKeys">]: Check } = {
  maxRequestState: bytes,
  stateTtlMs: someMilliseconds,
  parkLimit: countOrNone,
  parkTtlMs: someMilliseconds,
};

/** Checks these options and returns them as the native module reads them. `place` begins each error. */
export function roundOptions(place: string, options: RoundOptions): Record<string, unknown> {
  checkOptions(place, CHECKS, { ...options });
  const { requestStateKeys, maxRequestState, stateTtlMs, parkLimit, parkTtlMs } = options;
  return { requestStateKeys: keys(place, requestStateKeys), maxRequestState, stateTtlMs, parkLimit, parkTtlMs };
}

/** Returns each key as a list of its bytes. Errors never show a key. */
function keys(place: string, given: unknown): readonly (readonly number[])[] | undefined {
  if (given === undefined) return undefined;
  const isKey = (it: unknown): it is string | Uint8Array => typeof it === "string" || it instanceof Uint8Array;
  if (!Array.isArray(given) || !given.every(isKey)) {
    throw new TypeError(`${place}: requestStateKeys must be a list of strings or Uint8Arrays; the first encrypts, all of them decrypt`);
  }
  return given.map((key) => [...(typeof key === "string" ? new TextEncoder().encode(key) : key)]);
}
