import {
  bytes, type Check, checkedElsewhere, checkOptions, classes, count, icons, isUrl, logger, milliseconds, oneOf, refuseUnknown, text,
  yesOrNo,
} from "../model/checks.js";
import { SDK_OPTIONS } from "../model/sdk-options.js";
import type { ServerOptions } from "../model/types/options.js";
import { isObject } from "../model/values.js";

/** The check of each option. */
const CHECKS: { readonly [K in keyof Required<ServerOptions>]: Check } = {
  version: text,
  title: text,
  instructions: text,
  websiteUrl: (value) => (isUrl(value) ? undefined : 'must be a URL such as "https://example.org"'),
  icons,
  lifespan: (value) => (typeof value === "function" ? undefined : "must be a function that returns { value, close }"),
  pageSize: count,
  exposeErrors: classes,
  debug: yesOrNo,
  dialects: (value) => (Array.isArray(value) ? undefined : 'must be a list of "0.7" and "bare"'),
  revisions: (value) => (Array.isArray(value) ? undefined : 'must be a list of revisions such as "2025-11-25"'),
  schemaProfile: oneOf("portable", "full"),
  listTtlMs: milliseconds,
  maxMessage: bytes,
  ioThreads: count,
  logger,
  http: (value) => (isObject(value) ? undefined : "must be an object of options such as { maxBody: 65536 }"),
  requestStateKeys: checkedElsewhere,
  maxRequestState: checkedElsewhere,
  stateTtlMs: checkedElsewhere,
  parkLimit: checkedElsewhere,
  parkTtlMs: checkedElsewhere,
};

/** Refuses unknown options and values that are not allowed; `place` begins the error. */
export function checkServerOptions(place: string, options: ServerOptions<unknown>): void {
  refuseUnknown(place, Object.keys(CHECKS), options, SDK_OPTIONS.server);
  checkOptions(place, CHECKS, { ...options });
}
