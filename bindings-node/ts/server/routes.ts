import { refuseUnknown } from "../model/checks.js";
import { toBase64 } from "../model/content.js";
import { display } from "../model/display.js";
import { principalFromJson, type PrincipalJson } from "../model/principal.js";
import type { Context } from "../model/types/context.js";
import type { RouteCaller, RouteOptions } from "../model/types/server.js";
import { isObject } from "../model/values.js";
import type { Plan, PlanOwner } from "../plan/plan.js";

type Handle = (...args: unknown[]) => unknown;

/** A handler of HTTP requests beside the endpoint. */
export interface Route {
  readonly method: string;
  readonly path: string;
  readonly needsAuth: boolean;
  readonly plan: Plan;
}

/** A request as the core gives it to a handler; a body that is not text is base64 in `blob`. */
interface Input {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  readonly body?: string;
  readonly blob?: string;
  readonly principal?: PrincipalJson;
  readonly remote?: string;
}

/** A response as the core reads it. */
interface Written {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body?: string;
  readonly blob?: string;
}

/** Returns a route of this server; throws a TypeError for arguments of other types. The core checks method and path. */
export function routeOf(owner: PlanOwner, method: string, path: string, options: RouteOptions | Handle = {}, handler?: Handle): Route {
  const place = `route(${display(method)}, ${display(path)})`;
  if (typeof method !== "string" || typeof path !== "string") {
    throw new TypeError(`${place}: the method and the path must be strings, as in app.route("POST", "/hooks", handler)`);
  }
  const [given, call] = typeof options === "function" ? [{}, options] : [options, handler];
  refuseUnknown(place, ["auth"], given);
  const { auth = false } = given;
  if (typeof auth !== "boolean") throw new TypeError(`${place}: auth must be true or false`);
  if (typeof call !== "function") throw new TypeError(`${place}: the handler must be a function (request) => Response; it comes last`);
  return { method, path, needsAuth: auth, plan: planOf(owner, call) };
}

/** Middleware does not run around routes, and they are not traced as requests of MCP. */
function planOf(owner: PlanOwner, handler: Handle): Plan {
  return {
    kind: "route",
    owner,
    exposeErrors: [],
    invoke: async (input, ctx) => {
      const given = input as unknown as Input;
      const caller: RouteCaller = { principal: given.principal && principalFromJson(given.principal), remote: given.remote };
      return responseOf(await handler(requestOf(given, ctx), caller));
    },
  };
}

function requestOf({ method, url, headers, body = "", blob }: Input, { signal }: Context): Request {
  // Bytes, because a string would add a `Content-Type`.
  const bytes = blob === undefined ? Buffer.from(body) : Buffer.from(blob, "base64");
  const hasBody = bytes.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(url, { method, headers, signal, ...(hasBody && { body: bytes }) });
}

async function responseOf(value: unknown): Promise<Written> {
  if (!isResponse(value)) {
    throw new TypeError(`the result is ${display(value)}; a route returns a Response, such as new Response("ok") or Response.json({ … })`);
  }
  const bytes = new Uint8Array(await value.arrayBuffer());
  const head = { status: value.status, headers: [...value.headers] as [string, string][] };
  const text = textOf(bytes);
  return text === undefined ? { ...head, blob: toBase64(bytes) } : { ...head, body: text };
}

/** Also true for a `Response` of another implementation of fetch. */
function isResponse(value: unknown): value is Response {
  return value instanceof Response || (isObject(value) && typeof value["status"] === "number" && typeof value["arrayBuffer"] === "function");
}

/** Returns undefined for bytes that are not UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
