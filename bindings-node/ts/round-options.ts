import { bytes, type Check, checkOptions, countOrNone, someMilliseconds } from "./checks.js";
import type { ServerOptions } from "./types.js";

/** Options about questions that travel in results, and the handlers that wait for their answers. */
type RoundOptions = Pick<ServerOptions, "requestStateKeys" | "maxRequestState" | "stateTtlMs" | "parkLimit" | "parkTtlMs">;

const CHECKS: { readonly [K in keyof Omit<Required<RoundOptions>, "requestStateKeys">]: Check } = {
  maxRequestState: bytes,
  stateTtlMs: someMilliseconds,
  parkLimit: countOrNone,
  parkTtlMs: someMilliseconds,
};

/** These options of a server's, as the native half reads them. `place` says whose they are. */
export function roundOptions(place: string, options: RoundOptions): Record<string, unknown> {
  checkOptions(place, CHECKS, { ...options });
  const { requestStateKeys, maxRequestState, stateTtlMs, parkLimit, parkTtlMs } = options;
  return { requestStateKeys: keys(place, requestStateKeys), maxRequestState, stateTtlMs, parkLimit, parkTtlMs };
}

/** Each as a list of its bytes. Errors never show one. */
function keys(place: string, given: unknown): readonly (readonly number[])[] | undefined {
  if (given === undefined) return undefined;
  const isKey = (it: unknown): it is string | Uint8Array => typeof it === "string" || it instanceof Uint8Array;
  if (!Array.isArray(given) || !given.every(isKey)) {
    throw new TypeError(`${place}: requestStateKeys must be a list of texts or bytes: the first seals, every one opens`);
  }
  return given.map((key) => [...(typeof key === "string" ? new TextEncoder().encode(key) : key)]);
}
