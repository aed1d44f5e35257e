import {
  bytes, type Check, checkedElsewhere, checkOptions, classes, count, icons, isUrl, milliseconds, oneOf, refuseAbsent, refuseUnknown, text,
  yesOrNo,
} from "./checks.js";
import { isObject } from "./content.js";
import type { ServerOptions } from "./types.js";

/** Each option and what is wrong with a value that it can't have. */
const CHECKS: { readonly [K in keyof Required<ServerOptions>]: Check } = {
  version: text,
  title: text,
  instructions: text,
  websiteUrl: (value) => (isUrl(value) ? undefined : 'must be a URL such as "https://example.org"'),
  icons,
  lifespan: (value) => (typeof value === "function" ? undefined : "must be a function that gives { value, close }"),
  pageSize: count,
  exposeErrors: classes,
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

const ABSENT = {
  auth: "mount the server in an app that checks who calls, and tell it by app.fetch(request, { principal }) or request.principal",
  store: "what a server keeps, it keeps in its own process",
};

/** Refuses what no server has, and values that can't be meant. `place` says whose they are. */
export function checkServerOptions(place: string, options: ServerOptions<unknown>): void {
  refuseUnknown(place, Object.keys(CHECKS), options);
  refuseAbsent(place, ABSENT, options);
  checkOptions(place, CHECKS, { ...options });
}
