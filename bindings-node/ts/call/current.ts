import { AsyncLocalStorage } from "node:async_hooks";

import type { Context } from "../model/types/context.js";

const running = new AsyncLocalStorage<Context>();

/** Calls a handler with `currentContext()` set to its context, also after awaits. */
export function runInContext<C extends Context, I, R>(ctx: C, call: (input: I, ctx: C) => R, input: I): R {
  return running.run(ctx, call, input, ctx);
}

/** Returns the context of the handler that runs this code. */
export function currentContext(): Context {
  const ctx = running.getStore();
  if (ctx) return ctx;
  throw new Error("currentContext() works only in a handler and in functions that it calls; no handler is running");
}
