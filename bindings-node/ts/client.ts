import { bindMethods } from "./model/bound-methods.js";
import { brandClass } from "./model/brand.js";
import { display } from "./model/display.js";
import { toJson } from "./model/json.js";
import { keepAliveUntil } from "./model/keep-alive.js";
import {
  type PromptResult, promptResultFromWire, type ResourceResult, resourceResultFromWire, type ToolResult,
} from "./model/results.js";
import { explainSdkNames } from "./model/sdk-names.js";
import { credentialsOf } from "./model/sign-in.js";
import type { CallOptions, ClientOptions, InputRequired, RequestOptions, SubscribeOptions, Subscription, Target } from "./model/types/client.js";
import type {
  Completion, Implementation, LogLevel, Page, Prompt, Resource, ResourceTemplate, Revision, Root, Tool,
} from "./model/types/components.js";
import type { Meta } from "./model/types/content.js";
import type { Output, Schema } from "./model/types/schema.js";
import { isObject } from "./model/values.js";
import { checkCompletion, checkInputRequired, checkPromptResult, checkResourceResult } from "./client/checks.js";
import { checkCallOptions, checkClientOptions, checkRequestOptions } from "./client/options.js";
import { inputRequiredFromWire } from "./client/questions.js";
import { entriesOf, type Listing, pageOf, PROMPTS, received, RESOURCE_TEMPLATES, RESOURCES, TOOLS } from "./client/received.js";
import { toolResult } from "./client/result.js";
import { settingsOf } from "./client/settings.js";
import { Subscribing } from "./client/subscription.js";
import { reach, type OpenedTarget } from "./client/target.js";
import { type ToolCall, toolCall, type ToolCallArguments } from "./client/tool-call.js";
import { ClientWire } from "./client/wire.js";
import type { NativeClient } from "./native.js";

type Wire = Record<string, unknown>;

/**
 * A client that is being connected.
 *
 * @internal
 */
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
 *
 * @internal
 */
export let openClient: (target: Target, options: ClientOptions, place: string, group?: string) => Promise<OpenedClient>;

/**
 * A client connected to one server. The connection keeps the process alive until `close()`; with a server in memory, only
 * calls and subscriptions under way do, and for a second messages to the client's callbacks.
 *
 * @example
 * ```ts
 * import { Client, Server, ToolError } from "gudgeon";
 *
 * const app = new Server("shelf");
 * app.tool("lend", {}, () => {
 *   throw new ToolError("Dune is lent already.");
 * });
 *
 * const client = await Client.connect(app, { revision: "2025-11-25", timeoutMs: 5_000 });
 * console.log(client.revision); // 2025-11-25
 * console.log((await client.listTools()).map((tool) => tool.name).join()); // lend
 * console.log((await client.callTool("lend", {}, { throwOnError: false })).text); // Dune is lent already.
 * await client.close();
 * ```
 */
export class Client implements AsyncDisposable {
  readonly #wire: ClientWire;
  readonly #opened: OpenedTarget;

  private constructor(wire: ClientWire, opened: OpenedTarget) {
    if (!(wire instanceof ClientWire)) throw new TypeError("new Client(): a client has no public constructor; write await Client.connect(target, options)");
    this.#wire = wire;
    this.#opened = opened;
  }

  /**
   * Starts or reaches the server and agrees on a revision with it.
   *
   * @param target - A URL (http, https, ws, wss, tcp, unix, http+unix), a command `{ command, args }`, a `Server` (served in memory), or a `Transport`.
   * @param options - Each option is documented with its default in `ClientOptions`.
   * @throws ConnectFailed when the command can't be started or exits; `stderr` has its last lines.
   * @throws NotSupported when client and server have no revision in common.
   * @throws AuthError when the server asks for credentials or refuses the given ones.
   * @throws ConnectTimeout when the server does not answer within `connectTimeoutMs`.
   *
   * Spec: Base Protocol › Versioning (server/discover, 2026-07-28); Lifecycle (initialize, before).
   */
  static async connect(target: Target, options: ClientOptions = {}): Promise<Client> {
    const { client, connected } = await openClient(target, options, "Client.connect()");
    await connected;
    return client;
  }

  static {
    openClient = async (target, options, place, group) => {
      checkClientOptions(place, options);
      const credentials = credentialsOf(options.auth, place);
      const settings = settingsOf(options, place, credentials);
      const opened = reach(target, place, options.headers);
      if (opened.ready) await keepAliveUntil(opened.ready);
      const open = (wake: () => void): NativeClient => opened.open(settings, group ?? null, wake);
      const wire = new ClientWire(options, credentials, opened.name, opened.isInMemory === true, open);
      opened.onSend?.(() => wire.awaitDelivery());
      const connected = connect(wire, opened, group !== undefined);
      // A rejection may be looked at later.
      connected.catch(() => undefined);
      return {
        client: new Client(wire, opened),
        native: wire.native,
        connected,
        isConnected: () => wire.isConnected,
      };
    };
  }

