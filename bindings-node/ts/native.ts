import { createRequire } from "node:module";

import type * as Addon from "../native.js";
import { type LogEvent, logEvent } from "./model/logging.js";

export type {
  FailedServer, NativeArrival, NativeAuthorizationServer, NativeClient, NativeConnection, NativeFaultyLink, NativeGroup, NativeListening, NativeMounted, NativePart, NativePlace, NativeQuestions, NativeSchema, NativeServer, NativeSignInQuestion, NativeStoreCall, NativeTelemetry, NativeTokenFile, NativeVerification, NativeWatchdog, NativeWorkQueue, Rejected,
} from "../native.js";

let addon: typeof Addon | undefined;

/** The native module, loaded when it is first needed. */
export function native(): typeof Addon {
  addon ??= load();
  return addon;
}

/** Calls the native module; an argument that it rejects becomes a TypeError that begins with `place`. */
export function checked<T>(place: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw isMisuse(error) ? placed(place, error) : error;
  }
}

/** Returns an error of the native module with `place` before its message. */
export function placed(place: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const message = `${place}: ${error.message}`;
  return isMisuse(error) ? new TypeError(message, { cause: error }) : new Error(message, { cause: error });
}

function isMisuse(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === "InvalidArg";
}

/** Returns the reason that the native module can't be loaded, and the fix. */
function reasonOf(error: unknown, given: string | undefined): string {
  const here = `${process.platform}-${process.arch}${isMusl() ? " (musl)" : ""}`;
  const message = error instanceof Error ? error.message.split("\n")[0] : String(error);
  if (given) return `GUDGEON_NATIVE names ${given}, which was not built for ${here}; unset it, or name a module built for this machine (${message})`;
  const built = builtFor();
  if (built && !built.fits) {
    return (
      `this package was built for ${built.name}, and this is ${here}; run it there, or build it from source on this machine: ` +
      "clone https://github.com/gudgeon-mcp/gudgeon and run `make build-node`"
    );
  }
  if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") {
    return `${message}; build it from source on this machine: clone https://github.com/gudgeon-mcp/gudgeon and run \`make build-node\``;
  }
  return (
    "dist/gudgeon.node is missing; in a checkout run `npm run build:native`, and a bundler must leave gudgeon out " +
    '(esbuild --external:gudgeon, serverExternalPackages: ["gudgeon"] in Next.js)'
  );
}

/** Returns the platforms that the package names; undefined where its manifest is not found, as in a bundle. */
function builtFor(): { name: string; fits: boolean } | undefined {
  let manifest: { name?: unknown; os?: readonly string[]; cpu?: readonly string[]; libc?: readonly string[] };
  try {
    manifest = createRequire(import.meta.url)("../../../package.json") as typeof manifest;
  } catch {
    return undefined;
  }
  const { name, os, cpu, libc } = manifest;
  if (name !== "gudgeon" || !os || !cpu) return undefined;
  const fits = os.includes(process.platform) && cpu.includes(process.arch) && (!libc || libc.includes(isMusl() ? "musl" : "glibc"));
  return { name: `${os.join(", ")}-${cpu.join(", ")}${libc ? ` (${libc.join(", ")})` : ""}`, fits };
}

function isMusl(): boolean {
  if (process.platform !== "linux") return false;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined;
}

function logEvents(json: string | null): void {
  if (json !== null) for (const event of JSON.parse(json) as LogEvent[]) logEvent(event);
}

function load(): typeof Addon {
  const given = process.env["GUDGEON_NATIVE"];
  try {
    const loaded = createRequire(import.meta.url)(given || "../gudgeon.node") as typeof Addon;
    const log = (): void => logEvents(loaded.NativeLogs.take());
    loaded.NativeLogs.listen(log);
    // The messages that were logged in the last turn of the event loop.
    process.once("exit", log);
    process.once("exit", () => {
      // No client is dropped when the process ends. The servers of a process do not end with one of its worker threads.
      const threads = createRequire(import.meta.url)("node:worker_threads") as typeof import("node:worker_threads");
      if (threads.isMainThread) loaded.NativePlace.terminateServers();
    });
    return loaded;
  } catch (error) {
    throw new Error(`gudgeon's native module can't be loaded: ${reasonOf(error, given)}`, { cause: error });
  }
}
