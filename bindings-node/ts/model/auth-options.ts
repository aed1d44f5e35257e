import { type Check, refuseUnknown } from "./checks.js";
import { typeName } from "./display.js";
import { isObject } from "./values.js";

/** The checks of options, and the names of those that must be given. */
export interface Known {
  readonly checks: Readonly<Record<string, Check>>;
  readonly required?: readonly string[];
}

/**
 * Checks options of credentials. Errors never show a value, which may be secret.
 *
 * @param place - The beginning of errors, such as `jwt()`.
 * @throws TypeError for an option that is unknown or missing, or has a wrong value.
 */
export function checkAuthOptions(place: string, { checks, required = [] }: Known, given: unknown): void {
  if (!isObject(given)) throw new TypeError(`${place}: the options must be an object, not ${kindOf(given)}`);
  refuseUnknown(place, Object.keys(checks), given);
  for (const [name, check] of Object.entries(checks)) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    const wrong = value === undefined && !required.includes(name) ? undefined : check(value);
    if (wrong !== undefined) throw new TypeError(`${place}: ${name} ${wrong}${value === undefined ? "" : `, not ${kindOf(value)}`}`);
  }
}

/** Returns a list of strings; throws a TypeError for anything else. */
export function stringsIn(place: string, name: string, value: unknown): readonly string[] {
  const wrong = strings(value);
  if (wrong !== undefined) throw new TypeError(`${place}: ${name} ${wrong}`);
  return [...(value as readonly string[])];
}

export function strings(value: unknown): string | undefined {
  if (typeof value === "string") return `must be a list of strings; write [${JSON.stringify(value)}]`;
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? undefined : 'must be a list of strings such as ["books:read"]';
}

/** A string that is not empty. */
export function filled(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? undefined : "must be a string that is not empty";
}

export function audience(value: unknown): string | undefined {
  return typeof value === "string" || strings(value) === undefined ? undefined : "must be a string or a list of strings";
}

export function jsonObject(value: unknown): string | undefined {
  return isObject(value) ? undefined : "must be an object";
}

/** Milliseconds. */
export function duration(value: unknown): string | undefined {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? undefined : "must be a number of milliseconds, 0 or more";
}

function kindOf(value: unknown): string {
  return value === "" ? "an empty string" : typeName(value);
}
