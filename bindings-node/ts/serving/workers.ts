import { createRequire } from "node:module";

import type { NativeServer } from "../native.js";
import type { ServerCore } from "../server/core.js";

let hasWarned = false;

/** The servers of this worker, which leave the others when it ends. */
const joined = new Set<NativeServer>();

/** Returns true in a worker of a cluster, whose workers serve one port together. */
export function isClusterWorker(): boolean {
  // Workers have an IPC channel to their parent; other programs do not load the module.
  if (process.send === undefined) return false;
  return (createRequire(import.meta.url)("node:cluster") as typeof import("node:cluster").default).isWorker;
}

/**
 * Has a worker of a cluster share keys with the others, and what a store has if the server has none. Returns the folder in which those that serve one address find each other, or
 * undefined outside a cluster and where there is none.
 */
export function joinWorkers({ native, logger, options }: ServerCore): string | undefined {
  if (!isClusterWorker()) return undefined;
  try {
    const folder = native.joinWorkers(process.ppid, options.store === undefined);
    if (joined.size === 0) process.on("exit", () => joined.forEach((server) => server.leaveWorkers()));
    joined.add(native);
    if (folder !== null) return folder;
    warn(logger, "every worker encrypts sessions and requestState with its own key; set the option requestStateKeys, or the environment variable GUDGEON_STATE_KEYS", native.hasStateKeys());
  } catch (error) {
    warn(logger, (error as Error).message, false);
  }
  return undefined;
}

function warn(logger: ServerCore["logger"], text: string, isNeedless: boolean): void {
  if (hasWarned || isNeedless) return;
  hasWarned = true;
  logger.warn(`warning: ${text}`);
}
