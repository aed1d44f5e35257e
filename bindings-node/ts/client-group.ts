import { brandClass } from "./model/brand.js";
import { refuseUnknown } from "./model/checks.js";
import { McpError, NotSupported, ProtocolError, ResourceNotFound } from "./model/errors.js";
import type { PromptResult, ResourceResult, ToolResult } from "./model/results.js";
import type { CallOptions, ClientOptions, Target } from "./model/types/client.js";
import type { Prompt, Resource, ResourceTemplate, Tool } from "./model/types/components.js";
import { isObject } from "./model/values.js";
import { type ToolCall, toolCall, type ToolCallArguments } from "./client/tool-call.js";
import { Client } from "./client.js";

type Targets = Readonly<Record<string, Target>>;

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
  readonly clients: ReadonlyMap<string, Client>;
  /** The errors of the servers that could not be reached, by name. */
  readonly errors: ReadonlyMap<string, McpError>;

  private constructor(clients: ReadonlyMap<string, Client>, errors: ReadonlyMap<string, McpError>) {
    this.clients = clients;
    this.errors = errors;
  }

  /**
   * Connects to all servers in parallel. Those that fail are in `errors`.
   *
   * @param targets - Targets by name, or a host's whole configuration `{ mcpServers }`.
   * @param options - The options of `Client.connect`, for each server; requests to `onElicit` and `onSample` name the `server`.
   * @throws TypeError when a target or an option is invalid.
   */
  static async connect(targets: Targets | { mcpServers: Targets }, options: ClientOptions = {}): Promise<ClientGroup> {
    const entries = Object.entries(targetsOf(targets));
    const clients = new Map<string, Client>();
    const errors = new Map<string, McpError>();
    const settled = await Promise.allSettled(entries.map(([name, target]) => Client.connect(target, optionsOf(name, options))));
    let misuse: unknown;
    for (const [at, outcome] of settled.entries()) {
      const name = entries[at]?.[0] ?? "";
      if (outcome.status === "fulfilled") clients.set(name, outcome.value);
      else if (outcome.reason instanceof McpError) errors.set(name, outcome.reason);
      else misuse ??= outcome.reason;
    }
    const group = new ClientGroup(clients, errors);
    if (misuse === undefined) return group;
    await group.close();
    throw misuse;
  }

  /**
   * Returns all tools of all servers; each is named `<server>_<tool>`.
   *
   * @throws McpError when two tools would have the same name.
   */
  async listTools(): Promise<Tool[]> {
    return prefixed("tool", await this.#lists("tools", listTools));
  }

  /** Returns all resources of all servers, under their own URIs. */
  async listResources(): Promise<Resource[]> {
    return items(await this.#lists("resources", (client) => client.listResources()));
  }

  /** Returns all resource templates of all servers. */
  async listResourceTemplates(): Promise<ResourceTemplate[]> {
    return items(await this.#lists("resources", (client) => client.listResourceTemplates()));
  }

  /**
   * Returns all prompts of all servers; each is named `<server>_<prompt>`.
   *
   * @throws McpError when two prompts would have the same name.
   */
  async listPrompts(): Promise<Prompt[]> {
    return prefixed("prompt", await this.#lists("prompts", listPrompts));
  }

  /**
   * Calls a tool by the name `<server>_<tool>`, as `Client.callTool` does.
   *
   * @throws NotSupported when no server's name fits; McpError when two tools have the name; the error of a server that
   *   was not reached.
   */
  callTool(name: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  callTool(call: ToolCall, options?: CallOptions): Promise<ToolResult>;
  async callTool(...given: ToolCallArguments<CallOptions>): Promise<ToolResult> {
    const [name, args, options] = toolCall(given);
    const [client, own] = await this.#find(name, "tool", () => this.#lists("tools", listTools));
    return client.callTool(own, args, options);
  }

  /**
   * Reads a resource of `server`; by default of the server that lists the URI, or else the first that can read it.
   *
   * @throws ResourceNotFound when no server has it; the error of a server that refused the request.
   */
  async readResource(uri: string, options: { server?: string | undefined } = {}): Promise<ResourceResult> {
    refuseUnknown(`readResource(${JSON.stringify(uri)})`, ["server"], options);
    const { server } = options;
    if (server !== undefined) return this.#client(server).readResource(uri);
    const candidates = [...this.clients.values()].filter((client) => client.capabilities["resources"] !== undefined);
    if (candidates.length > 1) {
      const lists = await Promise.allSettled(candidates.map((client) => client.listResources()));
      const at = lists.findIndex((list) => list.status === "fulfilled" && list.value.some((one) => one.uri === uri));
      if (at >= 0) return (candidates[at] as Client).readResource(uri);
    }
    let refusal: ProtocolError | undefined;
    for (const client of candidates) {
      try {
        return await client.readResource(uri);
      } catch (error) {
        // Some servers report an unknown resource by another error.
        if (error instanceof ProtocolError) refusal ??= error;
        else if (!(error instanceof ResourceNotFound)) throw error;
      }
    }
    if (refusal) throw refusal;
    throw new ResourceNotFound(uri, `no server of this group knows the resource ${uri}${this.#missing()}`);
  }

  /** Renders a prompt by the name `<server>_<prompt>`. */
  async getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<PromptResult> {
    const [client, own] = await this.#find(name, "prompt", () => this.#lists("prompts", listPrompts));
    return client.getPrompt(own, args);
  }

  /** Closes all clients. */
  async close(): Promise<void> {
    await Promise.all([...this.clients.values()].map((client) => client.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Returns the lists of the servers that declared the capability. */
  async #lists<T>(capability: string, list: (client: Client) => Promise<T[]>): Promise<Lists<T>> {
    const asked = [...this.clients].filter(([, client]) => client.capabilities[capability] !== undefined);
    return Promise.all(asked.map(async ([server, client]) => [server, await list(client)] as const));
  }

  /** Returns the server of a tool or prompt, and its name there. `lists` is called if several servers' names match. */
  async #find(name: string, kind: string, lists: () => Promise<Lists<Named>>): Promise<[client: Client, own: string]> {
    const known = [...this.clients.keys(), ...this.errors.keys()];
    const fitting = known.filter((server) => name.startsWith(`${server}_`)).sort((one, other) => other.length - one.length);
    const homes = fitting.map((server): Home => [server, name.slice(server.length + 1)]);
    const home = homes.length > 1 ? homeOf(kind, name, homes, await lists()) : homes[0];
    if (home) return [this.#client(home[0]), home[1]];
    throw new NotSupported(`no server of this group has the ${kind} ${JSON.stringify(name)}`, {
      hint: `names are <server>_<${kind}>, and the servers are ${[...this.clients.keys()].join(", ")}${this.#missing()}`,
    });
  }

  #client(server: string): Client {
    const client = this.clients.get(server);
    if (client) return client;
    throw this.errors.get(server) ?? new TypeError(`this group has no server ${JSON.stringify(server)}; it has ${[...this.clients.keys()].join(", ")}`);
  }

  #missing(): string {
    return this.errors.size === 0 ? "" : ` (not reached: ${[...this.errors.keys()].join(", ")})`;
  }
}
brandClass("ClientGroup", ClientGroup as never);

function targetsOf(given: Targets | { mcpServers: Targets }): Targets {
  const targets = isObject(given) && isObject(given["mcpServers"]) ? (given["mcpServers"] as Targets) : (given as Targets);
  if (isObject(targets) && typeof (targets as { command?: unknown }).command !== "string") return targets;
  throw new TypeError("ClientGroup.connect(): the targets must be an object of targets by name, as in { shelf: app, time: { command: \"uvx\", args: [\"mcp-server-time\"] } }");
}

/** Returns the options with callbacks whose requests name the server. */
function optionsOf(server: string, options: ClientOptions): ClientOptions {
  const named = { ...options };
  const { onElicit, onSample } = options;
  if (typeof onElicit === "function") named.onElicit = (request) => onElicit({ ...request, server });
  if (typeof onSample === "function") named.onSample = (request) => onSample({ ...request, server });
  return named;
}

type Named = { readonly name: string };
/** The entries that each server listed. */
type Lists<T> = readonly (readonly [server: string, items: readonly T[]])[];
type Home = readonly [server: string, own: string];

const listTools = (client: Client): Promise<Tool[]> => client.listTools();
const listPrompts = (client: Client): Promise<Prompt[]> => client.listPrompts();

function items<T>(lists: Lists<T>): T[] {
  return lists.flatMap(([, list]) => list);
}

/** Returns all entries with names prefixed by their server's name. */
function prefixed<T extends Named>(kind: string, lists: Lists<T>): T[] {
  const homes = new Map<string, Home>();
  return lists.flatMap(([server, list]) =>
    list.map((one) => {
      const name = `${server}_${one.name}`;
      const other = homes.get(name);
      if (other) throw ambiguous(kind, name, [other, [server, one.name]]);
      homes.set(name, [server, one.name]);
      return { ...one, name };
    }),
  );
}

/** Returns, of several servers whose names match, the one that lists the rest of the name; by default the longest name. */
function homeOf(kind: string, name: string, homes: readonly Home[], lists: Lists<Named>): Home | undefined {
  const listed = new Map(lists);
  const having = homes.filter(([server, own]) => listed.get(server)?.some((one) => one.name === own));
  if (having.length > 1) throw ambiguous(kind, name, having);
  return having[0] ?? homes[0];
}

function ambiguous(kind: string, name: string, homes: readonly Home[]): McpError {
  const owners = homes.map(([server, own]) => `the ${kind} ${JSON.stringify(own)} of server ${JSON.stringify(server)}`);
  return new McpError(`ClientGroup: ${JSON.stringify(name)} is ${owners.join(" and ")}`, { hint: "give one of the servers another name" });
}
