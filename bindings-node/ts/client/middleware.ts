import { AsyncResource } from "node:async_hooks";

import type { ClientMiddleware, ClientRequest } from "../model/types/client.js";

/** Runs middleware around a request, the first function outermost; `send` sends the request. Returns the result. */
export async function runMiddleware(
  functions: readonly ClientMiddleware[],
  first: ClientRequest,
  send: (params: Readonly<Record<string, unknown>>) => Promise<unknown>,
): Promise<unknown> {
  const call = async (at: number, request: ClientRequest): Promise<unknown> => {
    const middleware = functions[at];
    if (middleware === undefined) return send(request.params);
    const result = await middleware(request, (changed = request) => call(at + 1, changed));
    if (result == null) throw new TypeError(`the middleware ${JSON.stringify(middleware.name)} returned nothing; return what next() returned`);
    return result;
  };
  return call(0, first);
}

/** The async contexts of operations of groups, by their tickets, which are above those of clients. */
const callers = new Map<number, AsyncResource>();
let ticket = 2 ** 32;

/** Performs an operation of a group; middleware of its clients runs in the async context of the caller. */
export async function inContext<T>(perform: (ticket: number) => Promise<T>): Promise<T> {
  const own = ticket++;
  callers.set(own, new AsyncResource("GudgeonCall"));
  try {
    return await perform(own);
  } finally {
    callers.delete(own);
  }
}

/** Returns the async context of an operation of a group. */
export function contextOf(given: number): AsyncResource | undefined {
  return callers.get(given);
}

/** Values that middleware threw and callers have not received yet, by number; the oldest are dropped first. */
const thrown = new Map<number, unknown>();
const MAX_THROWN = 1_000;
let next = 1;

export function keepThrown(error: unknown): number {
  const [oldest] = thrown.keys();
  if (thrown.size >= MAX_THROWN && oldest !== undefined) thrown.delete(oldest);
  thrown.set(next, error);
  return next++;
}

export function takeThrown(number: number): unknown {
  const error = thrown.get(number);
  thrown.delete(number);
  return error;
}
