import { checked, native, type NativeClient } from "../native.js";
import { display } from "../model/display.js";
import { type InMemoryTransport, nameInMemory, type ServeInMemory, serveInMemoryOf, type TestMode } from "../model/in-memory.js";
import { pump } from "../model/transport.js";
import type { Command, Target } from "../model/types/client.js";
import type { Transport } from "../model/types/server.js";
import { isObject } from "../model/values.js";

const SCHEMES = ["http:", "https:", "ws:", "wss:", "tcp:", "unix:"];
const TAKE_HEADERS = /^(https?|wss?):/i;
const REACHED = "a URL, a command ({ command, args }), a Server in this process, or a Transport";

type Headers = Readonly<Record<string, string>>;

/** A server to connect to, with its name in errors. */
export interface Reached {
  readonly name: string;
  open(settings: string, wake: () => void): NativeClient;
  /** True if both ends are in this process: an idle connection does not keep it alive. */
  readonly isInMemory?: boolean;
  /** True if the server may be restarted after the connection was lost. */
  readonly restarts?: boolean;
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
export function reach(target: Target, place: string, headers: Headers = {}): Reached {
  if (typeof target === "string" || target instanceof URL) return url(String(target), headers, place);
  if (Array.isArray(target)) {
    const [command, ...args] = (target as unknown[]).map((word) => JSON.stringify(word));
    throw new TypeError(`${place}: a command must be an object; write { command: ${command}, args: [${args.join(", ")}] }`);
  }
  if (!isObject(target)) throw new TypeError(`${place}: the target must be ${REACHED}, not ${String(target)}`);
  if ("url" in target && !("command" in target) && !isTransport(target)) {
    return url(String(target.url), { ...headersOf(target.headers, place), ...headers }, place);
  }
  if (Object.keys(headers).length > 0) throw new TypeError(`${place}: headers can be sent to http, https, ws and wss URLs only`);
  if (target instanceof TestTarget) return server(target.name, target.serve, place, target.testMode);
  if (isTransport(target)) return transport(target, place);
  if ("command" in target) return command(target as unknown as Command, place);
  if ("mcpServers" in target) throw new TypeError(`${place}: this is a configuration of several servers; pass it to ClientGroup.connect()`);
  const serve = serveInMemoryOf(target);
  if (!serve) {
    const keys = Object.keys(target).slice(0, 8).join(", ");
    throw new TypeError(`${place}: the target must be ${REACHED}, not ${keys ? `an object with ${keys}` : "an empty object"}`);
  }
  return server(String((target as { name?: unknown }).name), serve, place);
}

/** Validates headers of a configuration or of the options. Errors never show a value, since it may be a secret. */
export function headersOf(given: unknown, place: string): Headers {
  if (given === undefined) return {};
  if (!isObject(given)) throw new TypeError(`${place}: headers must be an object of names and values`);
  const wrong = Object.entries(given).find(([, value]) => typeof value !== "string");
  if (wrong) throw new TypeError(`${place}: the header ${JSON.stringify(wrong[0])} must be a string`);
  return given as Headers;
}

function url(text: string, headers: Headers, place: string): Reached {
  const scheme = /^([a-z][a-z0-9+.-]*:)./i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined || !SCHEMES.includes(scheme)) throw noUrl(text, place);
  if (Object.keys(headers).length > 0 && !TAKE_HEADERS.test(text)) {
    throw new TypeError(`${place}: headers can be sent to http, https, ws and wss URLs only`);
  }
  const json = JSON.stringify({ url: text });
  const named = Object.entries(headers);
  return {
    // The query may contain a secret.
    name: text.replace(/\?.*$/s, "?…"),
    open: (settings, wake) => checked(place, () => native().NativeClient.reach(json, withHeaders(settings, named), wake)),
  };
}

/** Adds the headers to a client's settings. */
function withHeaders(settings: string, headers: readonly (readonly string[])[]): string {
  return JSON.stringify({ ...(JSON.parse(settings) as object), headers });
}

function command(given: Command, place: string): Reached {
  const { command, args = [], env = {}, cwd, restart } = given;
  if (given.type !== undefined && given.type !== "stdio") {
    throw new TypeError(`${place}: the type of a command must be "stdio", not ${display(given.type)}; for a URL write { url }`);
  }
  if (typeof command !== "string" || command === "") throw new TypeError(`${place}: command must be a program's name or path, not ${display(command)}`);
  const wrong = Array.isArray(args) ? args.findIndex((one) => typeof one !== "string") : 0;
  if (wrong >= 0) throw new TypeError(`${place}: args must be a list of strings, not ${display(args)}`);
  const named = Object.entries(env).find(([, value]) => typeof value !== "string");
  if (named) throw new TypeError(`${place}: env.${named[0]} must be a string`);
  const json = JSON.stringify({ argv: [command, ...args], env, cwd });
  return {
    name: [command, ...args].join(" "),
    restarts: restart === true,
    open: (settings, wake) => checked(place, () => native().NativeClient.reach(json, settings, wake)),
  };
}

function server(serverName: string, serve: ServeInMemory, place: string, testMode?: TestMode): Reached {
  const name = nameInMemory(serverName);
  const { shell, entered, closed, onSend } = serve(testMode);
  return {
    name,
    isInMemory: true,
    open: (settings, wake) => checked(place, () => native().NativeClient.joinStream(shell, name, settings, wake)),
    ready: entered,
    served: closed,
    onSend,
  };
}

function transport(target: Transport & Partial<InMemoryTransport>, place: string): Reached {
  const isInMemory = target.standsFor !== undefined;
  const name = target.standsFor ?? "transport";
  let end!: (result: Promise<void>) => void;
  const served = new Promise<void>((resolve) => (end = resolve));
  return {
    name,
    isInMemory,
    open(settings, wake) {
      const client = checked(place, () => native().NativeClient.openStream(name, settings, wake));
      end(pump(client.takePeer() ?? -1, target, !isInMemory));
      return client;
    },
    served,
    onSend: target.onSend,
  };
}

function isTransport(target: object): target is Transport {
  return ["receive", "send", "close"].every((name) => typeof (target as Record<string, unknown>)[name] === "function");
}

function noUrl(text: string, place: string): Error {
  const [command = "", ...args] = text.split(/\s+/);
  const object = JSON.stringify({ command, args }).replaceAll(/"(command|args)":/g, " $1: ").replace(/,\s+args/, ", args").replace(/}$/, " }");
  return new TypeError(`${place}: ${JSON.stringify(text)} must be a URL (http, https, ws, wss, tcp, unix); for a command write ${object}`);
}
