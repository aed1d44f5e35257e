import type { ServerCore } from "./core.js";

let hasWarned = false;

/** Workers of a cluster share a port: answers of a client may reach another one than the question came from. */
export async function warnWorker({ native }: ServerCore): Promise<void> {
  // A worker has a parent that it talks to.
  if (hasWarned || process.send === undefined || native.hasStateKeys()) return;
  const { default: cluster } = await import("node:cluster");
  if (!cluster.isWorker || hasWarned) return;
  hasWarned = true;
  console.warn(
    "warning: every worker seals requestState with a key of its own, so answers of a client that reach another worker " +
      "are refused: give requestStateKeys, or set GUDGEON_STATE_KEYS",
  );
}
