import { bytes, type Check, checkOptions, count, isUrl, milliseconds, oneOf, refuseUnknown, yesOrNo } from "./checks.js";
import { isObject } from "./content.js";
import type { ServerOptions } from "./types.js";

const text: Check = (value) => (typeof value === "string" ? undefined : "must be a text");
const checkedElsewhere: Check = () => undefined;

/** Each option and what is wrong with a value that it can't have. */
const CHECKS: { readonly [K in keyof Required<ServerOptions>]: Check } = {
  version: text,
  title: text,
  instructions: text,
  websiteUrl: (value) => (isUrl(value) ? undefined : 'must be a URL such as "https://example.org"'),
  icons: (value) => (Array.isArray(value) ? undefined : "must be a list of icons, each with its src"),
  lifespan: (value) => (typeof value === "function" ? undefined : "must be a function that gives { value, close }"),
  pageSize: count,
  exposeErrors: (value) =>
    Array.isArray(value) && value.every((one) => typeof one === "function") ? undefined : "must be a list of classes such as RangeError",
  debug: yesOrNo,
  dialects: (value) => (Array.isArray(value) ? undefined : 'must be a list of "0.7" and "bare"'),
  revisions: (value) => (Array.isArray(value) ? undefined : 'must be a list of revisions such as "2025-11-25"'),
  schemaProfile: oneOf("portable", "full"),
  listTtlMs: milliseconds,
  maxMessage: bytes,
  ioThreads: count,
  http: (value) => (isObject(value) ? undefined : "must be an object of options such as { maxBody: 65536 }"),
  requestStateKeys: checkedElsewhere,
  maxRequestState: checkedElsewhere,
  stateTtlMs: checkedElsewhere,
  parkLimit: checkedElsewhere,
  parkTtlMs: checkedElsewhere,
  store: checkedElsewhere,
  auth: checkedElsewhere,
};

/** Refuses what no server has, and values that can't be meant. `place` says whose they are. */
export function checkServerOptions(place: string, options: ServerOptions<unknown>): void {
  refuseUnknown(place, Object.keys(CHECKS), options);
  checkOptions(place, CHECKS, { ...options });
}
