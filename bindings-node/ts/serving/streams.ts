import type { Socket } from "node:net";

import { Connection } from "../call/connection.js";
import type { ServerCore } from "../server/core.js";
import { KeepAlive, keepAliveUntil } from "../model/keep-alive.js";
import { checked, type NativeShell } from "../native.js";
import { endProcess, Signals } from "./signals.js";
import { tellTerminal } from "./terminal.js";
import type { Principal, Transport } from "../model/types.js";
import { principalToJson } from "../server/visibility.js";

/** The settings of a connection that a test makes. */
export interface TestMode {
  /** Seals request states where the server has no keys of its own; 32 bytes. */
  readonly stateKey: Uint8Array;
  /** Discards a waiting handler at every question, so that it is replayed. */
  readonly replays: boolean;
  /** The principal of every call. */
  readonly principal: Principal | undefined;
  /** The HTTP headers of every call: names and values in turn. */
  readonly headers: readonly string[];
}

/** The time for calls in flight to finish when the server stops. */
const GRACE_MS = 3_000;

/** Serves over standard input and output until the client disconnects or a signal arrives; then the process ends. */
export async function runStdio(core: ServerCore, graceMs = GRACE_MS): Promise<void> {
  tellTerminal(core.server.name);
  const signals = new Signals();
  endLine();
  try {
    await serve(core, new Connection(core, (wake) => core.native.serveStdio(wake)), signals.came, graceMs);
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

/** Serves one peer in memory, which takes the other end of the stream; `closed` resolves when the server has closed its end. */
export function serveMemory(core: ServerCore, testMode?: TestMode): { shell: NativeShell; entered: Promise<void>; closed: Promise<void> } {
  const connection = inMemory(core, testMode);
  let enter!: () => void;
  const entered = new Promise<void>((resolve) => (enter = resolve));
  const closed = serve(core, connection, undefined, 0, enter);
  return { shell: connection.shell, entered: Promise.race([entered, closed]), closed };
}

/** Serves one peer over a custom transport. The transport of a test does not keep the process alive. */
export async function serveTransport(core: ServerCore, transport: Transport, graceMs = GRACE_MS, testMode?: TestMode): Promise<void> {
  const connection = inMemory(core, testMode);
  const served = serve(core, connection, undefined, graceMs);
  // It is awaited below; until then a failure of the lifespan must not be an unhandled rejection.
  served.catch(() => {});
  try {
    await pump(connection.shell.takePeer() ?? -1, transport, testMode === undefined);
  } finally {
    await keepAliveUntil(served);
  }
}

/** Moves messages between a file descriptor, which it owns, and a transport, until either ends. */
export async function pump(fd: number, transport: Transport, keepsAlive: boolean): Promise<void> {
  // Loaded here, because servers over stdio do not need it at the start.
  const { Socket } = await import("node:net");
  const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
  if (!keepsAlive) socket.unref();
  const failed = (error: unknown) => void socket.destroy(error as Error);
  receiveInto(socket, transport).catch(failed);
  try {
    await sendFrom(socket, transport);
  } finally {
    socket.destroy();
    await transport.close();
  }
}

async function serve(core: ServerCore, connection: Connection, stop: Promise<void> | undefined, graceMs: number, entered?: () => void): Promise<void> {
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

function inMemory(core: ServerCore, testMode?: TestMode): Connection {
  if (!testMode) return new Connection(core, (wake) => core.native.serveMemory(wake), undefined, new KeepAlive());
  const { stateKey, replays, principal, headers } = testMode;
  const settings = { stateKey, replays, headers: [...headers], ...(principal && { principal: principalToJson(principal) }) };
  const open = (wake: () => void): NativeShell => checked("connect()", () => core.native.serveMemory(wake, settings));
  return new Connection(core, open, { principalOf: () => principal }, new KeepAlive());
}

async function receiveInto(socket: Socket, transport: Transport): Promise<void> {
  for (let message = await transport.receive(); message !== undefined; message = await transport.receive()) {
    if (typeof message !== "string") {
      throw new TypeError(`receive() of a Transport must return a string, or undefined at the end, not ${shown(message)}`);
    }
    // JSON may contain line breaks between its tokens; a frame is one line.
    const isFlowing = socket.write(message.replace(/[\r\n]+/g, " ") + "\n");
    if (!isFlowing) await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
  }
  socket.end();
}

function shown(value: unknown): string {
  return typeof value === "object" && value !== null ? value.constructor.name : String(value);
}

async function sendFrom(socket: Socket, transport: Transport): Promise<void> {
  let held = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    const lines = (held + String(chunk)).split("\n");
    held = lines.pop() ?? "";
    for (const line of lines) await transport.send(line);
  }
}
