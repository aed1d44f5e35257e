import { isContent, isMessage } from "./content.js";
import { stringify } from "./stringify.js";

/**
 * Returns a value as JSON text. `undefined` is left out of objects and is null in lists, as with JSON.stringify. A BigInt is an
 * integer. Half of a surrogate pair, as in a string that was cut, becomes U+FFFD.
 *
 * @param place - The name of the value in errors.
 * @throws TypeError for values that JSON would silently lose (NaN, a function, a Map, bytes) or can't represent (a cycle), with
 *   their place.
 */
export function toJson(value: unknown, place = "the result"): string {
  let fault: string | undefined;
  try {
    if (!isPlain(value, 0)) fault = findFault(value, place, new Set());
    const text = fault === undefined ? stringify(value) : undefined;
    if (text !== undefined) return text;
    fault ??= `${place} is undefined, which JSON can't represent`;
  } catch (error) {
    fault = error instanceof RangeError ? `${place} is nested too deeply` : `${place} can't be written as JSON: ${String(error)}`;
  }
  throw new TypeError(fault);
}

const DEEP = 64;

/** The quick check: returns true if JSON.stringify loses nothing of the value. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > DEEP) return false;
  if (Array.isArray(value)) return value.every((item) => item === undefined || isPlain(item, depth + 1));
  if (Object.getPrototypeOf(value) !== Object.prototype || isContent(value) || isMessage(value) || "toJSON" in value) {
    return false;
  }
  for (const key in value) {
    const field = (value as Record<string, unknown>)[key];
    if (field !== undefined && !isPlain(field, depth + 1)) return false;
  }
  return true;
}

/** The slow check: returns what JSON can't represent, and its place. */
function findFault(value: unknown, place: string, above: Set<object>): string | undefined {
  if (typeof value === "function" || typeof value === "symbol") return `${place} is a ${typeof value}, which JSON can't represent`;
  if (value instanceof Number) value = Number(value);
  if (typeof value === "number" && !Number.isFinite(value)) return `${place} is ${value}, ${NO_NUMBER}`;
  if (typeof value !== "object" || value === null) return undefined;
  if (above.has(value)) return `${place} contains itself (a cycle), which JSON can't represent`;
  if (isContent(value)) return `${place} is content inside other data; return content alone, in a list, or in a ToolResult`;
  if (isMessage(value)) return `${place} is a prompt's message; only prompts return messages`;
  const lost = LOST.find(([made]) => value instanceof made);
  if (lost) return `${place} is ${lost[1]}, which JSON can't represent; ${lost[2]}`;
  if (value instanceof Date && Number.isNaN(value.getTime())) return `${place} is an invalid date, ${NO_NUMBER}`;
  above.add(value);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const fault = findFault(value.toJSON(""), place, above);
    above.delete(value);
    return fault;
  }
  const made = Object.prototype.toString.call(value).slice(8, -1);
  if (!PLAIN.has(made) && Object.keys(value).length === 0) return `${place} is of class ${made}, which JSON can't represent; write its contents`;
  for (const [key, field] of Object.entries(value)) {
    const fault = findFault(field, place + step(key, Array.isArray(value)), above);
    if (fault !== undefined) return fault;
  }
  above.delete(value);
  return undefined;
}

function step(key: string, inList: boolean): string {
  if (inList) return `[${key}]`;
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

const NO_NUMBER = "which JSON can't represent; write null or a string";

/** The classes that JSON.stringify supports. Other objects without own properties would be written as empty ones. */
const PLAIN = new Set(["Object", "Array", "Boolean", "Number", "String"]);

const BYTES = "use image(), audio(), embed(), or base64 text";

const LOST: readonly (readonly [made: abstract new (...args: never[]) => object, name: string, fix: string])[] = [
  [Map, "a Map", "write Object.fromEntries(map)"],
  [Set, "a Set", "write [...set]"],
  [ArrayBuffer, "an ArrayBuffer", BYTES],
  [DataView, "a DataView", BYTES],
  [Object.getPrototypeOf(Uint8Array) as typeof Uint8Array, "a typed array", BYTES],
  [Promise, "a Promise", "await it"],
  [Error, "an Error", "throw it, or write its message"],
];
