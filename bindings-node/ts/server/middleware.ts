import { ProtocolError, ToolError } from "../model/errors.js";
import { isQuestion } from "../model/questions.js";
import type { Context, Middleware } from "../model/types/context.js";
import { type ComponentKind, ReplyKind, toReply } from "../plan/replies.js";

type Request = Parameters<Middleware>[0];

/** Ready-made middleware. */
export const middleware = {
  /** Writes the duration of each request to stderr, in milliseconds. */
  timing(): Middleware {
    return async (request, next) => {
      const start = performance.now();
      try {
        return await next();
      } finally {
        console.error(`${subjectOf(request)} took ${(performance.now() - start).toFixed(1)} ms`);
      }
    };
  },

  /** Writes each request and its outcome to stderr; with `params: true` (default: false) its params as well. */
  logging({ params = false }: { params?: boolean | undefined } = {}): Middleware {
    return async (request, next) => {
      console.error(params ? `${subjectOf(request)} ${JSON.stringify(request.params)}` : subjectOf(request));
      try {
        const result = await next();
        console.error(`${subjectOf(request)} is done`);
        return result;
      } catch (error) {
        console.error(`${subjectOf(request)} failed: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`);
        throw error;
      }
    };
  },

  /**
   * Limits the rate of requests. `initialize`, `server/discover`, `ping` and notifications are not limited. Requests over the
   * limit fail with a `ToolError` for tools, else with a `ProtocolError` of code 429.
   *
   * @param perSecond - The number of requests a second; above 0.
   * @param options - `burst`: the number of requests that may come at once; default: 1. `by`: the unit that is limited:
   *   `"principal"` (default; the client's name if there is none), `"client"` or `"server"`.
   * @throws TypeError if an argument is invalid.
   */
  rateLimit(
    perSecond: number,
    { burst = 1, by = "principal" }: { burst?: number | undefined; by?: string | undefined } = {},
  ): Middleware {
    if (!(perSecond > 0)) throw new TypeError(`rateLimit(perSecond): must be a number of requests a second above 0, not ${perSecond}`);
    if (!(burst >= 1)) throw new TypeError(`rateLimit(): burst must be at least 1, not ${burst}`);
    const keyOf = Object.hasOwn(KEYS, by) ? KEYS[by] : undefined;
    if (!keyOf) throw new TypeError(`rateLimit(): by must be "principal", "client" or "server", not ${JSON.stringify(by)}`);
    const buckets = new Map<string, { left: number; at: number }>();
    return async (request, next) => {
      if (EXEMPT.has(request.method) || request.ctx.requestId === "") return next();
      const key = keyOf(request.ctx);
      const now = performance.now();
      const bucket = buckets.get(key) ?? { left: burst, at: now };
      const left = Math.min(burst, bucket.left + ((now - bucket.at) / 1000) * perSecond);
      const isGranted = left >= 1;
      // The least recently used bucket is dropped: it is full again, unless there are more callers than buckets.
      buckets.delete(key);
      buckets.set(key, { left: isGranted ? left - 1 : left, at: now });
      if (buckets.size > MAX_BUCKETS) buckets.delete(buckets.keys().next().value as string);
      if (isGranted) return next();
      const wait = ((1 - left) / perSecond).toFixed(1);
      throw refusal(request, TOO_MANY, `too many requests: at most ${perSecond} per second are allowed; try again in ${wait} s`);
    };
  },

  /**
   * Limits the size of results, except those of `initialize`, `server/discover` and `ping`. Larger results fail with a
   * `ToolError` for tools, else with a `ProtocolError` of code 413. Questions are not limited.
   *
   * @param maxBytes - The maximum number of bytes of JSON; above 0.
   * @throws TypeError if it is not a number above 0.
   */
  responseLimit(maxBytes: number): Middleware {
    if (!(maxBytes >= 1)) throw new TypeError(`responseLimit(maxBytes): must be a number of bytes above 0, not ${maxBytes}`);
    return async (request, next) => {
      const value = await next();
      if (EXEMPT.has(request.method) || isQuestion(value) || (Array.isArray(value) && value.length > 0 && value.every(isQuestion))) return value;
      const size = Buffer.byteLength(jsonOf(request.method, value));
      if (size <= maxBytes) return value;
      throw refusal(request, TOO_LARGE, `the result of ${subjectOf(request)} has ${size} bytes, more than the limit of ${maxBytes}; request less`);
    };
  },
};

/** HTTP statuses as error codes, since new codes must not be below zero (2026-07-28, "Error Codes"). */
const TOO_MANY = 429;
const TOO_LARGE = 413;
const MAX_BUCKETS = 10_000;
/** Methods that are never limited: without them a client could not connect and learn about the limit. */
const EXEMPT: ReadonlySet<string> = new Set(["initialize", "server/discover", "ping"]);

const KEYS: Readonly<Record<string, (ctx: Context) => string>> = {
  server: () => "",
  client: (ctx) => `client ${ctx.client.name}`,
  principal: (ctx) => ctx.principal?.subject ?? `client ${ctx.client.name}`,
};

const KINDS: Readonly<Record<string, ComponentKind>> = {
  "tools/call": "tool",
  "resources/read": "resource",
  "prompts/get": "prompt",
};

/** Returns the JSON of the result that a value becomes. */
function jsonOf(method: string, value: unknown): string {
  const kind = Object.hasOwn(KINDS, method) ? KINDS[method] : undefined;
  const [how, payload] = toReply(kind ?? "method", value);
  if (kind === undefined || how === ReplyKind.result) return payload;
  const parts = kind === "tool" ? "content" : kind === "resource" ? "contents" : "messages";
  if (how === ReplyKind.parts) return `{"${parts}":${payload}}`;
  const text = JSON.stringify(payload);
  const structured = kind === "tool" && how === ReplyKind.json ? `,"structuredContent":${payload}` : "";
  return how === ReplyKind.nothing ? `{"${parts}":[]}` : `{"${parts}":[{"type":"text","text":${text}}]${structured}}`;
}

function subjectOf({ method, params }: Request): string {
  const name = params["name"] ?? params["uri"];
  return typeof name === "string" ? `${method} ${name}` : method;
}

/** Returns the error of a rejected request: one that the model reads for a tool, else a JSON-RPC error. */
function refusal({ method }: Request, code: number, message: string): Error {
  return method === "tools/call" ? new ToolError(message) : new ProtocolError(code, message);
}
