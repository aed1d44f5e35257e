import { stringifyExact } from "./big-integers.js";

/**
 * JSON.stringify that writes BigInts, and replaces halves of surrogate pairs: UTF-8 can't encode them, and many parsers refuse the
 * whole text.
 */
export function stringify(value: unknown): string | undefined {
  const text = written(value);
  return text?.includes("\\ud") ? text.replace(ESCAPE, (escape) => (escape.length > 2 ? "\ufffd" : escape)) : text;
}

function written(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) as string | undefined;
  } catch (error) {
    // A BigInt, or a cycle, which is one here as well.
    if (error instanceof TypeError) return stringifyExact(value);
    throw error;
  }
}

/** Matches escapes; only halves of surrogate pairs are written as \u escapes of this range. */
const ESCAPE = /\\(?:ud[89a-f][0-9a-f]{2}|.)/g;
