import type { Socket } from "node:net";

import type { Transport } from "./types/server.js";

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

async function receiveInto(socket: Socket, transport: Transport): Promise<void> {
  for (let message = await transport.receive(); message !== undefined; message = await transport.receive()) {
    if (typeof message !== "string") {
      throw new TypeError(`receive() of a Transport must return a string, or undefined at the end, not ${classOf(message)}`);
    }
    // JSON may contain line breaks between its tokens; a frame is one line.
    const isFlowing = socket.write(message.replace(/[\r\n]+/g, " ") + "\n");
    if (!isFlowing) await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
  }
  socket.end();
}

function classOf(value: unknown): string {
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
