import { checked, native, type NativeClient, type NativePlace } from "../native.js";
import { type InMemoryTransport, nameInMemory, type ServeInMemory, serveInMemoryOf, type TestMode } from "../model/in-memory.js";
import { toJson } from "../model/json.js";
import { pump } from "../model/transport.js";
import type { Target } from "../model/types/client.js";
import type { Transport } from "../model/types/server.js";
import { isObject } from "../model/values.js";

/** The members of an object that make it an entry of a host's configuration, or several. */
const ENTRY = ["command", "url", "mcpServers"];
const REACHED = "a URL, a command ({ command, args }), a Server in this process, or a Transport";

/** A server to connect to, with its name in errors. */
export interface OpenedTarget {
  readonly name: string;
  /** Begins to connect; `group` is the server's name in a group. */
  open(settings: string, group: string | null, wake: () => void): NativeClient;
  /** True if both ends are in this process: an idle connection does not keep it alive. */
  readonly isInMemory?: boolean;
  /** Resolves when the connection can be opened. */
  readonly ready?: Promise<void>;
  /** Adds a function that is called when a server in this process may send messages that answer no request. */
  readonly onSend?: ((listener: () => void) => void) | undefined;
  /** Resolves when a server in this process has stopped; rejects with the reason that it could not serve. */
  readonly served?: Promise<void>;
}

/** A server in this process, with the settings of a test's connection. */
export class TestTarget {
  constructor(
    readonly name: string,
    readonly serve: ServeInMemory,
    readonly testMode: TestMode,
  ) {}
}

/** Validates a target. No input or output happens yet, except that a server in this process starts to serve. */
export function reach(target: Target, place: string, headers?: unknown): OpenedTarget {
  const own = toJson(headers ?? null, `${place}: headers`);
  const found = placeOf(target, place, own);
  if (found) {
    return {
      name: found.name,
      open: (settings, group, wake) => checked(place, () => native().NativeClient.reach(found, settings, group, wake)),
    };
  }
  checked(place, () => native().NativePlace.checkHeaders(own));
  if (target instanceof TestTarget) return server(target.name, target.serve, place, target.testMode);
  if (isTransport(target as object)) return transport(target as Transport, place);
  return server(String((target as { name?: unknown }).name), serveInMemoryOf(target as object) as ServeInMemory, place);
}

/**
 * Returns the address of a server, or the program to start; undefined for a server in this process and for a transport. `headers`
 * are those of the client's options, JSON. Throws a TypeError if the target is none of these.
 */
export function placeOf(target: Target, place: string, headers: string): NativePlace | undefined {
  const read = (given: unknown): NativePlace => {
    const json = toJson(given, `${place}: the target`);
    return checked(place, () => new (native().NativePlace)(json, headers));
  };
  if (typeof target === "string" || target instanceof URL) return read(String(target));
  if (Array.isArray(target)) {
    const [command, ...args] = (target as unknown[]).map((word) => JSON.stringify(word));
    throw new TypeError(`${place}: a command must be an object; write { command: ${command}, args: [${args.join(", ")}] }`);
  }
  if (!isObject(target)) throw new TypeError(`${place}: the target must be ${REACHED}, not ${String(target)}`);
  if (target instanceof TestTarget || isTransport(target)) return undefined;
  if (ENTRY.some((name) => name in target)) return read(target);
  if (serveInMemoryOf(target)) return undefined;
  const keys = Object.keys(target).slice(0, 8).join(", ");
  throw new TypeError(`${place}: the target must be ${REACHED}, not ${keys ? `an object with ${keys}` : "an empty object"}`);
}

function server(serverName: string, serve: ServeInMemory, place: string, testMode?: TestMode): OpenedTarget {
  const name = nameInMemory(serverName);
  const { workQueue, entered, closed, onSend } = serve(testMode);
  return {
    name,
    isInMemory: true,
    open: (settings, group, wake) =>
      checked(place, () => native().NativeClient.joinStream(workQueue, name, settings, group, wake)),
    ready: entered,
    served: closed,
    onSend,
  };
}

function transport(target: Transport & Partial<InMemoryTransport>, place: string): OpenedTarget {
  const isInMemory = target.standsFor !== undefined;
  const name = target.standsFor ?? "transport";
  let end!: (result: Promise<void>) => void;
  const served = new Promise<void>((resolve) => (end = resolve));
  return {
    name,
    isInMemory,
    open(settings, group, wake) {
      const client = checked(place, () => native().NativeClient.openStream(name, settings, group, wake));
      end(pump(client.takePeer() ?? -1, target, !isInMemory));
      return client;
    },
    served,
    onSend: target.onSend,
  };
}

export function isTransport(target: object): target is Transport {
  return ["receive", "send", "close"].every((name) => typeof (target as Record<string, unknown>)[name] === "function");
}
