import { checked, type NativeServer, type NativeStoreCall } from "../native.js";
import type { Logger } from "../model/types/logging.js";
import type { Store, StoreMessage } from "../model/types/store.js";

/** An operation as the native half writes it: values and events are base64. */
interface Operation {
  readonly operation: Method;
  readonly key: string;
  readonly log: string;
  readonly value: string;
  readonly event: string;
  readonly owner: string;
  readonly after: number;
  readonly ttl: number;
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly expect: number | "any" | "absent";
  readonly topic: string;
  readonly message: string;
  readonly topics: readonly string[];
  /** The number of a subscription. */
  readonly number: number;
}

/** The methods of a store; the last ones are optional. */
const METHODS = [
  "get", "put", "take", "delete", "append", "read", "publish", "subscribe", "lease", "renew", "release",
] as const;
type Method = (typeof METHODS)[number] | "unsubscribe";

/** Returns the names of the methods that a store has. */
export function methodsOf(store: Store): string[] {
  return METHODS.filter((name) => typeof store[name] === "function");
}

/**
 * Gives the native half the store of a server. Returns the methods of one that is an object, which the server has to keep.
 *
 * @throws Error if there is no store at the address.
 */
export function setStore(native: NativeServer, store: Store | string | undefined, place: string, logger: Logger): StoreCalls | undefined {
  if (store === undefined || store === "memory") return undefined;
  if (typeof store === "string") {
    checked(`${place}: store`, () => native.setStoreAddress(store));
    return undefined;
  }
  const calls = new StoreCalls(store, logger);
  checked(place, () => native.setStore(passedTo(new WeakRef(calls)), methodsOf(store)));
  return calls;
}

/** Returns a function that does not keep the server alive, as the native half, which holds it, belongs to the server. */
export function passedTo<T>(runner: WeakRef<{ run(call: T): Promise<void> }>): (call: T) => void {
  return (call) => void runner.deref()?.run(call);
}

/** Carries out operations on a program's store, and reads its messages. */
export class StoreCalls {
  /** The controllers that end the subscriptions, by their numbers. */
  readonly #subscriptions = new Map<number, AbortController>();

  constructor(
    private readonly store: Store,
    private readonly logger: Pick<Logger, "error">,
  ) {}

  async run(call: NativeStoreCall): Promise<void> {
    const given = JSON.parse(call.operation()) as Operation;
    if (given.operation === "subscribe") return this.#receive(given, call);
    if (given.operation === "unsubscribe") return this.#subscriptions.get(given.number)?.abort();
    try {
      call.reply(JSON.stringify(encoded(await this.#carryOut(given)) ?? null));
    } catch (error) {
      this.logger.error(`store: ${given.operation}() failed:`, error);
      // The text of an error may hold a secret, and was logged.
      call.reply(JSON.stringify({ failed: `${given.operation}() threw an error` }));
    }
  }

  /** Reads messages until there are no more, or the subscription ends. */
  async #receive({ number, topics }: Operation, call: NativeStoreCall): Promise<void> {
    const ending = new AbortController();
    const { signal } = ending;
    this.#subscriptions.set(number, ending);
    // One promise for each message, because a promise that is raced many times keeps what waited for it.
    let end = (): void => {};
    signal.addEventListener("abort", () => end());
    const nextOf = (from: AsyncIterator<StoreMessage | undefined>) =>
      new Promise<IteratorResult<StoreMessage | undefined> | undefined>((resolve, reject) => {
        end = () => resolve(undefined);
        from.next().then(resolve, reject);
      });
    let failure: { readonly error: unknown } | undefined;
    let items: AsyncIterator<StoreMessage | undefined> | undefined;
    try {
      const messages = await this.store.subscribe?.(topics, { signal });
      items = messages?.[Symbol.asyncIterator]();
      while (items !== undefined && !signal.aborted) {
        // A method that disregards the signal must not keep the server.
        const next = await nextOf(items);
        if (next === undefined || next.done || signal.aborted) break;
        if (next.value === undefined) call.connected();
        else call.message(next.value[0], next.value[1]);
      }
    } catch (error) {
      failure = { error };
    }
    const isFirst = call.close();
    this.#subscriptions.delete(number);
    // A generator that waits returns when it goes on, which nobody waits for.
    Promise.resolve(items?.return?.()).catch(() => undefined);
    if (!isFirst || signal.aborted) return;
    const what = failure ? "failed" : "ended";
    this.logger.error(`store: subscribe() ${what}; it is called again until it works, and messages of other servers get lost`, failure?.error);
  }

  async #carryOut(given: Operation): Promise<unknown> {
    const { store } = this;
    const { operation, key, log, owner, maxEvents, maxBytes, expect, ttl: ttlMs } = given;
    switch (operation) {
      case "put":
        return store.put(key, decoded(given.value), { ttlMs, expect });
      case "append":
        return store.append?.(log, decoded(given.event), { maxEvents, maxBytes, ttlMs });
      case "read":
        return store.read?.(log, given.after);
      case "publish":
        return store.publish?.(given.topic, decoded(given.message));
      case "lease":
        return store.lease?.(key, owner, { ttlMs });
      case "renew":
        return store.renew?.(key, owner, { ttlMs });
      case "release":
        return store.release?.(key, owner);
      case "get":
      case "take":
        return store[operation](key);
      case "delete":
        return store.delete?.(key);
      default:
        return undefined;
    }
  }
}

function decoded(bytes: string): Uint8Array {
  return new Uint8Array(Buffer.from(bytes, "base64"));
}

/** The texts that a method may return. */
const WORDS: ReadonlySet<unknown> = new Set(["conflict", "gone", "held"]);

/** Returns a reply with bytes as base64, and no other text, which would be taken for it. */
function encoded(reply: unknown): unknown {
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString("base64");
  if (typeof reply === "string") return WORDS.has(reply) ? reply : false;
  return Array.isArray(reply) ? reply.map(encoded) : reply;
}
