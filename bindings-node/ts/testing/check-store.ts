import { display } from "../model/display.js";
import type { Store } from "../model/types/store.js";

const LONG = 600_000;
const SHORT = 1_000;
/** The time limit for an operation, and for the end of a value whose `ttlMs` is over, in ms. */
const LIMIT = 15_000;
const PAUSE = 100;
/** The number of operations of a race. */
const RACERS = 8;

const ALL_BYTES = String.fromCharCode(...Array(256).keys());

/** An expectation of `put`. A number is the place of a version among those that values of the key had; -1 is a version that none had. */
type Expected = "any" | "absent" | number;

/** `wait` is a `get` that is repeated until the value has ended. The value of a `put` is Latin-1. */
type Act = "get" | "wait" | "take" | readonly [value: string, ttlMs: number, expect: Expected];

/** The expected return value: the version of a new value, a conflict, nothing, or a value with the version of the last `put`. */
type Wanted = "stored" | "conflict" | "nothing" | { readonly value: string };

/** The rule, the key, the operation, and what it must return. In a race, several at once, one does, and the others find that it did. */
type Step = readonly [rule: string, key: string, act: Act, wanted: Wanted, race?: "race"];

/** The cases of the core's `testing/check_store.rs`, which is not used here because in the native library it takes more space. */
const STEPS: readonly Step[] = [
  ["get of a key without a value must return nothing", "a", "get", "nothing"],
  ["take of a key without a value must return nothing", "a", "take", "nothing"],
  ["put with a version must be a conflict if the key has no value", "a", ["0", LONG, -1], "conflict"],
  ["put with expect absent must store a value of any bytes if the key has none", "a", [ALL_BYTES, LONG, "absent"], "stored"],
  ["get must return the bytes and the version of put", "a", "get", { value: ALL_BYTES }],
  ["put with expect absent must be a conflict if the key has a value", "a", ["1", LONG, "absent"], "conflict"],
  ["put that is a conflict must not change the value", "a", "get", { value: ALL_BYTES }],
  ["put with expect any must replace a value, also by an empty one", "a", ["", LONG, "any"], "stored"],
  ["get must return an empty value, with its version", "a", "get", { value: "" }],
  ["put with the version of a former value must be a conflict", "a", ["2", LONG, 0], "conflict"],
  ["put with the version of the value must replace it", "a", ["3", LONG, 1], "stored"],
  ["get must return the value that was put last, with its version", "a", "get", { value: "3" }],
  ["keys that begin in the same way must be independent", "a:b/~%", "get", "nothing"],
  ["take must return the value", "a", "take", { value: "3" }],
  ["take must remove the value", "a", "get", "nothing"],
  ["take must return a value once", "a", "take", "nothing"],
  ["put with the version of a value that was taken must be a conflict", "a", ["4", LONG, 2], "conflict"],
  ["a value must have a greater version than one that was taken", "a", ["5", LONG, "absent"], "stored"],
  ["take must return the value", "a", "take", { value: "5" }],
  ["put must store a value for a second", "short", ["1", SHORT, "absent"], "stored"],
  ["put must store a value for ten minutes", "long", ["1", LONG, "absent"], "stored"],
  ["put must store a value for a second", "renewed", ["1", SHORT, "absent"], "stored"],
  ["put with expect any must replace a value and its ttl", "renewed", ["2", LONG, "any"], "stored"],
  ["a value must end with its ttl", "short", "wait", "nothing"],
  ["take of a value that has ended must return nothing", "short", "take", "nothing"],
  ["put with expect absent must store a value if the former one has ended", "short", ["2", LONG, "absent"], "stored"],
  ["take must return the value", "short", "take", { value: "2" }],
  ["a value must not end before its ttl", "long", "take", { value: "1" }],
  ["a value must not end with the ttl of the one that it replaced", "renewed", "take", { value: "2" }],
  ["one of several put with expect absent must store its value", "race", ["1", LONG, "absent"], "stored", "race"],
  ["one of several put with the version of the value must replace it", "race", ["2", LONG, 0], "stored", "race"],
  ["one of several take must return the value", "race", "take", { value: "2" }, "race"],
];

