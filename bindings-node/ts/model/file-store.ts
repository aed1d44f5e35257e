import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { native, type NativeTokenFile } from "../native.js";
import { display } from "./display.js";
import { AuthError } from "./errors.js";
import type { TokenStore } from "./types/auth.js";
import { isObject } from "./values.js";

/** Identifies the stores, also those of another copy of the package. */
const PATH = Symbol.for("gudgeon.fileStore");

/**
 * Keeps tokens and registrations in a file that only the user can read, and that several processes may share. It is not
 * encrypted. A file that can't be read or written is reported by an `AuthError`.
 *
 * @param path - The file, or its `file:` URL. Default: `gudgeon/tokens.json` below `$XDG_CONFIG_HOME`, or below `~/.config`.
 * @throws TypeError if the path is neither a string nor a `file:` URL.
 */
export function fileStore(path?: string | URL): TokenStore {
  return new FileStore(pathOf(path));
}

/** Returns the path of a file store; undefined for any other value. */
export function pathOfStore(store: unknown): string | undefined {
  return isObject(store) ? (store as { readonly [PATH]?: string })[PATH] : undefined;
}

class FileStore implements TokenStore {
  readonly path: string;
  declare readonly [PATH]: string;
  #file: NativeTokenFile | undefined;

  constructor(path: string) {
    this.path = path;
    Object.defineProperty(this, PATH, { value: path, enumerable: false });
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return (await reported(this.#opened.get(key))) ?? undefined;
  }

  async set(key: string, value: Uint8Array): Promise<void> {
    await reported(this.#opened.set(key, value));
  }

  async delete(key: string): Promise<void> {
    await reported(this.#opened.delete(key));
  }

  get #opened(): NativeTokenFile {
    return (this.#file ??= new (native().NativeTokenFile)(this.path));
  }
}

function pathOf(given: unknown): string {
  if (given === undefined) return join(process.env["XDG_CONFIG_HOME"] || join(homedir(), ".config"), "gudgeon", "tokens.json");
  if (typeof given === "string" && given !== "") return given;
  if (given instanceof URL && given.protocol === "file:") return fileURLToPath(given);
  throw new TypeError(`fileStore(): the path must be a string or a file: URL, not ${display(given)}`);
}

function reported<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => Promise.reject(new AuthError(error instanceof Error ? error.message : String(error), { cause: error })));
}
