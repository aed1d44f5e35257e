import { type Checks, checkValues, refuseUnknown, text, yesOrNo } from "./checks.js";
import { display } from "./display.js";
import type { ToolAnnotations } from "./types/content.js";
import { isObject } from "./values.js";

type Wire = Readonly<Record<string, unknown>>;

/** The names of a tool's hints here and in the specification. */
const HINTS = [
  ["readOnly", "readOnlyHint"],
  ["destructive", "destructiveHint"],
  ["idempotent", "idempotentHint"],
  ["openWorld", "openWorldHint"],
] as const;

const TOOL: Checks = { title: text, readOnly: yesOrNo, destructive: yesOrNo, idempotent: yesOrNo, openWorld: yesOrNo };
const CONTENT: Checks = {
  audience: (value) =>
    Array.isArray(value) && value.every((one) => one === "user" || one === "assistant") ? undefined : 'must be a list of "user" and "assistant"',
  priority: (value) => (typeof value === "number" && value >= 0 && value <= 1 ? undefined : "must be a number from 0 to 1"),
  lastModified: text,
};

/** Checks a tool's annotations, whose hints may have their names here or in the specification, and returns the wire's form. */
export function checkedToolAnnotations(place: string, given: Readonly<Record<string, unknown>>): Wire {
  const annotations: Record<string, unknown> = isObject(given) ? { ...given } : given;
  for (const [ours, theirs] of HINTS) {
    if (annotations[theirs] === undefined) continue;
    if (annotations[ours] !== undefined) throw new TypeError(`${place}: annotations: ${ours} and ${theirs} are one hint; give one of them`);
    annotations[ours] = annotations[theirs];
    delete annotations[theirs];
  }
  check(place, TOOL, annotations);
  return annotationsToWire(annotations);
}

/** Checks the annotations of a resource; the wire's form is the same. */
export function checkedAnnotations(place: string, given: object): Wire {
  check(place, CONTENT, given);
  return given as Wire;
}

function check(place: string, checks: Checks, given: unknown): void {
  if (!isObject(given)) throw new TypeError(`${place}: annotations must be an object, not ${display(given)}`);
  refuseUnknown(`${place}: annotations`, Object.keys(checks), given, {}, "member");
  checkValues(`${place}: annotations`, checks, given);
}

export function annotationsToWire(annotations: ToolAnnotations): Wire {
  const wire: Record<string, unknown> = {};
  if (annotations.title !== undefined) wire["title"] = annotations.title;
  for (const [ours, theirs] of HINTS) if (annotations[ours] !== undefined) wire[theirs] = annotations[ours];
  return wire;
}

export function annotationsFromWire(raw: Wire): ToolAnnotations {
  const annotations: ToolAnnotations = {};
  if (typeof raw["title"] === "string") annotations.title = raw["title"];
  for (const [ours, theirs] of HINTS) {
    const hint = raw[theirs];
    if (typeof hint === "boolean") annotations[ours] = hint;
  }
  return annotations;
}
