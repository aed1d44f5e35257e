import { bindMethods } from "./model/bound-methods.js";
import { brandClass } from "./model/brand.js";
import { refuseUnknown } from "./model/checks.js";
import type { McpError } from "./model/errors.js";
import { serveInMemoryOf } from "./model/in-memory.js";
import { toJson } from "./model/json.js";
import { loggerOf } from "./model/logging.js";
import { type PromptResult, type ResourceResult, resourceResultFromWire, type ToolResult } from "./model/results.js";
import type { CallOptions, Change, ClientOptions, SubscribeOptions, Subscription, Target } from "./model/types/client.js";
import type { Prompt, Resource, ResourceTemplate, Tool } from "./model/types/components.js";
import { checkResourceResult } from "./client/checks.js";
import { errorOf, type ReportedError } from "./client/errors.js";
import { inContext } from "./client/middleware.js";
import { entriesOf, type Listing, PROMPTS, received, RESOURCE_TEMPLATES, RESOURCES, TOOLS } from "./client/received.js";
import { Subscribing } from "./client/subscription.js";
import { type ToolCall, toolCall, type ToolCallArguments } from "./client/tool-call.js";
import type { Listening, Taken } from "./client/wire.js";
import { type Client, openClient, type OpenedClient } from "./client.js";
import { checked, type FailedServer, native, type NativeGroup } from "./native.js";

type Wire = Record<string, unknown>;
type Targets = Readonly<Record<string, Target>>;
/** A change, and the name of the server that reported it. */
type GroupChange = Change & { server: string };

/**
 * Clients of several servers. Names of tools and prompts are prefixed with their server's name.
 *
 * @example
 * ```ts
 * import { ClientGroup, Server } from "gudgeon";
 *
 * const shelf = new Server("shelf");
 * shelf.tool("count", {}, () => 2);
 *
 * const group = await ClientGroup.connect({ shelf, gone: { command: "no-such-program" } });
 * console.log((await group.callTool("shelf_count")).text); // 2
 * console.log([...group.errors.keys()].join()); // gone
 * await group.close();
 * ```
 */
export class ClientGroup implements AsyncDisposable {
  readonly #members: ReadonlyMap<string, OpenedClient>;
  readonly #native: NativeGroup;

  private constructor(members: ReadonlyMap<string, OpenedClient>, native: NativeGroup) {
    if (!(members instanceof Map)) throw new TypeError("new ClientGroup(): a group has no public constructor; write await ClientGroup.connect(targets, options)");
    this.#members = members;
    this.#native = native;
  }

  /**
   * Connects to all servers in parallel. A server that can't be reached leaves the others working: its error is in `errors`, and
   * it is tried again in the background, after 1 s at first and after growing delays of up to 60 s, unless credentials or a common
   * revision are missing. A call to it tries at once. `onReconnect` is called when it is reached. Commands that end are started
   * again before the next request.
   *
   * @param targets - Targets by name, a host's whole configuration `{ mcpServers }` or `{ servers }`, or the path of a JSON file
   *   with either, where comments and commas after the last element are allowed. In a configuration and in a file, `${NAME}` and
   *   `${env:NAME}` stand for environment variables of this process, and `${NAME:-default}` has a default, which may hold
   *   references; a value is used as it is. Targets that the program names itself are used as they are.
   * @param options - The options of `Client.connect`, for each server; callbacks are given the name of the `server`.
   * @throws TypeError when a target or an option is invalid, the file is not valid JSON, or a variable is not set and has no
   *   default; it names the file, the server and the member. The error of node:fs when the file can't be read.
   */
  static async connect(targets: Targets | { mcpServers: Targets } | { servers: Targets } | string, options: ClientOptions = {}): Promise<ClientGroup> {
    const place = "ClientGroup.connect()";
    const entries = Object.entries(await targetsOf(targets, place));
    const logger = loggerOf(options.logger);
    const members = new Map<string, OpenedClient>();
    const failed: FailedServer[] = [];
    let misuse: unknown;
    const opening = entries.map(async ([name, target]) => openClient(target, optionsOf(name, options), place, name));
    for (const [at, outcome] of (await Promise.allSettled(opening)).entries()) {
      const [name, target] = entries[at] as [string, Target];
      if (outcome.status === "fulfilled") {
        members.set(name, outcome.value);
      } else if (isServer(target)) {
        logger.error(`the server ${name} could not be started:`, outcome.reason);
        failed.push({ name, reason: String(outcome.reason) });
      } else {
        misuse ??= outcome.reason;
      }
    }
    await Promise.allSettled([...members.values()].map(({ connected }) => connected));
    const natives = [...members.values()].map(({ native: client }) => client);
    const group = new ClientGroup(members, checked(place, () => new (native().NativeGroup)(natives, failed)));
    if (misuse === undefined) return group;
    await group.close();
    throw misuse;
  }

