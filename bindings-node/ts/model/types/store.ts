import type { Awaitable } from "./auth.js";

/** A message that `Store.subscribe` yields, and its topic. */
export type StoreMessage = readonly [topic: string, message: Uint8Array];

/**
 * A store that servers share, such as a database; docs/store.md says what is in it. If a method throws,
 * or returns nothing within 15 s, the requests that need it are answered with 503. `checkStore()` of `gudgeon/testing` checks a store.
 *
 * Keys are visible ASCII. A version is an integer, from 0 on, that is greater than each that a value of the key had before, also one that
 * was taken or has ended.
 *
 * What servers need beside `get`, `put` and `take` is made of them, unless the store has the other methods, which do better. `append` and
 * `read` belong together, and so do `publish` and `subscribe`, and `lease`, `renew` and `release`. Without `publish` and `subscribe`, what
 * needs messages stays within a process.
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
  /** Removes a value, if there is one. */
  delete?(key: string): Awaitable<unknown>;
  /**
   * Adds an event at the end of a log, and returns its number: an integer from 1 that is greater than each earlier one of the log. The
   * oldest events are removed while there are more than `maxEvents` of them, or than `maxBytes` bytes; an event that is longer is an error.
   * The log ends when nothing was added for `ttlMs` milliseconds.
   */
  append?(log: string, event: Uint8Array, options: { readonly maxEvents: number; readonly maxBytes: number; readonly ttlMs: number }): Awaitable<number>;
  /**
   * Returns the events of a log with their numbers, those above the number `after` (0: all), in their order; or `"gone"` if one of them was
   * removed, or if no event has or had this number.
   */
  read?(log: string, after: number): Awaitable<readonly (readonly [number: number, event: Uint8Array])[] | "gone">;
  /** Sends a message to all who have subscribed to a topic, in all processes. It is called for one message after another. */
  publish?(topic: string, message: Uint8Array): Awaitable<unknown>;
  /**
   * Yields `undefined` once it is connected, and again if it was connected anew and messages may be lost; and a pair for each message of
   * the topics, those of a topic in their order. `signal` is aborted when nobody needs the messages any more. If it ends or throws before,
   * it is called again after a pause. An async generator can be such a method.
   */
  subscribe?(topics: readonly string[], options: { readonly signal: AbortSignal }): Awaitable<AsyncIterable<StoreMessage | undefined>>;
  /**
   * Takes a lease for `ttlMs` milliseconds, and returns its token: an integer that is greater than each earlier one of the key. `"held"` if
   * another owner has the lease; an owner who has it gets a new token.
   */
  lease?(key: string, owner: string, options: { readonly ttlMs: number }): Awaitable<number | "held">;
  /** Lets a lease last for `ttlMs` milliseconds from now, and returns its token; `"held"` if the owner does not have it any more. */
  renew?(key: string, owner: string, options: { readonly ttlMs: number }): Awaitable<number | "held">;
  /** Ends a lease, if the owner has it. */
  release?(key: string, owner: string): Awaitable<unknown>;
}
