import { native } from "../native.js";
import { checkOptions, type Checks, classes, icons } from "../model/checks.js";
import { display } from "../model/display.js";
import { isObject } from "../model/values.js";

const CHECKS: Checks = { icons, exposeErrors: classes };

/** Refuses unknown options and values that are not allowed; `place` begins the text. */
export function checkComponentOptions(kind: "tool" | "resource" | "prompt", place: string, options: object): void {
  checkOptions(kind, place, options, CHECKS);
}

/** Refuses changes of members that do not exist or can't change; null and undefined take a member away. */
export function checkChanges(kind: "tool" | "resource" | "resourceTemplate" | "prompt", place: string, changes: object): void {
  if (!isObject(changes)) throw new TypeError(`${place}: the members must be an object, not ${display(changes)}`);
  for (const name of Object.keys(changes)) {
    const problem = native().NativeOptions.changeProblem(kind, name);
    if (problem !== null) throw new TypeError(`${place}: ${problem}`);
  }
  const given = Object.entries(changes).filter(([, value]) => value !== null);
  checkComponentOptions(kind === "resourceTemplate" ? "resource" : kind, place, Object.fromEntries(given));
}
