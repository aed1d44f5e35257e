import type { NativeStoreCall } from "../native.js";
import type { Logger } from "../model/types/logging.js";
import type { Store } from "../model/types/store.js";

/** An operation as the native half writes it; the value is base64. */
type Operation =
  | { readonly operation: "get" | "take"; readonly key: string }
  | { readonly operation: "put"; readonly key: string; readonly value: string; readonly ttl: number; readonly expect: number | "any" | "absent" };

/** Carries out operations on a program's store. */
export class StoreCalls {
  constructor(
    private readonly store: Store,
    private readonly logger: Logger,
  ) {}

  async run(call: NativeStoreCall): Promise<void> {
    const given = JSON.parse(call.operation()) as Operation;
    try {
      call.reply(JSON.stringify(encoded(await this.#carryOut(given))));
    } catch (error) {
      this.logger.error(`store: ${given.operation}() failed:`, error);
      // The text of an error may hold a secret, and was logged.
      call.reply(JSON.stringify({ failed: `${given.operation}() threw an error` }));
    }
  }

  async #carryOut(given: Operation): Promise<unknown> {
    if (given.operation !== "put") return this.store[given.operation](given.key);
    const value = new Uint8Array(Buffer.from(given.value, "base64"));
    return this.store.put(given.key, value, { ttlMs: given.ttl, expect: given.expect });
  }
}

/** Returns a reply with bytes as base64. */
function encoded(reply: unknown): unknown {
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString("base64");
  return Array.isArray(reply) ? reply.map(encoded) : (reply ?? null);
}
