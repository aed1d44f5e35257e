import { type Check, checkOptions, count, milliseconds, oneOf, refuseUnknown, yesOrNo } from "./checks.js";
import { isObject } from "./content.js";
import type { PromptOptions, ResourceOptions, ToolOptions } from "./types.js";

const text: Check = (value) => (typeof value === "string" ? undefined : "must be a text");
const texts: Check = (value) =>
  Array.isArray(value) && value.every((one) => typeof one === "string") ? undefined : 'must be a list of texts such as ["work"]';
const object: Check = (value) => (isObject(value) ? undefined : "must be an object");
const checkedElsewhere: Check = () => undefined;

/** Classes whose errors a client may read. */
export const classes: Check = (value) =>
  Array.isArray(value) && value.every((one) => typeof one === "function") ? undefined : "must be a list of classes such as RangeError";

const COMMON = {
  title: text,
  description: text,
  icons: (value) => (Array.isArray(value) ? undefined : "must be a list of icons, each with its src"),
  meta: object,
  tags: texts,
  timeoutMs: milliseconds,
  scopes: texts,
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

/** Refuses what no such offer has, and values that can't be meant. `place` says whose they are. */
export function checkOfferOptions(kind: keyof typeof CHECKS, place: string, options: object): void {
  refuseUnknown(place, Object.keys(CHECKS[kind]), options);
  checkOptions(place, CHECKS[kind], { ...options });
}
