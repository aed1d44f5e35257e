import {
  type Check, checkedElsewhere, checkOptions, type Checks, classes, count, icons, list, milliseconds, oneOf, refuseUnknown,
  text, yesOrNo,
} from "../model/checks.js";
import { SDK_OPTIONS } from "../model/sdk-options.js";
import type { PromptOptions, ResourceOptions, ToolOptions } from "../model/types/options.js";
import { isObject } from "../model/values.js";

const texts = list('["work"]', () => true);
const object: Check = (value) => (isObject(value) ? undefined : "must be an object");

const COMMON = {
  title: text,
  description: text,
  icons,
  meta: object,
  tags: texts,
  timeoutMs: milliseconds,
  visible: (value) => (typeof value === "function" ? undefined : "must be a function of the principal (undefined without one)"),
  enabled: yesOrNo,
} satisfies Record<string, Check>;

/** The check of each option. */
const CHECKS: {
  readonly tool: { readonly [K in keyof Required<ToolOptions<unknown, unknown>>]: Check };
  readonly resource: { readonly [K in keyof Required<ResourceOptions>]: Check };
  readonly prompt: { readonly [K in keyof Required<PromptOptions<unknown>>]: Check };
} = {
  tool: {
    ...COMMON,
    input: checkedElsewhere,
    inputSchema: checkedElsewhere,
    output: checkedElsewhere,
    unknownArguments: oneOf("refuse", "ignore"),
    annotations: checkedElsewhere,
    concurrency: count,
    replay: oneOf("allow", "forbid"),
    exposeErrors: classes,
  },
  resource: {
    ...COMMON,
    name: text,
    mimeType: text,
    annotations: checkedElsewhere,
    size: (value) => (Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : "must be a number of bytes"),
    ttlMs: milliseconds,
    cacheScope: oneOf("public", "private"),
    cacheMs: milliseconds,
  },
  prompt: { ...COMMON, args: checkedElsewhere },
};

/** Refuses unknown options and values that are not allowed; `place` begins the text. */
export function checkComponentOptions(kind: keyof typeof CHECKS, place: string, options: object): void {
  refuseUnknown(place, Object.keys(CHECKS[kind]), options, SDK_OPTIONS[kind]);
  checkOptions(place, CHECKS[kind], { ...options });
}

/** Each kind's members that `update` can change, with their checks. */
const CHANGES = {
  tool: { title: text, description: text, icons, meta: object, annotations: checkedElsewhere },
  resource: { name: text, title: text, description: text, icons, meta: object, annotations: checkedElsewhere, mimeType: text, size: CHECKS.resource.size },
  resourceTemplate: { name: text, title: text, description: text, icons, meta: object, annotations: checkedElsewhere, mimeType: text },
  prompt: { title: text, description: text, icons, meta: object },
} satisfies Record<string, Checks>;

/** Refuses changes of members that do not exist or can't change; null and undefined take a member away. */
export function checkChanges(kind: keyof typeof CHANGES, place: string, changes: object): void {
  const checks: Checks = CHANGES[kind];
  const component = kind === "resourceTemplate" ? "resource" : kind;
  const fixed = Object.keys(changes).find((name) => !Object.hasOwn(checks, name) && (FIXED.has(name) || Object.hasOwn(CHECKS[component], name)));
  if (fixed === "enabled") throw new TypeError(`${place}: enabled can't be changed here; call enable(name) or disable(name)`);
  if (fixed !== undefined) throw new TypeError(`${place}: ${fixed} can't be changed; remove this ${component} and register it again`);
  refuseUnknown(place, Object.keys(checks), changes, { _meta: "meta" }, "member");
  const given = Object.entries(changes).filter(([, value]) => value !== null);
  checkOptions(place, checks, Object.fromEntries(given));
}

const FIXED: ReadonlySet<string> = new Set(["name", "uri", "uriTemplate", "outputSchema", "arguments"]);
