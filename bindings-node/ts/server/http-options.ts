import { bytes, type Check, checkOptions, count, isUrl, list, milliseconds, refuseUnknown, yesOrNo } from "../model/checks.js";
import { SDK_OPTIONS } from "../model/sdk-options.js";
import type { HttpOptions } from "../model/types/options.js";
import { isObject } from "../model/values.js";

/** The check of each option. */
const CHECKS: { readonly [K in keyof Required<HttpOptions>]: Check } = {
  publicUrl: (value) => (isUrl(value) ? undefined : 'must be a URL such as "https://example.org/mcp"'),
  // The core checks each entry.
  allowedOrigins: list('"https://example.org"', () => true),
  allowedHosts: list('"example.org" or "example.org:8443"', () => true),
  cors: (value) => (typeof value === "boolean" ? undefined : list('"https://example.org", or true or false', () => true)(value)),
  legacySse: yesOrNo,
  maxBody: bytes,
  maxSessions: count,
  maxStreams: count,
  maxInFlight: count,
  maxHeaders: bytes,
  headerTimeoutMs: milliseconds,
  idleTimeoutMs: milliseconds,
  sessionIdleMs: milliseconds,
  keepAliveMs: milliseconds,
  eventStore: yesOrNo,
  tls: (value) =>
    isObject(value) && typeof value["cert"] === "string" && typeof value["key"] === "string"
      ? undefined
      : "must be { cert, key }, the paths of two PEM files",
  shutdownGraceMs: milliseconds,
};

/** Returns checked options as the native half reads them; `place` begins the text of errors. */
export function httpOptions(place: string, given: HttpOptions, more: Readonly<Record<string, unknown>> = {}): string {
  refuseUnknown(place, Object.keys(CHECKS), given, SDK_OPTIONS.http);
  checkOptions(place, CHECKS, { ...given });
  return JSON.stringify({ ...given, ...more });
}
