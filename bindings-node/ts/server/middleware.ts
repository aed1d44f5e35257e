import { CallContext } from "../call/context.js";
import { ProtocolError, ToolError } from "../model/errors.js";
import { isQuestion } from "../model/questions.js";
import { stringify } from "../model/stringify.js";
import type { Middleware } from "../model/types/context.js";
import { checked, native, type Rejected } from "../native.js";
import { type ComponentKind, toReply } from "../plan/replies.js";

type Request = Parameters<Middleware>[0];

/** Ready-made middleware. */
export const middleware = {
  /** Logs the duration of each request: the event `request.timed` at level info of the server's logger, or else a line on stderr. */
  timing(): Middleware {
    return async (request, next) => {
      const start = performance.now();
      try {
        return await next();
      } finally {
        log(request, "timed", undefined, performance.now() - start);
      }
    };
  },

  /**
   * Logs each request and its outcome: the events `request.received` and `request.done` at level info of the server's logger, or else
   * lines on stderr.
   *
   * @param options - `params`: whether the text has the params as well, up to 16 KiB of them; default: false.
   */
  logging({ params = false }: { params?: boolean | undefined } = {}): Middleware {
    return async (request, next) => {
      const start = performance.now();
      log(request, "received", params ? stringify(request.params) : undefined);
      try {
        const result = await next();
        log(request, "done", undefined, performance.now() - start);
        return result;
      } catch (error) {
        const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
        log(request, "failed", reason, performance.now() - start);
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
   *   `"principal"` (default; without one the address that requests come from, and where that is unknown all callers together),
   *   `"client"` (its name, which it chooses itself) or `"server"`.
   * @throws TypeError if an argument is invalid.
   */
  rateLimit(
    perSecond: number,
    { burst = 1, by = "principal" }: { burst?: number | undefined; by?: string | undefined } = {},
  ): Middleware {
    const { NativeRateLimit } = native();
    const limit = checked("rateLimit()", () => new NativeRateLimit(perSecond, burst, by));
    return async (request, next) => {
      const { method, ctx } = request;
      if (ctx.requestId !== "" && NativeRateLimit.counts(method)) {
        const remote = ctx instanceof CallContext ? ctx.remote : undefined;
        const rejected = limit.admit(performance.now() / 1000, method, ctx.principal?.subject, ctx.client.name, remote);
        if (rejected) throw errorOf(rejected);
      }
      return next();
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
    const limit = checked("responseLimit()", () => new (native().NativeResponseLimit)(maxBytes));
    return async (request, next) => {
      const value = await next();
      if (isQuestion(value) || (Array.isArray(value) && value.length > 0 && value.every(isQuestion))) return value;
      const rejected = limit.check(request.method, nameIn(request), ...toReply(KINDS.get(request.method) ?? "method", value));
      if (rejected) throw errorOf(rejected);
      return value;
    };
  },
};

const KINDS: ReadonlyMap<string, ComponentKind> = new Map([
  ["tools/call", "tool"],
  ["resources/read", "resource"],
  ["prompts/get", "prompt"],
]);

/** Returns the name or URI in a request. */
function nameIn({ params }: Request): string | undefined {
  const name = params["name"] ?? params["uri"];
  return typeof name === "string" ? name : undefined;
}

function log(request: Request, stage: string, text?: string, milliseconds?: number): void {
  (request.ctx as CallContext).logRequest(stage, request.method, nameIn(request), text, milliseconds);
}

/** Returns the error of a rejected request: one that the model reads for a tool, else a JSON-RPC error. */
function errorOf({ code, message }: Rejected): Error {
  return code === undefined ? new ToolError(message) : new ProtocolError(code, message);
}
