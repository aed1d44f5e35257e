import { typeName } from "./display.js";
import type { Awaitable, TokenStore } from "./types/auth.js";

/** The locks of a store that are held, by number. */
export class StoreLocks {
  readonly #held = new Map<number, () => Awaitable<void>>();
  #last = 0;

  /** Waits for the lock of a key. Resolves to its number. */
  async take(store: TokenStore | undefined, key: string): Promise<number> {
    const release: unknown = await store?.lock?.(key);
    if (typeof release !== "function") {
      throw new TypeError(`lock() of the store must return a function that releases the lock, not ${typeName(release)}`);
    }
    this.#held.set(++this.#last, release as () => Awaitable<void>);
    return this.#last;
  }

  async release(number: number): Promise<void> {
    const release = this.#held.get(number);
    this.#held.delete(number);
    await release?.();
  }
}
