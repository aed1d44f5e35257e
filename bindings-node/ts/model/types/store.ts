import type { Awaitable } from "./auth.js";

/**
 * A store that servers share, such as a database. Servers with the same store remember used DPoP proofs together. If a method throws,
 * or returns nothing within 15 s, the requests that need it are answered with 503. `checkStore()` of `gudgeon/testing` checks a store.
 *
 * Keys are visible ASCII. A version is an integer, from 0 on, that no other value of the key has.
 */
export interface Store {
  /** Returns a value and its version, or undefined. */
  get(key: string): Awaitable<readonly [value: Uint8Array, version: number] | undefined>;
  /**
   * Stores a value if the key is as expected: `"absent"` if it must have no value, the version that its value must have, or `"any"`. The
   * value ends after `ttlMs` milliseconds. Returns the version of the value, or `"conflict"` if the key is not as expected. At most one
   * of several concurrent calls that expect the same succeeds.
   */
  put(key: string, value: Uint8Array, options: { readonly ttlMs: number; readonly expect: number | "any" | "absent" }): Awaitable<number | "conflict">;
  /** Removes a value and returns it, or undefined. At most one of several concurrent calls gets it. */
  take(key: string): Awaitable<Uint8Array | undefined>;
}
