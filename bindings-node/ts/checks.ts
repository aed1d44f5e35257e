import { isObject } from "./content.js";
import { NotSupported } from "./errors.js";

/** What is wrong with a value that an option can't have. */
export type Check = (value: unknown) => string | undefined;
export type Checks = Readonly<Record<string, Check>>;

/** Checks those that are given; `place` begins every error. */
export function checkOptions(place: string, checks: Checks, given: Readonly<Record<string, unknown>>): void {
  for (const [name, check] of Object.entries(checks)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    const wrong = value === undefined ? undefined : check(value);
    if (wrong !== undefined) throw new TypeError(`${place}: ${name} ${wrong}, not ${shown(value)}`);
  }
}

/** Refuses what none of these options is called. */
export function refuseUnknown(place: string, known: readonly string[], given: unknown): void {
  if (!isObject(given)) throw new TypeError(`${place}: the options must be an object`);
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other !== undefined) throw new TypeError(`${place}: there is no option ${other}; there are ${known.join(", ")}`);
}

/** What nothing here heeds, and what does its work: an option that would be left out without a word is refused. */
export function refuseAbsent(place: string, mends: Readonly<Record<string, string>>, given: object): void {
  for (const [name, hint] of Object.entries(mends)) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    const isGiven = Array.isArray(value) || typeof value === "string" ? value.length > 0 : value !== undefined;
    if (isGiven) throw new NotSupported(`${place}: this version of gudgeon has no ${name}`, { hint });
  }
}

/** For options that whoever uses them looks at. */
export function checkedElsewhere(): undefined {}

/** Empty ones as well. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? undefined : "must be a text";
}

export function icons(value: unknown): string | undefined {
  return Array.isArray(value) ? undefined : "must be a list of icons, each with its src";
}

/** Classes whose errors a client may read. */
export function classes(value: unknown): string | undefined {
  const fits = Array.isArray(value) && value.every((one) => typeof one === "function");
  return fits ? undefined : "must be a list of classes such as RangeError";
}

export function yesOrNo(value: unknown): string | undefined {
  return typeof value === "boolean" ? undefined : "must be true or false";
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

/** No time at all would be no use. */
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
      : `must be a list of texts such as ${example}`;
}

export function isUrl(value: unknown): boolean {
  return typeof value === "string" && /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(value) && URL.canParse(value);
}

function isInteger(value: unknown, least: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= least;
}

function shown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
