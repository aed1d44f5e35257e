import type { ServerCore } from "../server/core.js";

let hasWarned = false;

/** Returns true in a worker of a cluster, whose workers serve one port together. */
export async function isClusterWorker(): Promise<boolean> {
  // Workers have an IPC channel to their parent.
  if (process.send === undefined) return false;
  const { default: cluster } = await import("node:cluster");
  return cluster.isWorker;
}

/** Warns a worker of a cluster without shared keys: a client's answers may reach another worker than the one that asked. */
export async function warnWorker({ native, logger }: ServerCore): Promise<void> {
  if (hasWarned || native.hasStateKeys() || !(await isClusterWorker()) || hasWarned) return;
  hasWarned = true;
  logger.warn(
    "warning: every worker encrypts requestState with its own key, so another worker rejects a client's answers; " +
      "set the option requestStateKeys, or the environment variable GUDGEON_STATE_KEYS",
  );
}
