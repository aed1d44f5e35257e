import { isObject } from "./content.js";
import type { HttpOptions } from "./types.js";

type Check = (value: unknown) => string | undefined;

/** Each option and what is wrong with a value that it can't have. */
const CHECKS: { readonly [K in keyof Required<HttpOptions>]: Check } = {
  publicUrl: (value) => (isUrl(value) ? undefined : 'must be a URL such as "https://example.org/mcp"'),
  allowedOrigins: list('"https://example.org"', (one) => one === "null" || isUrl(one)),
  allowedHosts: list('"example.org" or "example.org:8443"', (one) => !/[/\s@]/.test(one) && one !== ""),
  cors: (value) => (typeof value === "boolean" ? undefined : list('"https://example.org", or true or false', isUrl)(value)),
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

/** Options as the native half reads them. `place` says whose they are. */
export function httpOptions(place: string, given: HttpOptions, more: Readonly<Record<string, unknown>> = {}): string {
  if (!isObject(given)) throw new TypeError(`${place}: the options must be an object`);
  for (const [name, value] of Object.entries(given)) {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name as keyof HttpOptions] : undefined;
    if (!check) throw new TypeError(`${place}: there is no option ${name}; there are ${Object.keys(CHECKS).join(", ")}`);
    const wrong = value === undefined ? undefined : check(value);
    if (wrong !== undefined) throw new TypeError(`${place}: ${name} ${wrong}, not ${shown(value)}`);
  }
  return JSON.stringify({ ...given, ...more });
}

function yesOrNo(value: unknown): string | undefined {
  return typeof value === "boolean" ? undefined : "must be true or false";
}

function count(value: unknown): string | undefined {
  return Number.isSafeInteger(value) && Number(value) > 0 ? undefined : "must be an integer from 1";
}

function bytes(value: unknown): string | undefined {
  return count(value) && "must be a number of bytes, an integer from 1";
}

function milliseconds(value: unknown): string | undefined {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? undefined : "must be a number of milliseconds";
}

function list(example: string, isRight: (one: string) => boolean): Check {
  return (value) =>
    Array.isArray(value) && value.every((one) => typeof one === "string" && isRight(one))
      ? undefined
      : `must be a list of texts such as ${example}`;
}

function isUrl(value: unknown): boolean {
  return typeof value === "string" && /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(value) && URL.canParse(value);
}

function shown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
