import type { Maybe } from "./types/components.js";
import { isObject } from "./values.js";

/** Calls `next` with the value: now if the value is there, else when its promise resolves. */
export function then<T, R>(value: Maybe<T>, next: (value: T) => Maybe<R>): Maybe<R> {
  return isPromise(value) ? ((value as Promise<T>).then(next) as Promise<R>) : next(value as T);
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, milliseconds));
}

/** Waits until the condition is true, at most for the given time. */
export async function until(isTrue: () => boolean, milliseconds: number): Promise<void> {
  const end = performance.now() + milliseconds;
  while (!isTrue() && performance.now() < end) await sleep(5);
}

/** Returns true for promises, also those of other libraries. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof value["then"] === "function";
}
