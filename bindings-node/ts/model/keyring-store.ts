import type { AsyncEntry } from "@napi-rs/keyring";

import { display } from "./display.js";
import { AuthError } from "./errors.js";
import type { TokenStore } from "./types/auth.js";
import { isObject } from "./values.js";

/** The number of characters of a piece. Windows stores 2,560 bytes, which are UTF-16, with an entry. */
const PIECE = 1200;
const MAX_PIECES = 1000;
/** The number of times that a value is read if other processes replace it meanwhile. */
const ATTEMPTS = 5;
const FIRST = /^1\.([1-9]\d{0,3})\.(\w+)\.([A-Za-z0-9+/=]*)$/;
/** Without it the package would keep tokens in Linux's kernel, which forgets them, where there is no Secret Service. */
const OPTIONS = { linux: { store: "secret-service" } } as const;

/** Identifies the stores, also those of another copy of the package. */
const SERVICE = Symbol.for("gudgeon.keyringStore");

/** The content of the entry with the key's name. */
interface First {
  readonly count: number;
  readonly id: string;
  readonly piece: string;
}

/**
 * Keeps tokens and registrations in the system's keyring: the Keychain of macOS, the Credential Manager of Windows, or a Secret
 * Service such as GNOME Keyring or KWallet. Needs the package `@napi-rs/keyring`. If that is missing, or the system has no keyring,
 * an `AuthError` says so. Of the user's processes that share the store, one at a time renews tokens.
 *
 * @param service - The name under which the keyring lists the entries. Default: `"gudgeon"`.
 * @throws TypeError if the name is not a string, or empty.
 */
export function keyringStore(service = "gudgeon"): TokenStore {
  if (typeof service !== "string" || service === "") {
    throw new TypeError(`keyringStore(): the service must be a string that is not empty, not ${display(service)}`);
  }
  return new KeyringStore(service);
}

/** Returns the service of a store in the keyring; undefined for any other value. */
export function serviceOfStore(store: unknown): string | undefined {
  return isObject(store) ? (store as { readonly [SERVICE]?: string })[SERVICE] : undefined;
}

/**
 * A value is kept as base64 in one or more pieces, each in an entry of its own, because Windows limits the length of entries. The
 * entry with the key's name has the format `1.<number of pieces>.<id>.<first piece>`; the others are named `<key> <id>.<number>`.
 * The id is new with each write. Other processes find the former pieces until the first entry is replaced.
 */
class KeyringStore implements TokenStore {
  readonly service: string;
  declare readonly [SERVICE]: string;
  /** Ends with the last write. */
  #writing: Promise<void> = Promise.resolve();

  constructor(service: string) {
    this.service = service;
    Object.defineProperty(this, SERVICE, { value: service, enumerable: false });
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const text = await this.#read(key);
      if (text === undefined) return undefined;
      const first = firstOf(text);
      if (!first) break;
      const pieces = [first.piece, ...(await Promise.all(namesOf(key, first).map((name) => this.#read(name))))];
      // Otherwise another process has replaced the value.
      if (pieces.every((piece) => piece !== undefined)) return bytesOf(key, pieces.join(""));
    }
    throw unusable(key);
  }

  set(key: string, value: Uint8Array): Promise<void> {
    return this.#write(async () => {
      const encoded = Buffer.from(value).toString("base64");
      const count = Math.max(1, Math.ceil(encoded.length / PIECE));
      if (count > MAX_PIECES) throw new AuthError(`keyringStore(): the value of ${JSON.stringify(key)} is too long for a keyring; use fileStore()`);
      const piece = (number: number): string => encoded.slice((number - 1) * PIECE, number * PIECE);
      const [random] = crypto.getRandomValues(new Uint32Array(1)) as unknown as [number];
      const id = random.toString(16).padStart(8, "0");
      const before = await this.#read(key);
      for (const [at, name] of namesOf(key, { count, id }).entries()) await this.#replace(name, piece(at + 2));
      await this.#replace(key, `1.${count}.${id}.${piece(1)}`);
      await this.#removePieces(key, before);
    });
  }

  delete(key: string): Promise<void> {
    return this.#write(async () => {
      const before = await this.#read(key);
      await this.#remove(key);
      await this.#removePieces(key, before);
    });
  }

  /** Runs a write after those that were started before. */
  #write(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(work);
    this.#writing = done.catch(() => undefined);
    return done;
  }

  /** Removes the pieces that belong to a former first entry. */
  async #removePieces(key: string, text: string | undefined): Promise<void> {
    const first = text === undefined ? undefined : firstOf(text);
    for (const name of first ? namesOf(key, first) : []) await this.#remove(name);
  }

  async #read(name: string): Promise<string | undefined> {
    return (await this.#ask("read", name, (entry) => entry.getPassword())) ?? undefined;
  }

  #replace(name: string, text: string): Promise<void> {
    return this.#ask("written", name, (entry) => entry.setPassword(text));
  }

  async #remove(name: string): Promise<void> {
    await this.#ask("written", name, (entry) => entry.deletePassword());
  }

  async #ask<T>(done: string, name: string, call: (entry: AsyncEntry) => Promise<T>): Promise<T> {
    const Entry = await load();
    let entry: AsyncEntry;
    try {
      entry = new Entry(this.service, name, OPTIONS);
    } catch (error) {
      throw failed(
        "the system has no keyring that can be used", error,
        "on Linux, start a Secret Service such as GNOME Keyring or KWallet, or use fileStore()",
      );
    }
    try {
      return await call(entry);
    } catch (error) {
      throw failed(`the system's keyring can't be ${done}`, error, "unlock it, or use fileStore()");
    }
  }
}

/** Imports the package, which is optional, when a store is used first. */
async function load(): Promise<typeof AsyncEntry> {
  try {
    return (await import("@napi-rs/keyring")).AsyncEntry;
  } catch (error) {
    throw failed("the package @napi-rs/keyring can't be imported", error, "run npm install @napi-rs/keyring, or use fileStore()");
  }
}

function firstOf(text: string): First | undefined {
  const [, count = "", id = "", piece = ""] = FIRST.exec(text) ?? [];
  return id !== "" && Number(count) <= MAX_PIECES ? { count: Number(count), id, piece } : undefined;
}

/** Returns the names of the entries of a value, without the first one. */
function namesOf(key: string, { count, id }: Pick<First, "count" | "id">): string[] {
  return Array.from({ length: count - 1 }, (_, at) => `${key} ${id}.${at + 2}`);
}

function bytesOf(key: string, encoded: string): Uint8Array {
  const bytes = Buffer.from(encoded, "base64");
  // Characters that are not base64 are left out.
  if (bytes.toString("base64") !== encoded) throw unusable(key);
  return new Uint8Array(bytes);
}

function unusable(key: string): AuthError {
  return new AuthError(`keyringStore(): the entry ${JSON.stringify(key)} is not valid; delete it, then sign in again`);
}

function failed(problem: string, cause: unknown, fix: string): AuthError {
  return new AuthError(`keyringStore(): ${problem} (${cause instanceof Error ? cause.message : String(cause)}); ${fix}`, { cause });
}
