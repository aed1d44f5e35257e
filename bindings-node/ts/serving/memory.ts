import { checked, type NativeWorkQueue } from "../native.js";
import type { MemoryStream, TestMode } from "../model/in-memory.js";
import { KeepAlive, keepAliveUntil } from "../model/keep-alive.js";
import { principalToJson } from "../model/principal.js";
import { pump } from "../model/transport.js";
import type { Transport } from "../model/types/server.js";
import type { ServerCore } from "../server/core.js";
import { Connection, GRACE_MS } from "./connection.js";

/** Serves one peer in memory, which takes the other end of the stream. */
export function serveMemory(core: ServerCore, testMode?: TestMode): MemoryStream {
  const connection = inMemory(core, testMode);
  let enter!: () => void;
  const entered = new Promise<void>((resolve) => (enter = resolve));
  const closed = connection.serve(undefined, 0, enter);
  const onSend = (listener: () => void): void => {
    core.sendListeners.add(listener);
    const remove = (): void => void core.sendListeners.delete(listener);
    closed.then(remove, remove);
  };
  return { workQueue: connection.workQueue, entered: Promise.race([entered, closed]), closed, onSend };
}

/** Serves one peer over a custom transport. The transport of a test does not keep the process alive. */
export async function serveTransport(core: ServerCore, transport: Transport, graceMs = GRACE_MS, testMode?: TestMode): Promise<void> {
  const connection = inMemory(core, testMode);
  const served = connection.serve(undefined, graceMs);
  // It is awaited below; until then a failure of the lifespan must not be an unhandled rejection.
  served.catch(() => {});
  try {
    await pump(connection.workQueue.takePeer() ?? -1, transport, testMode === undefined);
  } finally {
    await keepAliveUntil(served);
  }
}

function inMemory(core: ServerCore, testMode?: TestMode): Connection {
  if (!testMode) return new Connection(core, (wake) => core.native.serveMemory(wake), { keepAlive: new KeepAlive() });
  const { stateKey, replays, principal, headers } = testMode;
  const settings = { stateKey, replays, headers: [...headers], ...(principal && { principal: principalToJson(principal) }) };
  const open = (wake: () => void): NativeWorkQueue => checked("connect()", () => core.native.serveMemory(wake, settings));
  return new Connection(core, open, { principal, keepAlive: new KeepAlive() });
}
