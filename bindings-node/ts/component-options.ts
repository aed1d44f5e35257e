import {
  type Check, checkedElsewhere, checkOptions, classes, count, icons, list, milliseconds, oneOf, refuseAbsent, refuseUnknown,
  text, yesOrNo,
} from "./checks.js";
import { isObject } from "./content.js";
import type { PromptOptions, ResourceOptions, ToolOptions } from "./types.js";

const texts = list('["work"]', () => true);
const object: Check = (value) => (isObject(value) ? undefined : "must be an object");

const COMMON = {
  title: text,
  description: text,
  icons,
  meta: object,
  tags: texts,
  timeoutMs: milliseconds,
  scopes: checkedElsewhere,
  visible: (value) => (typeof value === "function" ? undefined : "must be a function of the principal, or of undefined where nobody is known"),
  enabled: yesOrNo,
} satisfies Record<string, Check>;

/** Each option and what is wrong with a value that it can't have. */
const CHECKS: {
  readonly tool: { readonly [K in keyof Required<ToolOptions<unknown, unknown>>]: Check };
  readonly resource: { readonly [K in keyof Required<ResourceOptions>]: Check };
  readonly prompt: { readonly [K in keyof Required<PromptOptions<unknown>>]: Check };
} = {
  tool: {
    ...COMMON,
    input: checkedElsewhere,
    output: checkedElsewhere,
    annotations: object,
    concurrency: count,
    replay: oneOf("allow", "forbid"),
    exposeErrors: classes,
  },
  resource: {
    ...COMMON,
    name: text,
    mimeType: text,
    annotations: object,
    size: (value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : "must be a number of bytes"),
    ttlMs: milliseconds,
    cacheScope: oneOf("public", "private"),
    cacheMs: milliseconds,
  },
  prompt: { ...COMMON, args: checkedElsewhere },
};

const ABSENT = { scopes: 'visible is asked who may see and call it: visible: (who) => who?.scopes.has("admin") === true' };

/** Refuses what no such component has, and values that can't be meant. `place` says whose they are. */
export function checkComponentOptions(kind: keyof typeof CHECKS, place: string, options: object): void {
  refuseUnknown(place, Object.keys(CHECKS[kind]), options);
  refuseAbsent(place, ABSENT, options);
  checkOptions(place, CHECKS[kind], { ...options });
}
