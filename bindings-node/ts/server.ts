import type { IncomingMessage, ServerResponse } from "node:http";

import { checkedAnnotations, checkedToolAnnotations } from "./annotations.js";
import { brandClass } from "./brand.js";
import { refuseUnknown, shown } from "./checks.js";
import { isObject } from "./content.js";
import type { CallContext } from "./context.js";
import { coreOf, isTemplate, referenceTo, ServerCore, setCore, type Kind } from "./core.js";
import { ProtocolError } from "./errors.js";
import { answerFetch } from "./fetch.js";
import { tellForeign } from "./foreign.js";
import { httpOptions } from "./http-options.js";
import { listen, runListening } from "./listening.js";
import { then } from "./maybe.js";
import { checked, native } from "./native.js";
import { answerNode, failNode } from "./node-http.js";
import { checkComponentOptions } from "./component-options.js";
import { promptFromWire, resourceFromWire, resourceTemplateFromWire, toolFromWire } from "./components.js";
import { makePlan, promptCall, toolCall, type Steps } from "./plan.js";
import { promptArguments } from "./prompt-arguments.js";
import { RegistryView } from "./registry.js";
import { compileInput, compileSchema, type CompiledSchema } from "./schema.js";
import { runStdio, serveTransport } from "./serving.js";
import type {
  AnyServer, Completion, Context, FetchHandler, Given, HttpOptions, Listening, Maybe, Message, Middleware, Output, Principal, Prompt,
  PromptOptions, Question, Registry, Reply, Resource, ResourceOptions, ResourceTemplate, Schema, ServerMembers,
  ServerOptions, Tool, ToolOptions, Transport, Variables,
} from "./types.js";
import type { PromptResult } from "./results.js";
import type { Visible } from "./visible.js";

type Wire = Record<string, unknown>;
type Handle = (...args: unknown[]) => unknown;

const NO_ARGUMENTS = { type: "object", properties: {} };

/**
 * Offers tools, resources and prompts, and serves them to clients of every revision.
 *
 * Spec: Base Protocol › Lifecycle; Server Features › Overview.
 *
 * @example
 * ```ts
 * import { Client, Server } from "gudgeon";
 *
 * const app = new Server("calculator", { version: "1.2" });
 * const input = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] } as const;
 * app.tool("add", { input }, ({ a, b }) => a + b);
 *
 * const client = await Client.connect(app);
 * console.log(client.server.version); // 1.2
 * console.log((await client.callTool("add", { a: 1, b: 2 })).text); // 3
 * await client.close();
 * ```
 */
export class Server<L = unknown> implements ServerMembers<L> {
  readonly name: string;
  readonly tools: Registry<Tool>;
  readonly resources: Registry<Resource>;
  readonly resourceTemplates: Registry<ResourceTemplate>;
  readonly prompts: Registry<Prompt>;
  readonly #core: ServerCore;

