import type { ServerResponse } from "node:http";

import type { FastifyReply, FetchContext, NodeRequest } from "./hosts.js";
import type { Principal } from "./principal.js";

export type { Principal } from "./principal.js";

/**
 * A custom transport: JSON-RPC messages as strings, one at a time. `receive` resolves with undefined at the end.
 *
 * Spec: Base Protocol › Transports › Custom transports.
 */
export interface Transport {
  receive(): Promise<string | undefined>;
  send(message: string): Promise<void>;
  close(): Promise<void>;
}

/** A function that answers a `Request`, or a host's context with one; it fits the types of hosts such as Hono, Next and Bun. */
export interface FetchHandler {
  (request: Request | FetchContext, extra?: { principal?: Principal | undefined; remoteAddress?: string | undefined }): Promise<Response>;
  /** Ignores the other arguments of a host, such as an environment or a route's parameters, apart from `principal` and `remoteAddress`. */
  <Host>(request: Request | FetchContext, host: Host extends { principal: unknown } ? never : Host, ...more: unknown[]): Promise<Response>;
}

/** The methods of routes. */
export type RouteMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Options of `app.route()`. */
export interface RouteOptions {
  /** Authenticates callers as those of the endpoint, by `new Server({ auth })`. Default: false; everybody may call. */
  auth?: boolean | undefined;
}

/** The caller of a route. */
export interface RouteCaller {
  /** The authenticated caller of a route with `auth`. */
  readonly principal: Principal | undefined;
  /** The address that the request came from, if it is known. */
  readonly remote: string | undefined;
}

/** A handler of HTTP requests; async or not. */
export type RouteHandler = (request: Request, caller: RouteCaller) => Response | Promise<Response>;

/** A server, of any lifespan. */
export interface AnyServer {
  readonly name: string;
  readonly fetch: FetchHandler;
  readonly node: (request: NodeRequest, response: ServerResponse | FastifyReply) => void;
}

/** The tools, resources, templates or prompts of a server, in order. Every change sends the list_changed notification. */
export interface Registry<T> extends Iterable<T> {
  readonly size: number;
  has(name: string): boolean;
  get(name: string): T | undefined;
  remove(name: string): void;
  /**
   * Changes what clients see of a component.
   *
   * @param changes - New values: `title`, `description`, `icons`, `meta`, `annotations`; of resources `name`, `mimeType` and
   *   `size` as well. Undefined takes a member away.
   * @throws TypeError when nothing has this name, or a member is unknown, can't change, or has a wrong value.
   */
  update(name: string, changes: Readonly<Record<string, unknown>>): void;
  enable(...names: (string | { tags: readonly string[] })[]): void;
  disable(...names: (string | { tags: readonly string[] })[]): void;
}

/** A listening server. */
export interface Listening extends AsyncDisposable {
  readonly url: string;
  close(): Promise<void>;
}

