import { ProtocolError, ToolError } from "./errors.js";
import { toReply } from "./reply.js";
import type { Context, Middleware } from "./types.js";

type Request = Parameters<Middleware>[0];

/** Ready-made middleware. */
export const middleware = {
  /** Writes how long each request took to stderr. */
  timing(): Middleware {
    return async (request, next) => {
      const start = performance.now();
      try {
        return await next();
      } finally {
        console.error(`${titleOf(request)}: ${(performance.now() - start).toFixed(1)} ms`);
      }
    };
  },

  /** Writes each request, and what it failed of, to stderr. */
  logging({ params = false }: { params?: boolean | undefined } = {}): Middleware {
    return async (request, next) => {
      console.error(params ? `${titleOf(request)} ${JSON.stringify(request.params)}` : titleOf(request));
      try {
        return await next();
      } catch (error) {
        console.error(`${titleOf(request)} failed: ${String(error)}`);
        throw error;
      }
    };
  },

  /** Refuses what goes beyond so many requests a second; `by` is `"client"` or `"principal"`, else all count together. */
  rateLimit(perSecond: number, { burst = perSecond, by }: { burst?: number | undefined; by?: string | undefined } = {}): Middleware {
    if (!(perSecond > 0) || !(burst >= 1)) throw new TypeError("rateLimit(perSecond, { burst }): perSecond must be above 0, burst at least 1");
    if (by !== undefined && !Object.hasOwn(KEYS, by)) {
      throw new TypeError(`rateLimit({ by: ${JSON.stringify(by)} }): by is one of ${Object.keys(KEYS).join(", ")}`);
    }
    const keyOf = by === undefined ? () => "" : (KEYS[by] ?? (() => ""));
    const buckets = new Map<string, { tokens: number; at: number }>();
    return async (request, next) => {
      const key = keyOf(request.ctx);
      const now = performance.now();
      const bucket = buckets.get(key) ?? { tokens: burst, at: now };
      bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
      bucket.at = now;
      // The one used longest ago goes first: by then it is full again, or its owner is one of very many.
      buckets.delete(key);
      buckets.set(key, bucket);
      if (buckets.size > MAX_BUCKETS) buckets.delete(buckets.keys().next().value as string);
      if (bucket.tokens < 1) throw refusal(request, `Too many requests: at most ${perSecond} a second are served`);
      bucket.tokens -= 1;
      return next();
    };
  },

  /** Refuses results that are larger, in bytes of their JSON. */
  responseLimit(maxBytes: number): Middleware {
    return async (request, next) => {
      const value = await next();
      const size = Buffer.byteLength(sizeable(request.method, value));
      if (size > maxBytes) throw refusal(request, `The result has ${size} bytes; at most ${maxBytes} are sent`);
      return value;
    };
  },
};

const MAX_BUCKETS = 10_000;

const KEYS: Readonly<Record<string, (ctx: Context) => string>> = {
  client: (ctx) => ctx.client.name,
  principal: (ctx) => ctx.principal?.subject ?? "",
};

const KINDS = {
  "tools/call": "tool",
  "resources/read": "resource",
  "prompts/get": "prompt",
  "completion/complete": "completion",
} as const;

function sizeable(method: string, value: unknown): string {
  return toReply(Object.hasOwn(KINDS, method) ? KINDS[method as keyof typeof KINDS] : "method", value)[1];
}

function titleOf({ method, params }: Request): string {
  const name = params["name"] ?? params["uri"];
  return typeof name === "string" ? `${method} ${name}` : method;
}

/** A model reads a tool's refusal; elsewhere it is an error of the protocol. */
function refusal({ method }: Request, message: string): Error {
  return method === "tools/call" ? new ToolError(message) : new ProtocolError(-32603, message);
}
