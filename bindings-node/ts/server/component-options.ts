import { native } from "../native.js";
import { checkOptions, type Checks, classes, icons, refuseUnknown } from "../model/checks.js";

const CHECKS: Checks = { icons, exposeErrors: classes };

/** Refuses unknown options and values that are not allowed; `place` begins the text. */
export function checkComponentOptions(kind: "tool" | "resource" | "prompt", place: string, options: object): void {
  checkOptions(kind, place, options, CHECKS);
}

/** Each kind's members that `update` can change. */
const CHANGES = {
  tool: ["title", "description", "icons", "meta", "annotations"],
  resource: ["name", "title", "description", "icons", "meta", "annotations", "mimeType", "size"],
  resourceTemplate: ["name", "title", "description", "icons", "meta", "annotations", "mimeType"],
  prompt: ["title", "description", "icons", "meta"],
} as const;

/** Refuses changes of members that do not exist or can't change; null and undefined take a member away. */
export function checkChanges(kind: keyof typeof CHANGES, place: string, changes: object): void {
  const known: readonly string[] = CHANGES[kind];
  const component = kind === "resourceTemplate" ? "resource" : kind;
  const isOption = (name: string): boolean => native().NativeOptions.problem(component, place, name, undefined) === null;
  const fixed = Object.keys(changes).find((name) => !known.includes(name) && (FIXED.has(name) || isOption(name)));
  if (fixed === "enabled") throw new TypeError(`${place}: enabled can't be changed here; call enable(name) or disable(name)`);
  if (fixed !== undefined) throw new TypeError(`${place}: ${fixed} can't be changed; remove this ${component} and register it again`);
  refuseUnknown(place, known, changes, { _meta: "meta" }, "member");
  const given = Object.entries(changes).filter(([, value]) => value !== null);
  checkComponentOptions(component, place, Object.fromEntries(given));
}

const FIXED: ReadonlySet<string> = new Set(["name", "uri", "uriTemplate", "outputSchema", "arguments"]);