  /** The clients of the servers that were reached, by name. The connection of one may be lost meanwhile. */
  get clients(): ReadonlyMap<string, Client> {
    const reached = [...this.#members].filter(([, member]) => member.isConnected());
    return new Map(reached.map(([name, { client }]) => [name, client]));
  }

  /** The errors of the servers that can't be reached, or whose last list failed, by name. */
  get errors(): ReadonlyMap<string, McpError> {
    const errors = JSON.parse(this.#native.errors()) as Record<string, ReportedError>;
    return new Map(Object.entries(errors).map(([name, error]) => [name, errorOf(error) as McpError]));
  }

  /**
   * Returns all tools of all servers; each is named `<server>_<tool>`. Those of servers that fail are left out.
   *
   * @throws McpError when two tools would have the same name.
   */
  async listTools(): Promise<Tool[]> {
    return this.#list("listTools", TOOLS);
  }

  /** Returns all resources of all servers, under their own URIs. */
  async listResources(): Promise<Resource[]> {
    return this.#list("listResources", RESOURCES);
  }

  /** Returns all resource templates of all servers. */
  async listResourceTemplates(): Promise<ResourceTemplate[]> {
    return this.#list("listResourceTemplates", RESOURCE_TEMPLATES);
  }

  /**
   * Returns all prompts of all servers; each is named `<server>_<prompt>`. Those of servers that fail are left out.
   *
   * @throws McpError when two prompts would have the same name.
   */
  async listPrompts(): Promise<Prompt[]> {
    return this.#list("listPrompts", PROMPTS);
  }

  /**
   * Calls a tool by the name `<server>_<tool>`, as `Client.callTool` does.
   *
   * @throws NotSupported when no server's name fits; McpError when two tools have the name; the error of a server that
   *   can't be reached.
   */
  callTool(name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  callTool(call: ToolCall, options?: CallOptions): Promise<ToolResult>;
  async callTool(...given: ToolCallArguments<CallOptions>): Promise<ToolResult> {
    const [name, args, options] = toolCall(given);
    const [client, own] = await this.#find("findTool", name);
    return client.callTool(own, args, options);
  }

  /**
   * Reads a resource of `server`; by default of the first server that lists the URI. If none does, servers with a template
   * that matches are tried first, then the others.
   *
   * @throws the first error of a server that was tried, other than that it does not have the resource; ResourceNotFound without one.
   */
  async readResource(uri: string, options: { server?: string | undefined } = {}): Promise<ResourceResult> {
    refuseUnknown(`readResource(${JSON.stringify(uri)})`, ["server"], options);
    const result = (await this.#call("readResource", { uri, server: options.server })) as Wire;
    return received("resources/read", undefined, result, checkResourceResult, resourceResultFromWire);
  }

  /** Renders a prompt by the name `<server>_<prompt>`. */
  async getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<PromptResult> {
    const [client, own] = await this.#find("findPrompt", name);
    return client.getPrompt(own, args);
  }

  /**
   * Returns an iterator over changes of all servers, each with its `server`, from `open()` or the first step of the iteration on.
   *
   * Equal changes that wait in the queue are merged. A server that can't be reached is subscribed to once it is reached. After
   * an interruption everything that a server was subscribed to is reported as changed, since changes may have been missed.
   * The iteration ends when the group is closed, or when no server is left whose subscription continues; `errors` has the reasons.
   *
   * @param what - `uris` of resources, each of the server that `readResource` would read it from first; `tools`, `resources`,
   *   `prompts`: true for changes of these lists (default: false); `server`: the only server to subscribe to (default: all).
   * @throws TypeError when nothing is subscribed to.
   * @throws NotSupported when all servers are connected and none reports any of these changes, or no connected server reports
   *   updates of a resource.
   * @throws McpError when the group has no server of this name.
   *
   * Spec: Base Protocol › Patterns › Subscriptions.
   *
   * @example
   * ```ts
   * import { ClientGroup, Server } from "gudgeon";
   *
   * const shelf = new Server("shelf");
   * shelf.resource("shelf://about", {}, () => "two books");
   * const group = await ClientGroup.connect({ books: shelf });
   * const changes = await group.subscribe({ uris: ["shelf://about"] }).open();
   * shelf.notifyUpdated("shelf://about");
   * for await (const change of changes) {
   *   console.log(change); // { kind: 'updated', uri: 'shelf://about', server: 'books' }
   *   break;
   * }
   * await group.close();
   * ```
   */
  subscribe(what: SubscribeOptions & { server?: string | undefined }): Subscription<GroupChange> {
    const { server, ...wanted } = what;
    return new Subscribing<GroupChange>({ subscribe: (filter) => this.#subscribe(filter, server) }, wanted);
  }

  /** Closes all clients at the same time, and ends the attempts to reach servers. */
  async close(): Promise<void> {
    await Promise.all([...this.#members.values()].map(({ client }) => client.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #list<T>(what: string, listing: Listing<T>): Promise<T[]> {
    return entriesOf(listing, undefined, (await this.#call(what, {})) as readonly Wire[]);
  }

  /** Returns the client of the server that a tool or prompt belongs to, and its name there. */
  async #find(what: "findTool" | "findPrompt", name: string): Promise<[client: Client, own: string]> {
    let found = this.#native.findNow(name);
    if (found === null) {
      const { server, name: own } = (await this.#call(what, { name })) as { server: string; name: string };
      found = [server, own];
    }
    const [server, own] = found as [string, string];
    return [(this.#members.get(server) as OpenedClient).client, own];
  }

  /** Performs an operation of the native half. */
  async #call(what: string, params: object): Promise<unknown> {
    const json = toJson(params);
    return resultOf(await inContext((ticket) => this.#native.call(what, json, ticket)));
  }

  async #subscribe(filter: Wire, server: string | undefined): Promise<Listening<GroupChange>> {
    const number = resultOf(await this.#native.subscribe(toJson({ filter, server }, "subscribe()"))) as number;
    return {
      take: () => {
        const taken = this.#native.takeChange(number);
        return taken === null ? undefined : (JSON.parse(taken) as Taken<GroupChange>);
      },
      ready: () => this.#native.awaitChange(number),
      close: () => this.#native.unsubscribe(number),
    };
  }
}
brandClass("ClientGroup", ClientGroup as never);
bindMethods(ClientGroup);

/** Returns the result in the outcome of an operation; throws its error. */
function resultOf(outcome: string): unknown {
  const [result, error] = JSON.parse(outcome) as [unknown, ReportedError?];
  if (error) throw errorOf(error);
  return result;
}

async function targetsOf(given: unknown, place: string): Promise<Targets> {
  const { NativeGroup } = native();
  const found = checked(place, () => NativeGroup.targets(given));
  if (typeof found !== "string") return { ...(found.targets as Targets), ...(JSON.parse(found.read) as Targets) };
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(found);
  return JSON.parse(checked(place, () => NativeGroup.fileTargets(found, text))) as Targets;
}

/** Returns the options with callbacks that are given the server's name. */
function optionsOf(server: string, options: ClientOptions): ClientOptions {
  const named = { ...options };
  const { onElicit, onSample, onLog, onListChanged, onReconnect } = options;
  if (typeof onElicit === "function") named.onElicit = (request) => onElicit({ ...request, server });
  if (typeof onSample === "function") named.onSample = (request) => onSample({ ...request, server });
  if (typeof onLog === "function") named.onLog = (message) => onLog({ ...message, server });
  if (typeof onListChanged === "function") named.onListChanged = (kind) => onListChanged(kind, server);
  if (typeof onReconnect === "function") named.onReconnect = (info) => onReconnect({ ...info, server });
  return named;
}

function isServer(target: Target): boolean {
  return typeof target === "object" && serveInMemoryOf(target) !== undefined;
}
