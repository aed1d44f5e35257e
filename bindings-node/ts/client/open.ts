import type { Client } from "../client.js";
import type { NativeClient } from "../native.js";
import type { ClientOptions, Target } from "../model/types/client.js";

/** A client that is being connected. */
export interface OpenedClient {
  readonly client: Client;
  readonly native: NativeClient;
  /** Rejects when the server can't be reached. */
  readonly connected: Promise<void>;
  /** Returns true once the server was reached, which in a group may be later. */
  isConnected(): boolean;
}

/**
 * Begins to connect to a server; `group` is its name in a group. Throws if the target or an option is invalid, and if a server in
 * this process does not start.
 */
type Open = (target: Target, options: ClientOptions, place: string, group?: string) => Promise<OpenedClient>;

let open: Open;

/** Sets the function that `openClient` calls: only the class can make clients. */
export function setOpen(given: Open): void {
  open = given;
}

export const openClient: Open = (...given) => open(...given);