  /** The server's description of itself; without one, the name is "". */
  get server(): Implementation & { readonly capabilities: Meta } {
    const { server, capabilities } = this.#wire.facts;
    return { ...server, capabilities };
  }

  get revision(): Revision | "0.7" | "bare" {
    return this.#wire.facts.revision as Revision | "0.7" | "bare";
  }

  /** The capabilities that the server declared: `server.capabilities`. */
  get capabilities(): Meta {
    return this.#wire.facts.capabilities;
  }

  get instructions(): string | undefined {
    return this.#wire.facts.instructions;
  }

  /** The id of the HTTP session; undefined without a session, as from 2026-07-28 on and on other transports. */
  get sessionId(): string | undefined {
    return this.#wire.sessionId;
  }

  /**
   * Returns all tools, of all pages. Spec: Server Features › Tools.
   *
   * @param options - `timeoutMs`, `signal`; likewise for all other requests without options of their own.
   * @throws NotSupported when the server did not declare the capability; likewise for all other requests.
   */
  async listTools(options: RequestOptions = {}): Promise<Tool[]> {
    return this.#list("listTools", TOOLS, options);
  }

  /** Returns one page. `cursor` is the `nextCursor` of the page before; by default the first page. */
  async listToolsPage(cursor?: string, options: RequestOptions = {}): Promise<Page<Tool>> {
    return this.#page("listToolsPage", cursor, TOOLS, options);
  }

  /** Returns all resources, of all pages. Spec: Server Features › Resources. */
  async listResources(options: RequestOptions = {}): Promise<Resource[]> {
    return this.#list("listResources", RESOURCES, options);
  }

  /** Returns one page, as `listToolsPage` does. */
  async listResourcesPage(cursor?: string, options: RequestOptions = {}): Promise<Page<Resource>> {
    return this.#page("listResourcesPage", cursor, RESOURCES, options);
  }

  /** Returns all resource templates, of all pages. Spec: Server Features › Resources › Templates. */
  async listResourceTemplates(options: RequestOptions = {}): Promise<ResourceTemplate[]> {
    return this.#list("listResourceTemplates", RESOURCE_TEMPLATES, options);
  }

  /** Returns one page, as `listToolsPage` does. */
  async listResourceTemplatesPage(cursor?: string, options: RequestOptions = {}): Promise<Page<ResourceTemplate>> {
    return this.#page("listResourceTemplatesPage", cursor, RESOURCE_TEMPLATES, options);
  }

  /** Returns all prompts, of all pages. Spec: Server Features › Prompts. */
  async listPrompts(options: RequestOptions = {}): Promise<Prompt[]> {
    return this.#list("listPrompts", PROMPTS, options);
  }

  /** Returns one page, as `listToolsPage` does. */
  async listPromptsPage(cursor?: string, options: RequestOptions = {}): Promise<Page<Prompt>> {
    return this.#page("listPromptsPage", cursor, PROMPTS, options);
  }

