import type { ServerCore } from "../server/core.js";
import { Connection, GRACE_MS } from "./connection.js";
import { endProcess, Signals } from "./signals.js";
import { hintInTerminal } from "./terminal.js";

/** Serves over standard input and output until the client disconnects or a signal arrives; then the process ends. */
export async function runStdio(core: ServerCore, graceMs = GRACE_MS): Promise<void> {
  hintInTerminal(core.server.name);
  const signals = new Signals();
  endLine();
  try {
    await new Connection(core, (wake) => core.native.serveStdio(wake)).serve(signals, graceMs);
  } finally {
    signals.release();
  }
  endProcess();
}

/**
 * Ends a line that the program began on standard output, because the first message would otherwise be part of it. Standard
 * output is not opened if the program has not used it, which would slow down the start.
 */
function endLine(): void {
  const { moduleLoadList } = process as { moduleLoadList?: readonly string[] };
  if (moduleLoadList?.includes("NativeModule net") === false) return;
  const { bytesWritten } = process.stdout as { bytesWritten?: number };
  if (bytesWritten !== undefined && bytesWritten > 0) process.stdout.write("\n");
}
