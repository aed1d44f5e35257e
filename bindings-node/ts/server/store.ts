import { checked, type NativeServer, type NativeStoreCall } from "../native.js";
import type { Logger } from "../model/types/logging.js";
import type { Store } from "../model/types/store.js";

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
}

/** The methods of a store; the last ones are optional. */
const METHODS = ["get", "put", "take", "delete", "append", "read", "lease", "renew", "release"] as const;
type Method = (typeof METHODS)[number];

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
  const methods = METHODS.filter((name) => typeof store[name] === "function");
  checked(place, () => native.setStore(passedTo(new WeakRef(calls)), methods));
  return calls;
}

/** Returns a function that does not keep the server alive, as the native half, which holds it, belongs to the server. */
export function passedTo<T>(runner: WeakRef<{ run(call: T): Promise<void> }>): (call: T) => void {
  return (call) => void runner.deref()?.run(call);
}

/** Carries out operations on a program's store. */
export class StoreCalls {
  constructor(
    private readonly store: Store,
    private readonly logger: Logger,
  ) {}

  async run(call: NativeStoreCall): Promise<void> {
    const given = JSON.parse(call.operation()) as Operation;
    try {
      call.reply(JSON.stringify(encoded(await this.#carryOut(given)) ?? null));
    } catch (error) {
      this.logger.error(`store: ${given.operation}() failed:`, error);
      // The text of an error may hold a secret, and was logged.
      call.reply(JSON.stringify({ failed: `${given.operation}() threw an error` }));
    }
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
      case "lease":
        return store.lease?.(key, owner, { ttlMs });
      case "renew":
        return store.renew?.(key, owner, { ttlMs });
      case "release":
        return store.release?.(key, owner);
      default:
        return store[operation]?.(key);
    }
  }
}

function decoded(bytes: string): Uint8Array {
  return new Uint8Array(Buffer.from(bytes, "base64"));
}

/** Returns a reply with bytes as base64. */
function encoded(reply: unknown): unknown {
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString("base64");
  return Array.isArray(reply) ? reply.map(encoded) : reply;
}
