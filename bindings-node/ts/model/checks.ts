import { native } from "../native.js";
import { display } from "./display.js";
import { isObject } from "./values.js";

/** Returns what is wrong with a value; undefined where it is allowed. */
export type Check = (value: unknown) => string | undefined;
export type Checks = Readonly<Record<string, Check>>;

/** Advice for names from other SDKs: the name here, or a sentence that says what to do instead. */
export type Advice = Readonly<Record<string, string>>;

/** The functions that take options of the core's table. */
export type Taker = "server" | "tool" | "resource" | "prompt" | "client" | "call" | "callRound" | "readResource" | "complete" | "request" | "subscribe" | "retry" | "http";

/**
 * Throws a TypeError for the first option that does not exist or has a wrong value; `place` begins the text. An option that
 * is undefined counts as absent.
 *
 * @param checks - The checks of options that the core leaves to the binding.
 */
export function checkOptions(taker: Taker, place: string, given: object, checks: Checks = {}): void {
  if (!isObject(given)) throw new TypeError(`${place}: the options must be an object, not ${display(given)}`);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const problem = native().NativeOptions.problem(taker, place, name, value);
    if (problem) throw new TypeError(problem[1] ? `${problem[0]}, not ${display(value)}` : problem[0]);
  }
  checkValues(place, checks, given);
}

/** Throws a TypeError for the first value that its check refuses; `place` begins the text. */
export function checkValues(place: string, checks: Checks, given: Readonly<Record<string, unknown>>): void {
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
export function refuseUnknown(place: string, known: readonly string[], given: unknown, advice: Advice = {}, kind = "option"): void {
  if (!isObject(given)) throw new TypeError(`${place}: the ${kind}s must be an object, not ${display(given)}`);
  const other = Object.keys(given).find((name) => !known.includes(name) && given[name] !== undefined);
  if (other === undefined) return;
  const advised = Object.hasOwn(advice, other) ? advice[other] : undefined;
  throw new TypeError(`${place}: ${native().NativeOptions.unknownName(kind, other, [...known], advised ?? null)}`);
}

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

export function oneOf(...choices: readonly string[]): Check {
  return (value) =>
    choices.some((choice) => choice === value) ? undefined : `must be ${choices.map((choice) => JSON.stringify(choice)).join(" or ")}`;
}

export function isUrl(value: unknown): boolean {
  return typeof value === "string" && /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(value) && URL.canParse(value);
}
