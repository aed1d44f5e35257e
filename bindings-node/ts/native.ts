import type * as Addon from "../native.js";
import { loadAddon } from "./loader.cjs";

export type { NativeClient, NativeSchema, NativeServer, NativeStream } from "../native.js";

/** The native half, loaded when it is first needed. */
export function native(): typeof Addon {
  return loadAddon();
}

/** Calls into the native half; what it refuses is the caller's mistake, and `place` says where. */
export function checked<T>(place: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && (error as { code?: unknown }).code === "InvalidArg") {
      throw new TypeError(`${place}: ${error.message}`, { cause: error });
    }
    throw error;
  }
}
