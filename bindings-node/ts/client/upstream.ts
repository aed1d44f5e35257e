import { readFileSync } from "node:fs";

import { display } from "../model/display.js";
import { serveInMemoryOf } from "../model/in-memory.js";
import { toJson } from "../model/json.js";
import { loggerOf } from "../model/logging.js";
import { credentialsOf, type Credentials } from "../model/sign-in.js";
import { stringify } from "../model/stringify.js";
import type { Logger } from "../model/types/logging.js";
import type { ClientOptions, Target, Upstream, UpstreamOptions, UpstreamTarget } from "../model/types/client.js";
import { setUpstream } from "../model/upstream.js";
import { isObject } from "../model/values.js";
import { checked, native, type NativePlace, type NativeSignInQuestion } from "../native.js";
import { refusalOf } from "./errors.js";
import { answerByFetch } from "./fetch.js";
import { checkClientOptions } from "./options.js";
import { settingsOf } from "./settings.js";
import { isTransport, placeOf } from "./target.js";

/** Functions that a client of an upstream server has, too: they do not concern what it asks and tells. */
const OWN_FUNCTIONS = ["auth", "fetch"];

/**
 * Names a server that a client reaches, to mount it into another one: `app.mount(upstream(target), "prefix")`.
 *
 * Its tools and prompts are offered as `prefix_name`, its resources with their URIs. Calls are passed on with their progress, log
 * messages, `_meta` and cancellation, and results as they came. Its questions (elicitation, sampling, roots) reach the client that
 * made the call, whatever revisions the two speak.
 *
 * While it can't be reached, what it offered before stays, calls of it fail and name the reason, and it is tried again in the
 * background, after 1 s at first and after growing delays of up to 60 s. A command that ended is started again. The start of the
 * server waits for it for up to 10 s.
 *
 * @param target - A URL, a command `{ command, args }`, or an entry of a host's configuration. With several servers, by name or as
 *   `{ mcpServers }`, or the path of a JSON file with them, which is read at once, the names are `prefix_server_name`.
 * @param options - The options of `Client.connect`, without middleware and callbacks.
 * @throws TypeError if the target or an option can't be used; the error of node:fs if the file can't be read.
 *
 * @example
 * ```ts
 * import { Server, upstream } from "gudgeon";
 *
 * const app = new Server("desk");
 * const clock = upstream({ command: "uvx", args: ["mcp-server-time"] }, { timeoutMs: 10_000 });
 * app.mount(clock, "clock");
 * console.log(clock.servers.join()); // uvx mcp-server-time
 * ```
 */
export function upstream(target: UpstreamTarget, options: UpstreamOptions = {}): Upstream {
  const place = "upstream()";
  if (isObject(options)) refuseCallbacks(place, options);
  checkClientOptions(place, options);
  const given: ClientOptions = options;
  const credentials = credentialsOf(given.auth, place);
  const settings = settingsOf(given, place, credentials);
  const places = placesOf(target, place, toJson(given.headers ?? null, `${place}: headers`));
  const logger = loggerOf(given.logger);
  const { fetch } = given;
  return setUpstream(
    { servers: places.map(([, { name }]) => name) },
    {
      places,
      settings,
      ask: (question) => void answer(question, credentials, logger),
      connect: ({ fd, origin }) => void (fetch && answerByFetch(fd, origin, fetch, logger)),
    },
  );
}

function refuseCallbacks(place: string, options: object): void {
  for (const [name, value] of Object.entries(options)) {
    const isCallback = typeof value === "function" && !OWN_FUNCTIONS.includes(name);
    if (isCallback || (name === "middleware" && value !== undefined)) {
      throw new TypeError(`${place}: the clients of the server answer its questions and get its messages: leave ${name} out`);
    }
  }
}

/** Answers a question of a client that signs in. */
async function answer(question: NativeSignInQuestion, credentials: Credentials | undefined, logger: Logger): Promise<void> {
  try {
    const given = await credentials?.answer(JSON.parse(question.params()) as never);
    const wrong = question.answer(stringify(given) ?? "null");
    if (wrong != null) logger.error("auth failed:", new TypeError(wrong));
  } catch (error) {
    question.refuse(stringify(refusalOf(error, "auth", logger)) ?? "");
  }
}

/** Returns the places of the servers, each with its name if there are several. */
function placesOf(target: unknown, place: string, headers: string): (readonly [string | undefined, NativePlace])[] {
  const named = (targets: object): (readonly [string, NativePlace])[] =>
    Object.entries(targets).map(([name, one]) => [name, onlyPlace(one, `${place}: ${JSON.stringify(name)}`, headers)]);
  if (typeof target === "string" && isPathOfJson(target)) {
    const text = readFileSync(target);
    return named(JSON.parse(checked(place, () => native().NativeGroup.fileTargets(target, text))) as object);
  }
  if (isGroup(target)) {
    const found = checked(place, () => native().NativeGroup.targets(target));
    if (typeof found !== "string") return named({ ...(found.targets as object), ...(JSON.parse(found.read) as object) });
  }
  return [[undefined, onlyPlace(target, place, headers)]];
}

function onlyPlace(target: unknown, place: string, headers: string): NativePlace {
  const found = placeOf(target as Target, place, headers);
  if (found) return found;
  if (isObject(target) && isTransport(target)) {
    throw new TypeError(`${place}: a transport of your own opens once: give a URL or a command`);
  }
  const name = isObject(target) ? display(target["name"]) : "it";
  throw new TypeError(`${place}: ${name} is a server of this program: mount it without upstream()`);
}

function isPathOfJson(target: string): boolean {
  return !target.includes("://") && target.toLowerCase().endsWith(".json");
}

/** Returns true for servers by name. */
function isGroup(target: unknown): boolean {
  if (!isObject(target) || target instanceof URL || Array.isArray(target)) return false;
  return !("command" in target) && !("url" in target) && !isTransport(target) && serveInMemoryOf(target) === undefined;
}