  /**
   * Calls a tool. Questions of the server go to the callbacks of the client's options.
   *
   * @param name - The tool's name; or the name and the arguments in one object, as other SDKs take them.
   * @param args - The arguments; default: none. A BigInt is an integer.
   * @param options - `output`: the schema that validates `data` and gives its type; a Standard Schema may convert it, for
   *   example strings to dates, or the JSON in the text; without `output`, `data` is the structured content, or else the text as it
   *   is; `timeoutMs`; `onProgress`; `signal`; `throwOnError` (default: true).
   * @throws ToolError when the tool fails, unless `throwOnError` is false.
   * @throws ProtocolError when there is no such tool, or the arguments are wrong.
   * @throws CallTimeout when no answer arrives in time.
   * @throws ConnectionLost when the connection closes before the answer.
   *
   * Spec: Server Features › Tools.
   */
  callTool<const O extends Schema | undefined = undefined>(
    name: string,
    args?: object,
    options?: CallOptions<O>,
  ): Promise<ToolResult<[O] extends [undefined] ? unknown : Output<O>>>;
  callTool<const O extends Schema | undefined = undefined>(
    call: ToolCall,
    options?: CallOptions<O>,
  ): Promise<ToolResult<[O] extends [undefined] ? unknown : Output<O>>>;
  async callTool<const O extends Schema | undefined = undefined>(
    ...given: ToolCallArguments<CallOptions<O>>
  ): Promise<ToolResult<[O] extends [undefined] ? unknown : Output<O>>> {
    const [name, args, options = NONE as CallOptions<O>] = toolCall(given);
    if (options !== NONE) checkCallOptions("callTool", name, options);
    const reply = await this.#wire.request("callTool", { name, arguments: object(args, argumentsOf(name)) }, options);
    return (await toolResult(name, this.#wire.target, reply, options.output)) as ToolResult<[O] extends [undefined] ? unknown : Output<O>>;
  }

  /**
   * Makes one round of a call. The answers may be given later, and by another process.
   *
   * @param options - `answers`: results by question key, in the wire's form; `state`: that of the previous `InputRequired`.
   *
   * Spec: Base Protocol › Patterns › Multi round-trip requests (2026-07-28).
   */
  async callToolRound(
    name: string,
    args: object,
    options: CallOptions & { answers?: Readonly<Record<string, unknown>> | undefined; state?: string | undefined } = {},
  ): Promise<ToolResult | InputRequired> {
    checkCallOptions("callToolRound", name, options);
    const { answers, state } = options;
    const params = { name, arguments: object(args, argumentsOf(name)), answers: object(answers, "the answers"), state };
    const reply = await this.#wire.request("callToolRound", params, options);
    const { target } = this.#wire;
    if (!reply.isInputRequired) return toolResult(name, target, reply, options.output);
    return received(`tools/call ${JSON.stringify(name)}`, target, reply.result, checkInputRequired, inputRequiredFromWire);
  }

  /**
   * Reads a resource. Variables expand a template: `readResource("shelf://books/{id}", { variables: { id: 1 } })`.
   *
   * @throws ResourceNotFound when there is no such resource.
   *
   * Spec: Server Features › Resources.
   */
  async readResource(
    uri: string,
    options: CallOptions & { variables?: Readonly<Record<string, string | number | readonly string[]>> | undefined } = {},
  ): Promise<ResourceResult> {
    checkCallOptions("readResource", uri, options);
    const params = { uri: String(uri), variables: object(options.variables, "the variables") };
    const { result } = await this.#wire.request("readResource", params, options);
    return received("resources/read", this.#wire.target, result, checkResourceResult, resourceResultFromWire);
  }

  /**
   * Renders a prompt with arguments.
   *
   * @throws ProtocolError when there is no such prompt, or an argument is missing.
   *
   * Spec: Server Features › Prompts.
   */
  async getPrompt(name: string, args?: Readonly<Record<string, string>>, options: CallOptions = {}): Promise<PromptResult> {
    checkCallOptions("getPrompt", name, options);
    const params = { name, arguments: object(args, `the arguments of prompt ${JSON.stringify(name)}`) };
    const { result } = await this.#wire.request("getPrompt", params, options);
    return received("prompts/get", this.#wire.target, result, checkPromptResult, promptResultFromWire);
  }

  /**
   * Returns suggestions for an argument of a prompt or a variable of a resource template.
   *
   * @param target - The prompt's name, or the URI template.
   * @param argument - The argument's or variable's name.
   * @param value - The text typed so far.
   * @param options - `arguments`: the values of the other arguments; `timeoutMs`; `signal`.
   *
   * Spec: Server Features › Utilities › Completion.
   */
  async complete(
    target: string,
    argument: string,
    value: string,
    options: RequestOptions & { arguments?: Readonly<Record<string, string>> | undefined } = {},
  ): Promise<Completion> {
    checkCallOptions("complete", target, options);
    const params = { target, argument, value, arguments: object(options.arguments, "the arguments so far") };
    const { result } = await this.#wire.request("complete", params, options);
    return received("completion/complete", this.#wire.target, result, checkCompletion, (raw) => raw as unknown as Completion);
  }

  /**
   * Changes the roots. Servers before 2026-07-28 are notified; later ones ask again in each call.
   *
   * @throws NotSupported before 2026-07-28 when the client was connected without the option `roots`; an empty list is
   *   enough. Spec: Client Features › Roots.
   */
  setRoots(roots: readonly (string | URL | Root)[]): void {
    this.#wire.setRoots(toJson(roots, "the roots"));
  }

  /**
   * Returns an iterator over changes, from `open()` or the first step of the iteration on.
   *
   * Equal changes that wait in the queue are merged. A subscription that breaks is opened again if possible (2026-07-28; a
   * command with `restart: true`); then everything is reported as changed, since changes may have been missed. The
   * iteration ends when the server ends the subscription without an error, or the client is closed.
   *
   * @param what - `uris` of resources; `tools`, `resources`, `prompts`: true for changes of these lists (default: false).
   * @throws TypeError when nothing is subscribed to.
   * @throws NotSupported when the server does not report all these changes.
   * @throws CallTimeout when the server does not answer within the client's `timeoutMs`.
   * @throws Cancelled when the server cancels the subscription; the message has its reason.
   * @throws ConnectionLost when the connection is lost and could not be opened again.
   *
   * Spec: Base Protocol › Patterns › Subscriptions (2026-07-28); Server Features › Resources › Subscriptions (before).
   *
   * @example
   * ```ts
   * import { Client, Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * app.resource("shelf://about", {}, () => "two books");
   * const client = await Client.connect(app);
   * const changes = await client.subscribe({ uris: ["shelf://about"] }).open();
   * app.notifyUpdated("shelf://about");
   * for await (const change of changes) {
   *   console.log(change); // { kind: 'updated', uri: 'shelf://about' }
   *   break;
   * }
   * await client.close();
   * ```
   */
  subscribe(what: SubscribeOptions): Subscription {
    return new Subscribing(this.#wire, what);
  }

  /** Sets the lowest level of log messages that the server sends. Spec: Server Features › Utilities › Logging. */
  async setLogLevel(level: LogLevel, options: RequestOptions = {}): Promise<void> {
    checkRequestOptions("setLogLevel", options);
    await this.#wire.request("setLogLevel", { level }, options);
  }

  /** Pings the server; returns the milliseconds until its answer. */
  async ping(options: RequestOptions = {}): Promise<number> {
    checkRequestOptions("ping", options);
    const start = performance.now();
    await this.#wire.request("ping", {}, options);
    return performance.now() - start;
  }

  /**
   * Sends a request of any method, such as a vendor's own; returns the result as parsed JSON.
   *
   * @throws ProtocolError when the server answers with an error.
   */
  async request(method: string, params?: object, options: CallOptions = {}): Promise<unknown> {
    checkCallOptions("request", method, options);
    const given = { method, params: object(params, `the params of ${method}`) };
    return (await this.#wire.request("request", given, options)).result;
  }

  /** Sends a notification of any method. One of the specification that the revision lacks is not sent. */
  async notify(method: string, params: object = {}): Promise<void> {
    await this.#wire.notify(method, object(params, `the params of ${method}`) as Wire);
  }

  /**
   * Closes the connection and ends a process that was started for it: it has 2 s to exit after the end of its input, then it gets
   * SIGTERM, and after 2 s more SIGKILL. May be called twice.
   */
  async close(): Promise<void> {
    await this.#wire.close();
    // A failure of a server in this process, or of a transport, was reported to the calls that it affected.
    const { served, isInMemory } = this.#opened;
    const ended = served?.catch(() => undefined);
    await (ended && isInMemory ? keepAliveUntil(ended) : ended);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #list<T>(what: string, listing: Listing<T>, options: RequestOptions): Promise<T[]> {
    checkRequestOptions(what, options);
    const { result } = await this.#wire.request(what, {}, options);
    return entriesOf(listing, this.#wire.target, result as unknown as readonly Wire[]);
  }

  async #page<T>(what: string, cursor: string | undefined, listing: Listing<T>, options: RequestOptions): Promise<Page<T>> {
    checkRequestOptions(what, options);
    return pageOf(listing, this.#wire.target, (await this.#wire.request(what, { cursor }, options)).result);
  }
}
brandClass("Client", Client as never);
explainSdkNames("Client", Client);
bindMethods(Client);

async function connect(wire: ClientWire, opened: OpenedTarget, isGrouped: boolean): Promise<void> {
  const failure = failureOf(opened);
  try {
    await wire.connect(isGrouped);
  } catch (error) {
    // In a group the native half tries again.
    throw isGrouped ? error : ((await failure()) ?? error);
  }
}

/** Returns the error of a server in this process: it says more than that the connection was closed. */
function failureOf({ served, isInMemory }: OpenedTarget): () => Promise<unknown> {
  let failure: unknown;
  const settled = served?.catch((error: unknown) => (failure = error));
  return async () => {
    await (settled && isInMemory ? keepAliveUntil(settled) : settled);
    return failure;
  };
}

/** The options of a call without options; they need no check. */
const NONE = {};

function argumentsOf(name: string): string {
  return `the arguments of tool ${JSON.stringify(name)}`;
}

function object(value: object | undefined, place: string): object | undefined {
  if (value === undefined || isObject(value)) return value;
  throw new TypeError(`${place} must be an object, not ${display(value)}`);
}
