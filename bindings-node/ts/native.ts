import { createRequire } from "node:module";

import type * as Addon from "../native.js";

export type {
  NativeClient, NativeListening, NativeMounted, NativePart, NativeSchema, NativeServer, NativeShell,
} from "../native.js";

let addon: typeof Addon | undefined;

/** The native half, loaded when it is first needed. */
export function native(): typeof Addon {
  addon ??= load();
  return addon;
}

/** Calls into the native half; what it refuses is the caller's mistake, and `place` says where. */
export function checked<T>(place: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw isMisuse(error) ? placed(place, error) : error;
  }
}

/** An error of the native half's that says where it happened. */
export function placed(place: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const message = `${place}: ${error.message}`;
  return isMisuse(error) ? new TypeError(message, { cause: error }) : new Error(message, { cause: error });
}

function isMisuse(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === "InvalidArg";
}

function load(): typeof Addon {
  const given = process.env["GUDGEON_NATIVE"];
  try {
    return createRequire(import.meta.url)(given || "../gudgeon.node") as typeof Addon;
  } catch (error) {
    const where = given ? `GUDGEON_NATIVE names ${given}` : "dist/gudgeon.node belongs into the package";
    throw new Error(
      `gudgeon's native half for ${process.platform}-${process.arch} can't be loaded (${where}). ` +
        "In a checkout run `npm run build:native`; in an installed package remove node_modules and the lock file's entry, " +
        "and install again on this machine; a bundler must leave gudgeon out (esbuild --external:gudgeon).",
      { cause: error },
    );
  }
}
