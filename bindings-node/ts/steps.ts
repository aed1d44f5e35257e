import { AsyncLocalStorage } from "node:async_hooks";

import { toJson } from "./json.js";
import type { Maybe } from "./types.js";

/** The way to what earlier runs of a handler did. */
interface Way {
  knownStep(slot: number, key: string): string | null;
  step(slot: number, key: string, value: string): void;
}

const running = new AsyncLocalStorage<string>();

/** The key of the step that runs here. It may not run again, so that its questions are numbered apart. */
export function runningStep(): string | undefined {
  return running.getStore();
}

/** What one run of a handler does once only, however often the handler runs. */
export class StepJournal {
  readonly #begun = new Map<string, Promise<string>>();

  constructor(
    private readonly way: Way,
    private readonly slot: number,
  ) {}

  async step<T>(key: string, fn: () => Maybe<T>): Promise<T> {
    if (typeof key !== "string" || key === "") throw new TypeError('ctx.step(key, fn): the key must be a text that is not empty, as in ctx.step("charge", () => …)');
    if (typeof fn !== "function") throw new TypeError(`ctx.step(${JSON.stringify(key)}, fn): fn must be a function; what it gives is kept`);
    let recorded = this.#begun.get(key);
    if (recorded === undefined) {
      recorded = this.#recorded(key, fn);
      this.#begun.set(key, recorded);
      // What failed was not done, and may be tried again.
      recorded.catch(() => this.#begun.delete(key));
    }
    const [value] = JSON.parse(await recorded) as [T];
    return value;
  }

  /** A list of one, or of none for `undefined`, which JSON has not. */
  async #recorded(key: string, fn: () => Maybe<unknown>): Promise<string> {
    const known = this.way.knownStep(this.slot, key);
    if (known !== null) return known;
    const value = await running.run(key, fn);
    const place = `the result of step ${JSON.stringify(key)}`;
    const recorded = value === undefined ? "[]" : `[${toJson(value, place)}]`;
    this.way.step(this.slot, key, recorded);
    return recorded;
  }
}
