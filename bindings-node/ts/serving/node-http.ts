import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";

import type { NativeArrival, NativePart } from "../native.js";
import { isPromise } from "../model/promises.js";
import type { Principal } from "../model/types/server.js";
import { type Admitted, type Head, MAX_UNREAD, type Mounted, type NoBody } from "./mounted.js";

const NO_CONTENT = 204;

/** A request with the additions of frameworks: the full target if they changed `url`, the body if they read it, the caller. */
export interface HostRequest extends IncomingMessage {
  originalUrl?: string;
  /** The prefix that Express has removed from `url`. */
  baseUrl?: string;
  body?: unknown;
  principal?: Principal | undefined;
}

/** Answers a request of a `node:http` server. */
export async function answerNode(mounted: Mounted, request: HostRequest, response: ServerResponse): Promise<void> {
  const head = headOf(request, mounted.hasAuth);
  const probed = mounted.probeBeforeStart(head);
  if (probed) return write(response, probed);
  await mounted.ready;
  const begun = mounted.admit(head);
  const admitted = isPromise(begun) ? await begun : begun;
  if (!("number" in admitted)) return write(response, admitted);
  const body = await readBody(mounted, admitted, request).catch((error: unknown) => {
    mounted.refuse(admitted, "gone");
    throw error;
  });
  if (typeof body === "string" || response.destroyed) {
    const reason = typeof body === "string" ? body : "gone";
    const refusal = mounted.refuse(admitted, reason);
    // The rest of the body is not waited for.
    if (reason === "too slow") response.once("finish", () => request.destroy());
    if (reason !== "gone") write(response, refusal);
    return;
  }
  let leave: (() => void) | undefined;
  let hasLeft = false;
  let isReporting = false;
  leave = mounted.request(admitted, body, (part) => {
    if (part.cut || response.writableLength > MAX_UNREAD) {
      hasLeft = true;
      leave?.();
      response.destroy();
    } else {
      write(response, part);
    }
    if (part.counted && !isReporting) {
      isReporting = true;
      response.on("drain", () => mounted.report(admitted, response.writableLength));
      for (const end of ["finish", "close"]) response.once(end, () => mounted.report(admitted, 0));
    }
    return response.destroyed ? 0 : response.writableLength;
  });
  if (hasLeft) leave();
  else if (!response.writableEnded) response.once("close", leave);
}

/** Responds to a request that could not be answered: the lifespan failed, or the host had read the body. */
export function failNode(response: ServerResponse, error: unknown): void {
  console.error("a request could not be answered:", error);
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { "content-type": "application/json" }).end('{"error":"the request could not be answered: the server\'s log says why"}');
}

function write(response: ServerResponse, { status, headers, body, more }: NativePart): void {
  if (status !== undefined) {
    if (!more && status !== NO_CONTENT) headers?.push("content-length", String(body?.byteLength ?? 0));
    response.writeHead(status, headers);
  }
  if (!more) response.end(body);
  else if (body) response.write(body);
  else response.flushHeaders();
}

function headOf(request: HostRequest, hasAuth: boolean): Head {
  const { method = "", originalUrl, url = "/", rawHeaders, principal, body } = request;
  const arrival = hasAuth ? arrivalOf(request) : undefined;
  // A framework that has read the body has decoded it.
  const headers = body === undefined ? rawHeaders : without(rawHeaders, "content-encoding");
  return { method, target: originalUrl ?? url, headers, principal, arrival, peer: peerOf(request.socket) };
}

/** Returns the address of the other side of a connection; `unix` if it came to a Unix socket, whose server has a path as its address. */
function peerOf(socket: (Socket & { server?: Server }) | undefined): string | undefined {
  return socket?.remoteAddress ?? (typeof socket?.server?.address() === "string" ? "unix" : undefined);
}

/** Returns a list of names and values without a header. */
function without(headers: readonly string[], name: string): string[] {
  return headers.filter((_, at) => headers[at - (at % 2)]?.toLowerCase() !== name);
}

function arrivalOf({ socket, baseUrl = "" }: HostRequest): NativeArrival {
  const { localAddress: address = "", localPort: port } = socket;
  return { address, ...(port !== undefined && { port }), prefix: baseUrl, isEncrypted: "encrypted" in socket };
}

/** Returns the whole body, or the reason why there is none. */
async function readBody(mounted: Mounted, admitted: Admitted, request: HostRequest): Promise<Uint8Array | NoBody> {
  const limit = mounted.maxBody;
  if (request.readableDidRead || request.readableEnded) return limited(parsedBody(request), limit);
  const length = Number(request.headers["content-length"]);
  if (length > limit) return "too long";
  if (request.destroyed) return "gone";
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const finish = (body: Uint8Array | NoBody): void => {
      isOver = true;
      clearTimeout(timer);
      chunks.length = 0;
      resolve(body);
    };
    request.on("data", (chunk: Buffer) => {
      // The rest of a refused body is read and dropped, so that the client gets to read the response.
      if (isOver) return;
      size += chunk.byteLength;
      if (size > limit) return finish("too long");
      chunks.push(chunk);
      if (size === length) return;
      const left = mounted.received(admitted, size);
      clearTimeout(timer);
      if (left === undefined) finish("too much");
      else timer = setTimeout(finish, left, "too slow");
    });
    request.once("end", () => finish(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)));
    request.once("close", () => finish("gone"));
  });
}

/** Returns the body that a framework has read. */
function parsedBody({ method, body }: HostRequest): Uint8Array {
  if (body instanceof Uint8Array) return body;
  if (typeof body === "string") return Buffer.from(body);
  if (body !== undefined) return Buffer.from(JSON.stringify(body));
  if (method !== "POST") return Buffer.of();
  throw new TypeError(
    "app.node(request, response): the request's body was read before and is not in request.body; " +
      "mount the server before the middleware that reads bodies, or put the body there: app.node(Object.assign(request.raw, { body: request.body }), reply.raw)",
  );
}

function limited(body: Uint8Array, limit: number): Uint8Array | "too long" {
  return body.byteLength > limit ? "too long" : body;
}
