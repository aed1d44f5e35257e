import { native } from "../native.js";
import type { Store } from "../model/types/store.js";
import { methodsOf, StoreCalls } from "../server/store.js";

/**
 * Checks that a store, for `new Server({ store })`, does what servers rely on: its replies, versions, the ends of values, logs and leases,
 * one winner among concurrent calls, and messages if it carries any. It takes some seconds, may run beside the store's other users, and
 * leaves nothing behind for longer than a second.
 *
 * @throws Error with the first rule that the store does not keep. Its `cause` is what a method threw last.
 */
export async function checkStore(store: Store): Promise<void> {
  let cause: unknown;
  const calls = new StoreCalls(store, { error: (_text: unknown, thrown?: unknown) => void (cause = thrown) });
  try {
    await native().checkStore((call) => void calls.run(call), methodsOf(store));
  } catch (error) {
    throw new Error((error as Error).message, { cause });
  }
}
