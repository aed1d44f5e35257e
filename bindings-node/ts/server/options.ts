import { checked, native } from "../native.js";
import { checkOptions, classes, icons, logger } from "../model/checks.js";
import type { HttpOptions, ServerOptions } from "../model/types/options.js";

/** Refuses unknown options and values that are not allowed; `place` begins the error. */
export function checkServerOptions(place: string, options: ServerOptions<unknown>): void {
  checkOptions("server", place, options, { icons, exposeErrors: classes, logger });
}

/** Returns checked options as the native half reads them; `place` begins the text of errors. */
export function httpOptions(place: string, given: HttpOptions, more: Readonly<Record<string, unknown>> = {}): string {
  checkOptions("http", place, given);
  const options = JSON.stringify({ ...given, ...more });
  checked(place, () => native().NativeOptions.checkHttp(options));
  return options;
}

/** Returns the path of a file of keys. */
export function keysFile(place: string, given: unknown): string | undefined {
  if (given === undefined || typeof given === "string") return given;
  throw new TypeError(`${place}: requestStateKeysFile must be the path of a file of keys, one a line`);
}

/** Returns each key of request states as a list of its bytes. Errors never show a key. */
export function stateKeys(place: string, given: unknown): readonly (readonly number[])[] | undefined {
  if (given === undefined) return undefined;
  const isKey = (key: unknown): key is string | Uint8Array => typeof key === "string" || key instanceof Uint8Array;
  if (!Array.isArray(given) || !given.every(isKey)) {
    throw new TypeError(`${place}: requestStateKeys must be a list of strings or Uint8Arrays; the first encrypts, all of them decrypt`);
  }
  return given.map((key) => [...(typeof key === "string" ? new TextEncoder().encode(key) : key)]);
}
