import { native } from "../native.js";

/** The beginning of the strings that stand for BigInts in JSON. Nobody else knows it. */
let mark: string | undefined;

/** Parses a JSON text; integers that a number can't hold become BigInts. */
export function parseJson(text: string): unknown {
  const marked = MANY_DIGITS.test(text) ? native().NativeIntegers.marked(text) : null;
  return marked === null ? JSON.parse(text) : parseMarked(marked);
}

/** Parses a JSON text in which the native half has marked the integers that a number can't hold. */
export function parseMarked(text: string): unknown {
  return text.includes(markOf()) ? JSON.parse(text, revived) : JSON.parse(text);
}

/** JSON.stringify, which refuses BigInts, with their digits. */
export function stringifyExact(value: unknown): string | undefined {
  const beginning = markOf();
  const marked = JSON.stringify(value, (_key, one: unknown) => (typeof one === "bigint" ? `${beginning}${one}` : one)) as string | undefined;
  return marked?.replaceAll(new RegExp(`"${beginning}(-?\\d+)"`, "g"), "$1");
}

/** The smallest integer that a number can't hold has 16 digits. */
const MANY_DIGITS = /\d{16}/;

function markOf(): string {
  return (mark ??= native().NativeIntegers.mark());
}

function revived(_key: string, value: unknown): unknown {
  return typeof value === "string" && mark !== undefined && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value;
}
