import { ProtocolError, ToolError } from "./errors.js";
import { isQuestion } from "./questions.js";
import { type ComponentKind, ReplyKind, toReply } from "./reply.js";
import type { Context, Middleware } from "./types.js";

type Request = Parameters<Middleware>[0];

/** Ready-made middleware. */
export const middleware = {
  /** Writes to stderr how many milliseconds each request took. */
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

  /** Writes to stderr each request and how it ended; with `params: true` (default: false) what was asked, too. */
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
   * Refuses what comes faster than so many a second. `initialize`, `server/discover`, `ping` and notifications pass
   * uncounted.
   *
   * @param perSecond - Requests a second.
   * @param options - `burst`: how many may come at once; default: 1. `by`: what is counted by: `"principal"` (default;
   *   without one the client's name), `"client"` or `"server"`.
   * @throws TypeError when a number or `by` can't be meant. In use: `ToolError` for tools, else `ProtocolError` 429.
   */
  rateLimit(
    perSecond: number,
    { burst = 1, by = "principal" }: { burst?: number | undefined; by?: string | undefined } = {},
  ): Middleware {
    if (!(perSecond > 0)) throw new TypeError(`rateLimit takes a number of requests a second above 0, not ${perSecond}`);
    if (!(burst >= 1)) throw new TypeError(`rateLimit: burst is at least 1, not ${burst}`);
    const keyOf = Object.hasOwn(KEYS, by) ? KEYS[by] : undefined;
    if (!keyOf) throw new TypeError(`rateLimit: by is 'principal', 'client' or 'server', not ${JSON.stringify(by)}`);
    const buckets = new Map<string, { left: number; at: number }>();
    return async (request, next) => {
      if (SPARED.has(request.method) || request.ctx.requestId === "") return next();
      const key = keyOf(request.ctx);
      const now = performance.now();
      const bucket = buckets.get(key) ?? { left: burst, at: now };
      const left = Math.min(burst, bucket.left + ((now - bucket.at) / 1000) * perSecond);
      const isGranted = left >= 1;
      // The one used longest ago goes first: by then it is full again, or its owner is one of very many.
      buckets.delete(key);
      buckets.set(key, { left: isGranted ? left - 1 : left, at: now });
      if (buckets.size > MAX_BUCKETS) buckets.delete(buckets.keys().next().value as string);
      if (isGranted) return next();
      const wait = ((1 - left) / perSecond).toFixed(1);
      throw refusal(request, TOO_MANY, `too many requests: at most ${perSecond} a second, try again in ${wait} s`);
    };
  },

  /**
   * Refuses results over so many bytes of JSON, as `rateLimit` refuses, with 413, and with the same exceptions. Questions
   * are no results.
   *
   * @param maxBytes - Above 0, else TypeError.
   */
  responseLimit(maxBytes: number): Middleware {
    if (!(maxBytes >= 1)) throw new TypeError(`responseLimit takes a number of bytes above 0, not ${maxBytes}`);
    return async (request, next) => {
      const value = await next();
      if (SPARED.has(request.method) || isQuestion(value) || (Array.isArray(value) && value.length > 0 && value.every(isQuestion))) return value;
      const size = Buffer.byteLength(jsonOf(request.method, value));
      if (size <= maxBytes) return value;
      throw refusal(request, TOO_LARGE, `the result of ${subjectOf(request)} has ${size} bytes, more than ${maxBytes}: ask for less`);
    };
  },
};

/** As HTTP says it: codes below zero are not for new uses (2026-07-28, "Error Codes"). */
const TOO_MANY = 429;
const TOO_LARGE = 413;
const MAX_BUCKETS = 10_000;
/** A client that is kept from these can't even learn what it did wrong. */
const SPARED: ReadonlySet<string> = new Set(["initialize", "server/discover", "ping"]);

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

/** The result that this value makes. */
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

/** A model reads a tool's refusal; elsewhere it is an error of the protocol. */
function refusal({ method }: Request, code: number, message: string): Error {
  return method === "tools/call" ? new ToolError(message) : new ProtocolError(code, message);
}
