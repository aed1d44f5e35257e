import type { IncomingMessage, ServerResponse } from "node:http";

import type { ClientOptions } from "../model/types/client.js";
import type { Logger } from "../model/types/logging.js";

type Fetch = NonNullable<ClientOptions["fetch"]>;

/** Headers of one connection, and of bodies that `fetch` encodes and decodes itself. */
const OF_CONNECTION = new Set(["connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding"]);

/** Answers the HTTP requests on a connection, a file descriptor that it owns, by the option `fetch`. `origin` is that of their URLs. */
export async function answerByFetch(connection: number, origin: string, fetch: Fetch, logger: Logger): Promise<void> {
  // Loaded here, because few clients need them.
  const [{ createServer }, { Socket }] = await Promise.all([import("node:http"), import("node:net")]);
  const socket = new Socket({ fd: connection, readable: true, writable: true });
  // The other end decides how long a connection and a request last.
  const limits = { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 };
  const server = createServer(limits, (request, response) => {
    answer(request, response, origin, fetch).catch((error: unknown) => {
      if (!response.destroyed) logger.error("fetch failed:", error);
      socket.destroy();
    });
  });
  server.emit("connection", socket);
}

async function answer(request: IncomingMessage, response: ServerResponse, origin: string, fetch: Fetch): Promise<void> {
  const controller = new AbortController();
  response.on("close", () => controller.abort());
  const { method = "GET", url = "/", rawHeaders } = request;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] as string, rawHeaders[at + 1] as string];
    if (!OF_CONNECTION.has(name.toLowerCase())) headers.append(name, value);
  }
  const body = await whole(request);
  const init: RequestInit = { method, headers, redirect: "manual", signal: controller.signal };
  if (body.length > 0) init.body = body;
  const answered = await fetch(origin + url, init);
  if (!isResponse(answered)) throw new TypeError("the option fetch must return a Response");
  const fields = [...answered.headers].filter(([name]) => !OF_CONNECTION.has(name) && name !== "set-cookie");
  const cookies = answered.headers.getSetCookie().map((cookie) => ["set-cookie", cookie]);
  response.writeHead(answered.status, [...fields, ...cookies].flat());
  response.flushHeaders();
  for await (const chunk of answered.body ?? []) {
    if (response.destroyed) return;
    if (!response.write(chunk) && !response.destroyed) {
      await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
    }
  }
  response.end();
}

async function whole(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function isResponse(value: unknown): value is Response {
  return typeof value === "object" && value !== null && "status" in value && "headers" in value;
}
