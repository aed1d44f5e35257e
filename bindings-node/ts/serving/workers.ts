import type { ServerCore } from "../server/core.js";

let hasWarned = false;

/** Warns a worker of a cluster without shared keys: a client's answers may reach another worker than the one that asked. */
export async function warnWorker({ native, logger }: ServerCore): Promise<void> {
  // Workers have an IPC channel to their parent.
  if (hasWarned || process.send === undefined || native.hasStateKeys()) return;
  const { default: cluster } = await import("node:cluster");
  if (!cluster.isWorker || hasWarned) return;
  hasWarned = true;
  logger.warn(
    "warning: every worker encrypts requestState with its own key, so another worker rejects a client's answers; " +
      "set the option requestStateKeys, or the environment variable GUDGEON_STATE_KEYS",
  );
}
