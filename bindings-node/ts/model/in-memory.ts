import type { NativeWorkQueue } from "../native.js";
import type { Principal } from "./types/server.js";

/** The settings of a connection that a test makes. */
export interface TestMode {
  /** Seals request states where the server has no keys of its own; 32 bytes. */
  readonly stateKey: Uint8Array;
  /** Discards a waiting handler at every question, so that it is replayed. */
  readonly replays: boolean;
  /** The principal of every call. */
  readonly principal: Principal | undefined;
  /** The HTTP headers of every call: names and values in turn. */
  readonly headers: readonly string[];
}

/** The stream of a server in this process. */
export interface MemoryStream {
  /** Holds the client's end of the stream. */
  readonly workQueue: NativeWorkQueue;
  /** Resolves when the server's lifespan has been entered. */
  readonly entered: Promise<void>;
  /** Resolves when the server has closed its end. */
  readonly closed: Promise<void>;
  /** Adds a function that is called when the server may send messages that answer no request. */
  onSend(listener: () => void): void;
}

/** The members of a test's transport that stands between a client and a server in this process. */
export interface InMemoryTransport {
  /** The name of the server, as errors show it. */
  readonly standsFor: string;
  readonly onSend: MemoryStream["onSend"];
}

/** Serves one peer in memory. */
export type ServeInMemory = (testMode?: TestMode) => MemoryStream;

const SERVE = Symbol.for("gudgeon.serveInMemory");

/** Gives a server the function by which clients in this process connect to it; clients of other copies of the package find it too. */
export function setServeInMemory(server: object, serve: ServeInMemory): void {
  Object.defineProperty(server, SERVE, { value: serve });
}

/** Returns that function; undefined for an object that is not a `Server`. */
export function serveInMemoryOf(server: object): ServeInMemory | undefined {
  return (server as { [SERVE]?: ServeInMemory })[SERVE];
}

/** Returns the name of a server in this process, as errors show it. */
export function nameInMemory(server: string): string {
  return `the server ${JSON.stringify(server)} in memory`;
}
