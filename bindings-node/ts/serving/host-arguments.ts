import type { IncomingMessage, ServerResponse } from "node:http";

import { display } from "../model/display.js";
import type { FastifyReply, FastifyRequest, FetchContext, NodeRequest } from "../model/types/hosts.js";
import { isObject } from "../model/values.js";
import type { HostRequest } from "./node-http.js";

/** Returns the `Request` that a host gave to `app.fetch`: itself, or inside the host's context. */
export function fetchRequestOf(given: Request | FetchContext): Request {
  if (isRequest(given)) return given;
  if (isObject(given)) {
    const { req, request } = given as { req?: unknown; request?: unknown };
    const inside = isObject(req) ? req["raw"] : request;
    if (isRequest(inside)) return inside;
  }
  throw new TypeError(
    `app.fetch takes a Request, or a host's context with one in req.raw or request, not ${display(given)}; ` +
      "hosts of node:http, such as Express and Fastify, take app.node",
  );
}

/** Returns the request and response of node:http that a host gave to `app.node`. Fastify keeps them in wrappers. */
export function nodeArgumentsOf(request: NodeRequest, response: ServerResponse | FastifyReply): [HostRequest, ServerResponse] {
  if (response === undefined) {
    throw new TypeError("app.node is the handler itself: createServer(app.node); its options are new Server(name, { http: { … } })");
  }
  if (isIncoming(request) && isResponse(response)) return [request, response];
  const { raw, body, principal } = request as FastifyRequest;
  if (isIncoming(raw) && isFastifyReply(response)) {
    response.hijack();
    // Fastify has read the body.
    return [Object.assign(raw, { body, ...(principal !== undefined && { principal }) }), response.raw];
  }
  throw new TypeError(
    "app.node takes the request and response of node:http, as Express passes them, or those of Fastify; " +
      "hosts with the Request of the web, such as Hono and Next, take app.fetch",
  );
}

/** By its members: a framework or a bundler may bring its own class. */
function isRequest(value: unknown): value is Request {
  if (!isObject(value)) return false;
  const { method, url, headers } = value as { method?: unknown; url?: unknown; headers?: { get?: unknown } };
  return typeof method === "string" && typeof url === "string" && isObject(headers) && typeof headers["get"] === "function";
}

function isIncoming(value: unknown): value is IncomingMessage {
  return isObject(value) && Array.isArray((value as { rawHeaders?: unknown }).rawHeaders);
}

function isResponse(value: unknown): value is ServerResponse {
  return isObject(value) && typeof (value as { writeHead?: unknown }).writeHead === "function";
}

function isFastifyReply(value: unknown): value is FastifyReply {
  return isObject(value) && typeof (value as { hijack?: unknown }).hijack === "function" && isResponse((value as { raw?: unknown }).raw);
}