  /**
   * @param name - What the server calls itself (`serverInfo.name`).
   * @param options - Times in milliseconds, sizes in bytes; each option tells its default.
   * @throws TypeError when the name is no text, or an option can't be meant.
   */
  constructor(name: string, options: ServerOptions<L> = {}) {
    if (typeof name !== "string" || name === "") throw new TypeError('new Server(name): the name must be a text, as in new Server("shelf")');
    this.name = name;
    this.#core = new ServerCore(this as ServerMembers<unknown>, options as ServerOptions<unknown>);
    setCore(this, this.#core);
    this.tools = new RegistryView(this.#core, "tool", toolFromWire);
    this.resources = new RegistryView(this.#core, "resource", resourceFromWire);
    this.resourceTemplates = new RegistryView(this.#core, "resourceTemplate", resourceTemplateFromWire);
    this.prompts = new RegistryView(this.#core, "prompt", promptFromWire);
  }

  /**
   * Offers a function as a tool.
   *
   * @param name - What clients call it by.
   * @param options - `input` (default: no arguments), `output`, `description`, `annotations`, `timeoutMs` (default:
   *   none), …
   * @param handler - Gets the checked arguments and the context; gives a text, JSON, content, or a `ToolResult`.
   * @throws TypeError when the name is taken or not allowed, or a schema can't be written as JSON Schema.
   *
   * Spec: Server Features › Tools.
   */
  tool<const I extends Schema | undefined = undefined, const O extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: Given<I>, ctx: Context<L>) => Maybe<Reply<O>>,
  ): this {
    const place = placeOf("tool", name, options, handler);
    checkComponentOptions("tool", place, options);
    const { input = options.inputSchema, output, annotations, concurrency, replay, exposeErrors, unknownArguments } = options;
    if (options.input && options.inputSchema) throw new TypeError(`${place}: input and inputSchema are one option; give one of them`);
    const profile = this.#core.options.schemaProfile;
    const given: CompiledSchema = input ? compileInput(input, `${place}, input`, profile) : { json: NO_ARGUMENTS, validate: undefined, fill: undefined };
    const taken = output ? compileSchema(output, `${place}, output`, profile, "output") : undefined;
    const properties = taken?.json["properties"];
    const hasContentKey = isObject(properties) && "content" in properties;
    return this.#register("tool", place, name, {
      visible: options.visible,
      declaration: {
        ...common(options),
        name,
        inputSchema: given.json,
        outputSchema: taken?.json,
        annotations: annotations && checkedToolAnnotations(place, annotations as Wire),
        // A plain JSON Schema says by itself whether it is closed.
        closed: unknownArguments !== "ignore" && (!input || given.validate !== undefined),
        concurrency,
        replay,
      },
      steps: {
        kind: "tool",
        method: "tools/call",
        exposeErrors,
        hasContentKey,
        params: (args) => ({ name, arguments: args }),
        call: toolCall(handler as Handle, given.validate ?? given.fill, taken?.validate, hasContentKey),
      },
    });
  }

  /**
   * Offers what a function returns under a URI, or under every URI that a template (RFC 6570) gives.
   *
   * @param uri - Such as `"shelf://about"` or `"shelf://books/{id}"`.
   * @param options - `mimeType`, `description`, `size` in bytes, `ttlMs` and `cacheMs` in milliseconds (default:
   *   none), …
   * @param handler - Gets the template's variables as texts; gives a text, bytes, JSON, or a `ResourceResult`.
   * @throws TypeError when the URI is taken, or is no valid template.
   *
   * Spec: Server Features › Resources.
   *
   * @example
   * ```ts
   * import { Client, Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * app.resource("shelf://books/{id}", {}, ({ id }) => `book ${id}`);
   *
   * const client = await Client.connect(app);
   * console.log((await client.readResource("shelf://books/7")).text); // book 7
   * await client.close();
   * ```
   */
  resource<const U extends string>(
    uri: U,
    options: ResourceOptions,
    handler: (variables: Variables<U>, ctx: Context<L>) => unknown,
  ): this {
    const place = placeOf("resource", uri, options, handler);
    checkComponentOptions("resource", place, options);
    const hasVariables = isTemplate(uri);
    const annotations = options.annotations && checkedAnnotations(place, options.annotations);
    const { name = uri, mimeType, size, ttlMs, cacheScope, cacheMs } = options;
    const call = handler as Handle;
    return this.#register(hasVariables ? "resourceTemplate" : "resource", place, uri, {
      visible: options.visible,
      declaration: {
        ...common(options), [hasVariables ? "uriTemplate" : "uri"]: uri, name, mimeType, annotations, size, ttlMs, cacheScope,
        cacheMs,
      },
      steps: {
        kind: "resource",
        method: "resources/read",
        params: (variables) => (hasVariables ? { uri, variables } : { uri }),
        call,
      },
    });
  }

  /**
   * Offers a function as a prompt.
   *
   * @param name - What clients call it by.
   * @param options - `args` describes its arguments, whose values are texts on the wire; default: none.
   * @param handler - Gives a text (the user's), messages, or a `PromptResult`.
   * @throws TypeError when the name is taken, or `args` describes no object.
   *
   * Spec: Server Features › Prompts.
   *
   * @example
   * ```ts
   * import { Client, Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * const args = { type: "object", properties: { title: { type: "string" } }, required: ["title"] } as const;
   * app.prompt("review", { args }, ({ title }) => `Review ${title}.`);
   * app.complete("review", "title", (prefix) => ["Dune", "Emma"].filter((title) => title.startsWith(prefix)));
   *
   * const client = await Client.connect(app);
   * console.log((await client.getPrompt("review", { title: "Emma" })).messages[0]?.text); // Review Emma.
   * console.log((await client.complete("review", "title", "D")).values.join()); // Dune
   * await client.close();
   * ```
   */
  prompt<const A extends Schema | undefined = undefined>(
    name: string,
    options: PromptOptions<A>,
    handler: (
      args: Given<A>,
      ctx: Context<L>,
    ) => Maybe<string | Message | readonly (string | Message)[] | PromptResult | Question<unknown>>,
  ): this {
    const place = placeOf("prompt", name, options, handler);
    checkComponentOptions("prompt", place, options);
    const args = options.args ? compileInput(options.args, `${place}, args`, this.#core.options.schemaProfile) : undefined;
    return this.#register("prompt", place, name, {
      visible: options.visible,
      declaration: { ...common(options), name, arguments: args ? promptArguments(args.json, `${place}, args`) : [] },
      steps: {
        kind: "prompt",
        method: "prompts/get",
        params: (given) => ({ name, arguments: given }),
        call: promptCall(handler as Handle, args?.json ?? {}, args?.validate ?? args?.fill),
      },
    });
  }

  /**
   * Completes an argument of a prompt, or a variable of a resource template; at most 100 texts are sent.
   *
   * @param target - The prompt's name or the URI template, as it was registered before.
   * @param argument - The argument's or variable's name.
   * @param handler - Gets what was typed so far, and what was chosen for the others.
   * @throws TypeError when there is no such target or argument.
   *
   * Spec: Server Features › Utilities › Completion.
   */
  complete(
    target: string,
    argument: string,
    handler: (
      prefix: string,
      given: Readonly<Record<string, string>>,
      ctx: Context<L>,
    ) => Maybe<readonly string[] | Completion>,
  ): this {
    const place = placeOf("complete", target, {}, handler);
    const complete = handler as Handle;
    return this.#register("completion", place, target, {
      declaration: { argument },
      steps: {
        kind: "completion",
        method: "completion/complete",
        params: ({ value, arguments: given }) => ({
          ref: referenceTo(target), argument: { name: argument, value }, context: { arguments: given },
        }),
        call: ({ value, arguments: given }, ctx) => complete(value, given, ctx),
      },
    });
  }

  /**
   * Answers a vendor's own method, or one of the specification's, such as `"tools/list"`, in the place of what is built
   * in: then it gives the whole result, in the vocabulary of 2026-07-28; clients of older revisions are told it in theirs.
   *
   * @param name - Such as `"acme/thing"`.
   * @param options - `params`: the schema that they are checked against.
   * @param handler - Gives the result, anything that JSON can say.
   * @throws TypeError when the name is taken, or what only the server itself can keep (`"initialize"`,
   *   `"subscriptions/listen"`). In a call, params that don't fit are -32602.
   */
  method<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => unknown,
  ): this {
    const place = placeOf("method", name, options, handler);
    const { json, validate, fill } = this.#paramsOf(place, options);
    const read = validate ?? fill;
    const call: Steps["call"] = (params, ctx) => then(read ? read(params) : params, (given) => (handler as Handle)(given, ctx));
    return this.#register("method", place, name, {
      declaration: { params: json },
      steps: { kind: "method", method: name, params: (params) => params, call },
    });
  }

  /** Hears a vendor's own notification; parameters and errors are those of `method`. */
  notification<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => Maybe<void>,
  ): this {
    const place = placeOf("notification", name, options, handler);
    const call = this.#checkedCall(place, options, handler as Handle);
    return this.#register("notification", place, name, {
      declaration: {},
      steps: { kind: "notification", method: name, params: (params) => params, call },
    });
  }

  /** Is called when the client's roots have changed (up to 2025-11-25); `ctx.roots()` asks for them there. Spec: Client Features › Roots. */
  onRootsChanged(handler: (ctx: Context<L>) => Maybe<void>): this {
    const name = "notifications/roots/list_changed";
    const place = placeOf("onRootsChanged", name, {}, handler);
    const call: Steps["call"] = (_, ctx) => (handler as Handle)(ctx);
    return this.#register("notification", place, name, {
      declaration: {},
      steps: { kind: "notification", method: name, params: (params) => params, call },
    });
  }

  /**
   * Runs a function around requests; `await next()` goes on to the answer: what the handler returned, or, where the
   * server answers by itself, the result: of a list a `Page`, else what JSON says. What it gives becomes the result. The
   * first registered is the outermost; where a server is mounted, those of the servers around it come first, and each
   * sees the names that things have in its own server.
   *
   * @param handler - `(request, next) => result`; `middleware.timing()` and its kin are ready-made.
   * @param options - `on`: methods such as `"tools/call"`, `"tools/list"` or `"initialize"`. Default: all. A vendor's own
   *   may be registered later.
   * @throws TypeError when it would never run, because clients send no request of such a name.
   */
  middleware(handler: Middleware<L>, options: { on?: string | readonly string[] | undefined } = {}): this {
    refuseUnknown("middleware()", ["on"], options);
    this.#core.use(handler as Middleware, options.on);
    return this;
  }

  /**
   * Offers all of another server's here: `add` becomes `prefix_add`, URIs stay.
   *
   * @param prefix - The beginning of its names here: letters, digits, `_`, `-` and `.`. It may also be the second argument.
   * @throws TypeError when the prefix has other characters, a name is taken, the server would contain itself, or the other
   *   has a lifespan and this one is being served.
   */
  mount(prefix: string, other: AnyServer): this;
  mount(other: AnyServer, prefix: string): this;
  mount(...given: [string, AnyServer] | [AnyServer, string]): this {
    const [prefix, other] = (typeof given[1] === "string" ? [given[1], given[0]] : given) as [string, AnyServer];
    const place = `mount(${shown(prefix)})`;
    if (typeof prefix !== "string" || !/^[A-Za-z0-9_.-]+$/.test(prefix)) {
      throw new TypeError(`${place}: a prefix is one or more letters, digits, '_', '-' or '.', as in mount("shelf", other)`);
    }
    const core = coreOf(other, place);
    core.mountInto(this.#core, prefix);
    this.#core.mounted.push(core);
    return this;
  }

  /**
   * Tells everybody who has subscribed to this resource that it has changed, and forgets what `cacheMs` keeps of it.
   *
   * @throws TypeError when the URI is no text.
   *
   * Spec: Server Features › Resources › Subscriptions.
   */
  notifyUpdated(uri: string): void {
    if (typeof uri !== "string") throw new TypeError("notifyUpdated(uri): the URI must be a text");
    this.#core.notifyUpdated(uri);
  }

  /**
   * Tells the client that what `elicitUrl` sent somebody to is finished (2025-11-25).
   *
   * @param elicitationId - What `elicitUrl` gave.
   * @throws TypeError when it is no text.
   *
   * Spec: Client Features › Elicitation › URL mode.
   */
  notifyUrlDone(elicitationId: string): void {
    if (typeof elicitationId !== "string") throw new TypeError("notifyUrlDone(id): the id must be a text");
    this.#core.notifyUrlDone(elicitationId);
  }

  /**
   * Serves over stdio, or listens at a URL; resolves when the client is gone or a signal came, and then the process
   * ends. Over stdio, what is written to stdout goes to stderr.
   *
   * @param at - `"stdio"`, the default; `"http://127.0.0.1:8000/mcp"`, which also serves WebSocket clients; `"https://…"`
   *   with the option `tls`; `"tcp://127.0.0.1:8000"` or `"unix:/path/to/socket"`, with one message a line.
   * @param options - Defaults are those of `http` in the server's own options. `shutdownGraceMs`: milliseconds that calls
   *   in flight have when a signal came; default: 3,000 over stdio, else 10,000.
   * @throws TypeError when the address or an option can't be meant; an Error when nothing can listen there.
   *
   * Spec: Base Protocol › Transports.
   */
  async run(at = "stdio", options: HttpOptions = {}): Promise<void> {
    const place = `run(${JSON.stringify(at)})`;
    if (at !== "stdio") return runListening(this.#core, place, at, options);
    httpOptions(place, options);
    await runStdio(this.#core, options.shutdownGraceMs);
  }

  /**
   * Listens at a URL, as `run` does, beside whatever else the program does. The process lives as long as it listens.
   *
   * @param at - As in `run`; with port 0 the system chooses one.
   * @param options - As in `run`.
   * @throws TypeError when the address or an option can't be meant; an Error when nothing can listen there.
   *
   * @example
   * ```ts
   * import { Client, Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * app.tool("hello", {}, () => "hello");
   *
   * const listening = await app.listen("http://127.0.0.1:0/mcp");
   * const client = await Client.connect(listening.url);
   * console.log((await client.callTool("hello")).text); // hello
   * await client.close();
   * await listening.close();
   * ```
   */
  async listen(at: string, options: HttpOptions = {}): Promise<Listening> {
    return listen(this.#core, `listen(${JSON.stringify(at)})`, at, options);
  }

  /** Serves one peer over a wire of one's own; resolves when that wire has ended. */
  async serve(transport: Transport): Promise<void> {
    await serveTransport(this.#core, transport);
  }

  /**
   * Ends what `fetch` and `node` serve: nothing new is taken, calls in flight finish, and the lifespan is left. Twice is
   * fine.
   */
  async close(): Promise<void> {
    await this.#core.closeHosted();
  }

  /**
   * Answers a request of a host that speaks `fetch`: Hono, Next, and others. It is bound, and may stand at any path. The
   * lifespan is entered at the first request and left by `close()`.
   *
   * Requests for other hosts than `localhost`, and from other web pages, are refused unless the server's option `http`
   * says more: `new Server("shelf", { http: { publicUrl: "https://example.org/mcp" } })`.
   *
   * @param request - Its body must not have been read yet.
   * @param extra - `principal`: who asks, where the host has found that out; handlers see it as `ctx.principal`.
   *
   * @example
   * ```ts
   * import { Hono } from "hono";
   * import { Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * const host = new Hono().all("/mcp", (context) => app.fetch(context.req.raw));
   *
   * const response = await host.request("http://localhost/mcp", { method: "PUT" });
   * console.log(response.status); // 405
   * await app.close();
   * ```
   */
  readonly fetch: FetchHandler = async (request: Request, extra?: unknown): Promise<Response> =>
    answerFetch(this.#core.hosted(), request, principalIn(extra));

  /**
   * Answers a request of `node:http`, Express or Fastify, as `fetch` does. It is bound, and may stand at any path. A body
   * that the host has read and parsed is taken from `request.body`; under Fastify hand it over:
   * `reply.hijack(); app.node(Object.assign(request.raw, { body: request.body }), reply.raw)`. Who asks is `request.principal`,
   * where the host has put that; handlers see it as `ctx.principal`.
   *
   * @example
   * ```ts
   * import { createServer } from "node:http";
   * import { Server, type Principal } from "gudgeon";
   *
   * const app = new Server("shelf");
   * const ada: Principal = { subject: "ada", scopes: new Set(), claims: {} };
   * const host = createServer((request, response) => app.node(Object.assign(request, { principal: ada }), response));
   * console.log(host.listening); // false
   * ```
   */
  readonly node = (request: IncomingMessage & { principal?: Principal | undefined }, response: ServerResponse): void => {
    answerNode(this.#core.hosted(), request, response).catch((error: unknown) => failNode(response, error));
  };

  #register(
    kind: Kind | "completion" | "method" | "notification",
    place: string,
    key: string,
    { declaration, steps, visible }: { declaration: Wire; steps: Steps; visible?: Visible | undefined },
  ): this {
    this.#core.register({ place, kind, key, declaration, plan: makePlan(this.#core, steps), seen: steps, visible });
    return this;
  }

  #paramsOf(place: string, options: { params: Schema }): CompiledSchema {
    refuseUnknown(place, ["params"], options, { input: "params", schema: "params" });
    const { params: schema } = options;
    if (schema === undefined) throw new TypeError(`${place}: params must be a schema, as in { params: z.object({ … }) }`);
    return compileInput(schema, `${place}, params`, this.#core.options.schemaProfile, "parameter");
  }

  /** The core checks arguments of tools and params of methods; those of notifications are checked here. */
  #checkedCall(place: string, options: { params: Schema }, handler: Handle): Steps["call"] {
    const { json, validate, fill } = this.#paramsOf(place, options);
    const read = validate ?? fill;
    const compiled = checked(`${place}, params`, () => new (native().NativeSchema)(JSON.stringify(json)));
    return (params: Wire, ctx: CallContext) => {
      const wrong = compiled.violation(JSON.stringify(params));
      if (wrong !== null) throw new ProtocolError(-32602, `Invalid params: ${wrong}`);
      return then(read ? read(params) : params, (given) => handler(given, ctx));
    };
  }
}

brandClass("Server", Server);
tellForeign("Server", Server);

interface CommonOptions {
  title?: unknown; description?: unknown; icons?: unknown; meta?: unknown; tags?: unknown; timeoutMs?: number | undefined;
  visible?: Visible | undefined; enabled?: boolean | undefined;
}

function common({ title, description, icons, meta, tags, timeoutMs, visible, enabled = true }: CommonOptions): Wire {
  return { title, description, icons, _meta: meta, tags, timeoutMs, enabled, guarded: visible !== undefined };
}

/** Hosts hand over all kinds of things beside the request. */
function principalIn(extra: unknown): Principal | undefined {
  return isObject(extra) ? (extra["principal"] as Principal | undefined) : undefined;
}

function placeOf(kind: string, name: unknown, options: unknown, handler: unknown): string {
  const place = `${kind} ${JSON.stringify(name)}`;
  if (typeof name !== "string") throw new TypeError(`${place}: the name must be a text`);
  if (typeof options === "function") throw new TypeError(`${place}: options come before the handler; where there are none write {}`);
  if (typeof options !== "object" || options === null) throw new TypeError(`${place}: the options must be an object; where there are none write {}`);
  if (typeof handler !== "function") throw new TypeError(`${place}: the handler must be a function`);
  return place;
}
