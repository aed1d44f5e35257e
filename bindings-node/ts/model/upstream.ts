import type { NativeConnection, NativePlace, NativeSignInQuestion } from "../native.js";

/** The servers of an `Upstream`, and the client that reaches each. */
export interface UpstreamServers {
  /** Each with its name, if there are several. */
  readonly places: readonly (readonly [name: string | undefined, place: NativePlace])[];
  /** The settings of the clients, JSON. */
  readonly settings: string;
  /** Answers a question of a client that signs in. */
  ask(question: NativeSignInQuestion): void;
  /** Serves a connection by the option `fetch`. */
  connect(connection: NativeConnection): void;
}

const UPSTREAM = Symbol.for("gudgeon.upstream");

/** Gives an `Upstream` its servers, which other copies of the package find too. */
export function setUpstream<T extends object>(made: T, servers: UpstreamServers): T {
  return Object.defineProperty(made, UPSTREAM, { value: servers });
}

/** Returns the servers of an `Upstream`; undefined for another value. */
export function upstreamOf(value: unknown): UpstreamServers | undefined {
  return typeof value === "object" && value !== null ? (value as { [UPSTREAM]?: UpstreamServers })[UPSTREAM] : undefined;
}
