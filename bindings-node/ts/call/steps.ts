import { AsyncLocalStorage } from "node:async_hooks";

import { parseJson } from "../model/big-integers.js";
import { toJson } from "../model/json.js";
import type { Maybe } from "../model/types/components.js";
import type { CallHandle } from "./handle.js";

const running = new AsyncLocalStorage<string>();

/** Returns the key of the running step. Its questions are numbered separately, because a replay may skip it. */
export function runningStep(): string | undefined {
  return running.getStore();
}

/** The steps of one run of a handler: each is run once, and its value recorded. */
export class StepJournal {
  readonly #begun = new Map<string, Promise<string>>();

  constructor(private readonly call: CallHandle) {}

  async step<T>(key: string, fn: () => Maybe<T>): Promise<T> {
    if (typeof key !== "string" || key === "") throw new TypeError('ctx.step(key, fn): the key must be a non-empty string, as in ctx.step("charge", () => …)');
    if (typeof fn !== "function") throw new TypeError(`ctx.step(${JSON.stringify(key)}, fn): fn must be a function, whose value is recorded`);
    let recorded = this.#begun.get(key);
    if (recorded === undefined) {
      recorded = this.#recorded(key, fn);
      this.#begun.set(key, recorded);
      // A failed step is not recorded, and may be tried again.
      recorded.catch(() => this.#begun.delete(key));
    }
    const [value] = parseJson(await recorded) as [T];
    return value;
  }

  /** Returns the JSON of a list with the value, or of an empty list for `undefined`, which JSON lacks. */
  async #recorded(key: string, fn: () => Maybe<unknown>): Promise<string> {
    const known = this.call.knownStep(key);
    if (known !== null) return known;
    const value = await running.run(key, fn);
    const place = `the result of step ${JSON.stringify(key)}`;
    const recorded = value === undefined ? "[]" : `[${toJson(value, place)}]`;
    this.call.recordStep(key, recorded);
    return recorded;
  }
}
