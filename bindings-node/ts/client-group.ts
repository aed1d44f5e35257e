import { brandClass } from "./model/brand.js";
import { refuseUnknown } from "./model/checks.js";
import { McpError } from "./model/errors.js";
import { toJson } from "./model/json.js";
import type { PromptResult, ResourceResult, ToolResult } from "./model/results.js";
import type { CallOptions, ClientOptions, Target } from "./model/types/client.js";
import type { Prompt, Resource, ResourceTemplate, Tool } from "./model/types/components.js";
import { isObject } from "./model/values.js";
import { errorOf, type ReportedError } from "./client/errors.js";
import { type ToolCall, toolCall, type ToolCallArguments } from "./client/tool-call.js";
import { Client } from "./client.js";
import { checked, native } from "./native.js";

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
    if (!(errors instanceof Map)) throw new TypeError("new ClientGroup(): a group has no public constructor; write await ClientGroup.connect(targets, options)");
    this.clients = clients;
    this.errors = errors;
  }

  /**
   * Connects to all servers in parallel. Those that fail are in `errors`.
   *
   * @param targets - Targets by name, a host's whole configuration `{ mcpServers }`, or the path of a JSON file with such a
   *   configuration.
   * @param options - The options of `Client.connect`, for each server; requests to `onElicit` and `onSample` name the `server`.
   * @throws TypeError when a target or an option is invalid, or the file is not valid JSON; the error of node:fs when the file
   *   can't be read.
   */
  static async connect(targets: Targets | { mcpServers: Targets } | string, options: ClientOptions = {}): Promise<ClientGroup> {
    const entries = Object.entries(await targetsOf(targets));
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
    return renamed("tool", await this.#lists("tool"));
  }

  /** Returns all resources of all servers, under their own URIs. */
  async listResources(): Promise<Resource[]> {
    return (await this.#lists("resource")).flatMap(([, list]) => list);
  }

  /** Returns all resource templates of all servers. */
  async listResourceTemplates(): Promise<ResourceTemplate[]> {
    return (await this.#lists("resourceTemplate")).flatMap(([, list]) => list);
  }

  /**
   * Returns all prompts of all servers; each is named `<server>_<prompt>`.
   *
   * @throws McpError when two prompts would have the same name.
   */
  async listPrompts(): Promise<Prompt[]> {
    return renamed("prompt", await this.#lists("prompt"));
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
    const [client, own] = await this.#find("tool", name);
    return client.callTool(own, args, options);
  }

  /**
   * Reads a resource of `server`; by default of the first server that lists the URI. If none does, servers with a template
   * that matches are tried first, then the others.
   *
   * @throws ResourceNotFound when no server has it; else the first other error of a server that was tried.
   */
  async readResource(uri: string, options: { server?: string | undefined } = {}): Promise<ResourceResult> {
    refuseUnknown(`readResource(${JSON.stringify(uri)})`, ["server"], options);
    const { server } = options;
    if (server !== undefined) return this.#client(server).readResource(uri);
    const lists: Record<string, Names> = {};
    const errors: McpError[] = [];
    for (;;) {
      const failures = errors.map(({ kind }) => kind);
      const step = answerOf({ what: "resource", uri, group: this.#known(this.#having("resource")), failures, ...lists });
      if ("list" in step) {
        lists[`${step.list}s`] = await this.#names(step.list, step.of);
      } else if ("raise" in step) {
        throw errors[step.raise] as McpError;
      } else {
        try {
          return await this.#client(step.read).readResource(uri);
        } catch (error) {
          if (!(error instanceof McpError)) throw error;
          errors.push(error);
        }
      }
    }
  }

  /** Renders a prompt by the name `<server>_<prompt>`. */
  async getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<PromptResult> {
    const [client, own] = await this.#find("prompt", name);
    return client.getPrompt(own, args);
  }

  /** Closes all clients. */
  async close(): Promise<void> {
    await Promise.all([...this.clients.values()].map((client) => client.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Returns the lists of all servers. */
  #lists<K extends Kind>(kind: K): Promise<(readonly [server: string, items: Listed[K][]])[]> {
    return Promise.all(this.#having(kind).map(async (server) => [server, await LISTS[kind](this.#client(server))] as const));
  }

  /** Returns the names, URIs or templates that servers list; one that fails to list has none. */
  async #names(kind: Kind, servers: readonly string[]): Promise<Names> {
    const lists = await Promise.allSettled(servers.map(async (server) => LISTS[kind](this.#client(server))));
    return lists.map((list, at) => [servers[at] ?? "", list.status === "fulfilled" ? list.value.map(nameOf) : []]);
  }

  /** Returns the connected servers that declared tools, prompts or resources. */
  #having(kind: Kind): string[] {
    const capability = kind === "resourceTemplate" ? "resources" : `${kind}s`;
    return [...this.clients].flatMap(([server, client]) => (client.capabilities[capability] === undefined ? [] : [server]));
  }

  /** Returns the server of a tool or prompt, and its name there. */
  async #find(kind: Kind, name: string): Promise<[client: Client, own: string]> {
    const question = { what: "find", kind, name, group: this.#known() };
    let home = answerOf<Found>(question);
    if ("list" in home) {
      const having = this.#having(kind);
      home = answerOf<Found>({ ...question, lists: await this.#names(kind, home.of.filter((server) => having.includes(server))) });
    }
    const { server, name: own } = home as Home;
    return [this.#client(server), own];
  }

  #client(server: string): Client {
    const client = this.clients.get(server);
    if (client) return client;
    throw this.errors.get(server) ?? answerOf({ what: "unknown", server, group: this.#known() });
  }

  #known(connected: Iterable<string> = this.clients.keys()): object {
    return { connected: [...connected], missing: [...this.errors.keys()] };
  }
}
brandClass("ClientGroup", ClientGroup as never);

async function targetsOf(given: unknown): Promise<Targets> {
  const place = "ClientGroup.connect()";
  const { NativeGroup } = native();
  const targets = checked(place, () => NativeGroup.targets(given)) as Targets | string;
  if (typeof targets !== "string") return targets;
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(targets, "utf8");
  return JSON.parse(checked(place, () => NativeGroup.fileTargets(targets, text))) as Targets;
}

/** Returns the options with callbacks whose requests name the server. */
function optionsOf(server: string, options: ClientOptions): ClientOptions {
  const named = { ...options };
  const { onElicit, onSample } = options;
  if (typeof onElicit === "function") named.onElicit = (request) => onElicit({ ...request, server });
  if (typeof onSample === "function") named.onSample = (request) => onSample({ ...request, server });
  return named;
}

/** The names, URIs or templates that each server listed. */
type Names = [server: string, names: string[]][];
interface Listed {
  tool: Tool;
  prompt: Prompt;
  resource: Resource;
  resourceTemplate: ResourceTemplate;
}
type Kind = keyof Listed;

/** Answers of the native half; `list` asks for lists of these servers first. */
type Ask = { readonly list: Kind; readonly of: readonly string[] };
type Home = { readonly server: string; readonly name: string };
type Found = Ask | Home;
type Reading = Ask | { readonly read: string } | { readonly raise: number };

const LISTS: { readonly [K in Kind]: (client: Client) => Promise<Listed[K][]> } = {
  tool: (client) => client.listTools(),
  prompt: (client) => client.listPrompts(),
  resource: (client) => client.listResources(),
  resourceTemplate: (client) => client.listResourceTemplates(),
};

/** Asks the native half about a group; throws the error that it answers. */
function answerOf<T = Reading>(question: object): T {
  const answer = JSON.parse(native().NativeGroup.answer(toJson(question))) as T | { error: ReportedError };
  if (isObject(answer) && "error" in answer) throw errorOf(answer["error"] as ReportedError);
  return answer as T;
}

function nameOf(item: Listed[Kind]): string {
  return "uriTemplate" in item ? item.uriTemplate : "uri" in item ? item.uri : item.name;
}

/** Returns all entries with names prefixed by their server's name. */
function renamed<T extends { readonly name: string }>(kind: Kind, lists: readonly (readonly [string, readonly T[]])[]): T[] {
  const own = lists.map(([server, list]) => [server, list.map(({ name }) => name)]);
  const { names } = answerOf<{ names: string[][] }>({ what: "names", kind, lists: own });
  return lists.flatMap(([, list], at) => list.map((one, index) => ({ ...one, name: names[at]?.[index] ?? one.name })));
}