/**
 * Checks that a store, for `new Server({ store })`, does what servers rely on with `get`, `put` and `take`: its replies, versions, the ends of values, and one winner
 * among concurrent calls. It takes some seconds, may run beside the store's other users, and leaves no values behind.
 *
 * @throws Error with the first rule that the store does not keep.
 */
export async function checkStore(store: Store): Promise<void> {
  const prefix = `gudgeon:check:${Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString("hex")}:`;
  const versions = new Map<string, number[]>();
  const end = Date.now() + LIMIT;
  for (const [rule, key, act, wanted, race] of STEPS) {
    const known = versions.get(key) ?? [];
    versions.set(key, known);
    let replies: unknown[];
    for (;;) {
      const running = Array.from({ length: race ? RACERS : 1 }, () => carryOut(store, prefix + key, act, known));
      replies = await Promise.all(running);
      if (act !== "wait" || !Array.isArray(replies[0]) || Date.now() > end) break;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    const operation = nameOf(act);
    const lost = operation === "put" ? "conflict" : "nothing";
    const met = replies.filter((reply) => isMet(wanted, reply, operation, known)).length;
    const others = replies.filter((reply) => isMet(lost, reply, operation, known)).length;
    if (met !== 1 || (race && others !== RACERS - 1)) {
      const failed = replies.find((reply) => reply instanceof Failed);
      const happened = failed?.reason ?? `returned ${replies.map(display).join(", ")}`;
      throw new Error(`checkStore: ${rule}; ${operation}() ${happened}`, failed && { cause: failed.cause });
    }
    known.push(...replies.filter((reply): reply is number => typeof reply === "number"));
  }
}

/** An operation that threw, or did not return. */
class Failed {
  constructor(
    readonly reason: string,
    readonly cause?: unknown,
  ) {}
}

function nameOf(act: Act): "get" | "put" | "take" {
  return act === "wait" ? "get" : typeof act === "string" ? act : "put";
}

/** Returns what the store's method returned, or `Failed`. */
async function carryOut(store: Store, key: string, act: Act, known: readonly number[]): Promise<unknown> {
  const call = async (): Promise<unknown> => {
    const operation = nameOf(act);
    if (operation !== "put") return store[operation](key);
    const [value, ttlMs, expected] = act as Exclude<Act, string>;
    const expect = typeof expected === "number" ? (known[expected] ?? 7) : expected;
    return store.put(key, new Uint8Array(Buffer.from(value, "latin1")), { ttlMs, expect });
  };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Failed>((resolve) => {
    timer = setTimeout(() => resolve(new Failed(`did not return within ${LIMIT / 1000} s`)), LIMIT);
  });
  try {
    return await Promise.race([call(), late]);
  } catch (error) {
    return new Failed(`threw ${error instanceof Error ? error.message : display(error)}`, error);
  } finally {
    clearTimeout(timer);
  }
}

function isMet(wanted: Wanted, reply: unknown, operation: "get" | "put" | "take", known: readonly number[]): boolean {
  if (wanted === "nothing") return reply === undefined || reply === null;
  if (wanted === "conflict") return reply === "conflict";
  if (wanted === "stored") return isVersion(reply) && known.every((former) => reply > former);
  if (operation === "take") return isValue(reply, wanted.value);
  return Array.isArray(reply) && reply.length === 2 && isValue(reply[0], wanted.value) && reply[1] === known.at(-1);
}

function isVersion(reply: unknown): reply is number {
  return Number.isSafeInteger(reply) && (reply as number) >= 0;
}

function isValue(reply: unknown, value: string): boolean {
  return reply instanceof Uint8Array && Buffer.from(reply).toString("latin1") === value;
}
