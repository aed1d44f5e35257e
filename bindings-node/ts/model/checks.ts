import { display } from "./display.js";
import { type Advice, unknownName } from "./unknown-names.js";
import { isObject } from "./values.js";

/** Returns what is wrong with an option's value; undefined where it is allowed. */
export type Check = (value: unknown) => string | undefined;
export type Checks = Readonly<Record<string, Check>>;

/** Throws a TypeError for the first value that its check refuses; `place` begins the text. */
export function checkOptions(place: string, checks: Checks, given: Readonly<Record<string, unknown>>): void {
  for (const [name, check] of Object.entries(checks)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    const wrong = value === undefined ? undefined : check(value);
    if (wrong !== undefined) throw new TypeError(`${place}: ${name} ${wrong}, not ${display(value)}`);
  }
}

/**
 * Throws a TypeError unless the value is an object with known members only. A member that is undefined counts as absent.
 *
 * @param kind - The sort of member. Default: "option".
 */
export function refuseUnknown(place: string, known: readonly string[], given: unknown, advice?: Advice, kind = "option"): void {
  if (!isObject(given)) throw new TypeError(`${place}: the ${kind}s must be an object, not ${display(given)}`);
  const other = Object.keys(given).find((name) => !known.includes(name) && given[name] !== undefined);
  if (other !== undefined) throw new TypeError(`${place}: ${unknownName(kind, other, known, advice)}`);
}

/** The check of an option that is checked where it is used. */
export function checkedElsewhere(): undefined {}

/** A string, empty ones included. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? undefined : "must be a string";
}

export function icons(value: unknown): string | undefined {
  const fits = Array.isArray(value) && value.every((one) => isObject(one) && typeof one["src"] === "string");
  return fits ? undefined : 'must be a list of icons such as [{ src: "https://example.org/icon.png" }]';
}

/** A list of error classes. */
export function classes(value: unknown): string | undefined {
  const fits = Array.isArray(value) && value.every((one) => typeof one === "function");
  return fits ? undefined : "must be a list of classes such as RangeError";
}

/** An object of strings. */
export function stringsByName(value: unknown): string | undefined {
  const fits = isObject(value) && Object.values(value).every((one) => typeof one === "string");
  return fits ? undefined : "must be an object of strings";
}

export function yesOrNo(value: unknown): string | undefined {
  return typeof value === "boolean" ? undefined : "must be true or false";
}

/** An object with the methods of `console` that log. */
export function logger(value: unknown): string | undefined {
  const fits = isObject(value) && ["debug", "info", "warn", "error"].every((name) => typeof value[name] === "function");
  return fits ? undefined : "must have the methods debug, info, warn and error, as console has";
}

export function count(value: unknown): string | undefined {
  return isInteger(value, 1) ? undefined : "must be an integer from 1";
}

export function countOrNone(value: unknown): string | undefined {
  return isInteger(value, 0) ? undefined : "must be an integer, or 0 for none";
}

export function bytes(value: unknown): string | undefined {
  return count(value) && "must be a number of bytes, an integer from 1";
}

export function milliseconds(value: unknown): string | undefined {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? undefined : "must be a number of milliseconds";
}

export function someMilliseconds(value: unknown): string | undefined {
  return milliseconds(value) === undefined && value !== 0 ? undefined : "must be a number of milliseconds above 0";
}

export function oneOf(...choices: readonly string[]): Check {
  return (value) => (choices.some((it) => it === value) ? undefined : `must be ${choices.map((it) => JSON.stringify(it)).join(" or ")}`);
}

export function list(example: string, isRight: (one: string) => boolean): Check {
  return (value) =>
    Array.isArray(value) && value.every((one) => typeof one === "string" && isRight(one))
      ? undefined
      : `must be a list of strings such as ${example}`;
}

export function isUrl(value: unknown): boolean {
  return typeof value === "string" && /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(value) && URL.canParse(value);
}

function isInteger(value: unknown, least: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= least;
}
