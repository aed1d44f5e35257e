import type { Connection } from "../call/connection.js";
import type { ServerCore } from "../server/core.js";

/** The time for calls in flight to finish when the server stops. */
export const GRACE_MS = 3_000;

/** Serves one peer until its input ends or `stop` resolves; `entered` is called when the lifespan has been entered. */
export async function serve(core: ServerCore, connection: Connection, stop: Promise<void> | undefined, graceMs: number, entered?: () => void): Promise<void> {
  let hasEntered = false;
  try {
    await core.enter();
    hasEntered = true;
    entered?.();
    connection.start();
    await (stop ? Promise.race([connection.ended, stop]) : connection.ended);
  } finally {
    await connection.stop(hasEntered ? graceMs : 0);
    if (hasEntered) await core.leave();
  }
}
