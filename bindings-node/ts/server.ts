import type { ServerResponse } from "node:http";

import { bindMethods } from "./model/bound-methods.js";
import { brandClass } from "./model/brand.js";
import { refuseUnknown } from "./model/checks.js";
import { promptFromWire, resourceFromWire, resourceTemplateFromWire, toolFromWire } from "./model/components.js";
import { display } from "./model/display.js";
import { setServeInMemory } from "./model/in-memory.js";
import type { PromptResult } from "./model/results.js";
import { explainSdkNames } from "./model/sdk-names.js";
import type { Upstream } from "./model/types/client.js";
import type { Completion, Maybe, Prompt, Resource, ResourceTemplate, Tool } from "./model/types/components.js";
import type { Message } from "./model/types/content.js";
import type { Context, Given, Middleware, Reply, ServerMembers } from "./model/types/context.js";
import type { FastifyReply, FetchContext, NodeRequest } from "./model/types/hosts.js";
import type { HttpOptions, PromptOptions, ResourceOptions, ServerOptions, ToolOptions } from "./model/types/options.js";
import type { Question } from "./model/types/questions.js";
import type { Output, Schema, Variables } from "./model/types/schema.js";
import type {
  AnyServer, FetchHandler, Listening, Principal, Registry, RouteHandler, RouteMethod, RouteOptions, Transport,
} from "./model/types/server.js";
import { upstreamOf } from "./model/upstream.js";
import { isObject } from "./model/values.js";
import { checked, native } from "./native.js";
import { coreOf, ServerCore, setCore } from "./server/core.js";
import { httpOptions } from "./server/options.js";
import {
  type Handle, registerCompletion, registerMethod, registerNotification, registerPrompt, registerResource, registerRootsChanged,
  registerTool,
} from "./server/registration.js";
import { RegistryView } from "./server/registry.js";
import { routeOf } from "./server/routes.js";
import { answerFetch } from "./serving/fetch.js";
import { fetchRequestOf, nodeArgumentsOf } from "./serving/host-arguments.js";
import { Hosting } from "./serving/hosting.js";
import { listen, runListening } from "./serving/listening.js";
import { serveMemory, serveTransport } from "./serving/memory.js";
import { answerNode, failNode } from "./serving/node-http.js";
import { runStdio } from "./serving/stdio.js";

/**
 * A server of tools, resources and prompts, for clients of every revision.
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
  readonly #hosting: Hosting;

  /**
   * @param name - The name that clients see (`serverInfo.name`); not empty.
   * @param options - Times are milliseconds, sizes bytes; the defaults are documented with each option.
   * @throws TypeError if the name or an option is invalid.
   */
  constructor(name: string, options: ServerOptions<L> = {}) {
    if (typeof name !== "string" || name === "") throw new TypeError('new Server(name): the name must be a non-empty string, as in new Server("shelf")');
    this.name = name;
    this.#core = new ServerCore(this as ServerMembers<unknown>, options as ServerOptions<unknown>);
    this.#hosting = new Hosting(this.#core);
    setCore(this, this.#core);
    setServeInMemory(this, (testMode) => serveMemory(this.#core, testMode));
    this.tools = new RegistryView(this.#core, "tool", toolFromWire);
    this.resources = new RegistryView(this.#core, "resource", resourceFromWire);
    this.resourceTemplates = new RegistryView(this.#core, "resourceTemplate", resourceTemplateFromWire);
    this.prompts = new RegistryView(this.#core, "prompt", promptFromWire);
  }

  /**
   * Registers a function as a tool.
   *
   * @param name - The tool's name: 1 to 128 letters, digits, `_`, `-` and `.`.
   * @param options - `input` (default: no arguments), `output`, `description`, `annotations`, `timeoutMs` (default: no
   *   limit), …
   * @param handler - Receives the validated arguments and the context. Returns a string, JSON, content, a `ToolResult`, or
   *   the shape of the official SDKs, `{ content, isError? }`. Integers that a number can't hold, beyond 2^53 - 1, are BigInts, in
   *   arguments where the schema says nothing about their type, and in results.
   * @throws TypeError if the name is taken or not allowed, or a schema can't be written as JSON Schema.
   *
   * Spec: Server Features › Tools.
   */
  tool<const I extends Schema | undefined = undefined, const O extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: Given<I>, ctx: Context<L>) => Maybe<Reply<O>>,
  ): this {
    registerTool(this.#core, name, options, handler as Handle);
    return this;
  }

  /**
   * Registers a function as a resource, or as a resource template (RFC 6570).
   *
   * @param uri - A URI such as `"shelf://about"`, or a template such as `"shelf://books/{id}"`.
   * @param options - `mimeType`, `description`, `size` in bytes, `ttlMs` and `cacheMs` in milliseconds (default: no
   *   caching), …
   * @param handler - Receives the template's variables as strings. Returns a string, bytes, JSON, a `ResourceResult`, or the
   *   shape of the official SDKs, `{ contents }`.
   * @throws TypeError if the URI is taken, or the template is invalid.
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
    registerResource(this.#core, uri, options, handler as Handle);
    return this;
  }

  /**
   * Registers a function as a prompt.
   *
   * @param name - The prompt's name.
   * @param options - `args`: the schema of the arguments, which are strings on the wire; default: no arguments.
   * @param handler - Returns a string (a message of the user), messages, a `PromptResult`, or the shape of the official SDKs,
   *   `{ messages }`.
   * @throws TypeError if the name is taken, or `args` does not describe an object.
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
    registerPrompt(this.#core, name, options, handler as Handle);
    return this;
  }

  /**
   * Registers a function that completes an argument of a prompt, or a variable of a resource template. At most 100 values
   * are sent.
   *
   * @param target - The prompt's name or the URI template, registered before.
   * @param argument - The name of the argument or variable.
   * @param handler - Receives the text typed so far and the values of the other arguments; returns the suggestions.
   * @throws TypeError if there is no such target or argument.
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
    registerCompletion(this.#core, target, argument, handler as Handle);
    return this;
  }

  /**
   * Registers a handler of a vendor's method, or replaces that of a method of the specification, such as `"tools/list"`. The
   * latter returns the whole result in the vocabulary of 2026-07-28, which is translated for clients of older revisions.
   * Requests with invalid params fail with -32602.
   *
   * @param name - The method, such as `"acme/thing"`.
   * @param options - `params`: the schema of the params.
   * @param handler - Returns the result, any JSON value.
   * @throws TypeError if the name is taken, or the method can't be replaced (`"initialize"`, `"subscriptions/listen"`).
   */
  method<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => unknown,
  ): this {
    registerMethod(this.#core, name, options, handler as Handle);
    return this;
  }

  /** Registers a handler of a vendor's notification. Parameters and errors are those of `method`. */
  notification<const P extends Schema>(
    name: string,
    options: { params: P },
    handler: (params: Output<P>, ctx: Context<L>) => Maybe<void>,
  ): this {
    registerNotification(this.#core, name, options, handler as Handle);
    return this;
  }

  /** Registers a function that is called when the client's roots have changed (up to 2025-11-25). Spec: Client Features › Roots. */
  onRootsChanged(handler: (ctx: Context<L>) => Maybe<void>): this {
    registerRootsChanged(this.#core, handler as Handle);
    return this;
  }

  /**
   * Answers HTTP requests beside the endpoint, such as a webhook, a status page or a download. The handler's `Response` is read
   * whole before it is sent; `request.signal` is aborted when the client leaves. An error is answered with 500 and a reference to
   * the log.
   *
   * Routes are served at addresses, by `run` and `listen`. Host and origin are checked as for the endpoint, and `maxBody` and
   * `maxInFlight` count for both. Middleware does not run around routes. Everything larger belongs into a web framework, in which
   * `app.node` or `app.fetch` serves MCP.
   *
   * @param method - `"GET"`, `"POST"`, `"PUT"`, `"PATCH"` or `"DELETE"`. HEAD is answered as GET, without the body.
   * @param path - The exact path, such as `"/hooks"`: no pattern, no query.
   * @param options - `auth: true` authenticates callers as those of the endpoint.
   * @param handler - Gets the request, and its caller; returns a `Response`.
   * @throws TypeError if the path or the method is not valid, both are taken, or the server is being served. A path with another
   *   use, such as that of the endpoint, is refused when it is served.
   *
   * @example
   * ```ts
   * import { Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * app.route("POST", "/hooks", async (request) => Response.json({ received: (await request.text()).length }));
   * const server = await app.listen("http://127.0.0.1:0/mcp");
   * const answer = await fetch(new URL("/hooks", server.url), { method: "POST", body: "abc" });
   * console.log(await answer.json()); // { received: 3 }
   * await server.close();
   * ```
   */
  route(method: RouteMethod, path: string, handler: RouteHandler): this;
  route(method: RouteMethod, path: string, options: RouteOptions, handler: RouteHandler): this;
  route(method: RouteMethod, path: string, options: RouteOptions | RouteHandler, handler?: RouteHandler): this {
    this.#core.addRoute(routeOf(this.#core, method, path, options as RouteOptions | Handle, handler as Handle | undefined));
    return this;
  }

  /**
   * Registers a function that runs around requests. `await next()` returns the handler's value; for requests that the server
   * answers itself it returns a `Page` of a list, or the JSON of another result. The function's value becomes the result.
   * The first registered function is the outermost. For a mounted server the middleware of the outer server runs first; each
   * sees the names of its own server.
   *
   * @param handler - `(request, next) => result`, or one of `middleware`, such as `middleware.timing()`.
   * @param options - `on`: methods such as `"tools/call"`, `"tools/list"` or `"initialize"`; default: all. Vendors' methods
   *   may be registered later.
   * @throws TypeError if clients never send a request of such a method.
   */
  middleware(handler: Middleware<L>, options: { on?: string | readonly string[] | undefined } = {}): this {
    refuseUnknown("middleware()", ["on"], options);
    this.#core.use(handler as Middleware, options.on);
    return this;
  }

  /**
   * Adds all components of another server, now and later: `add` becomes `prefix_add`, URIs stay. The other server is one of this
   * program, or `upstream(target)`, which a client reaches.
   *
   * @param prefix - The prefix of the names: letters, digits, `_`, `-` and `.`. It may also be the second argument.
   * @throws TypeError if the prefix has other characters, a name is taken, the server would contain itself, the other
   *   server has `auth`, or it has a lifespan and this one is being served.
   */
  mount(prefix: string, other: AnyServer | Upstream): this;
  mount(other: AnyServer | Upstream, prefix: string): this;
  mount(...given: [string, AnyServer | Upstream] | [AnyServer | Upstream, string]): this {
    const [prefix, other] = (typeof given[1] === "string" ? [given[1], given[0]] : given) as [string, AnyServer | Upstream];
    const place = `mount(${display(prefix)})`;
    if (typeof prefix !== "string") throw new TypeError(`${place}: the prefix must be a string, as in mount("shelf", other)`);
    checked(place, () => native().NativeServer.checkPrefix(prefix));
    const servers = upstreamOf(other);
    if (servers) {
      this.#core.addUpstream(place, prefix, servers);
      return this;
    }
    const core = coreOf(other, place, "; one that a client reaches is mounted as upstream(target)");
    core.mountInto(this.#core, prefix);
    this.#core.mounted.push(core);
    return this;
  }

  /**
   * Notifies subscribers that a resource has changed, and drops its cached results.
   *
   * @throws TypeError if the URI is not a string.
   *
   * Spec: Server Features › Resources › Subscriptions.
   */
  notifyUpdated(uri: string): void {
    if (typeof uri !== "string") throw new TypeError("notifyUpdated(uri): the URI must be a string");
    this.#core.notifyUpdated(uri);
  }

  /**
   * Notifies the client that the page of an `elicitUrl` is finished (2025-11-25).
   *
   * @param elicitationId - The id that `elicitUrl` returned.
   * @throws TypeError if it is not a string.
   *
   * Spec: Client Features › Elicitation › URL mode.
   */
  notifyUrlDone(elicitationId: string): void {
    if (typeof elicitationId !== "string") throw new TypeError("notifyUrlDone(id): the id must be a string");
    this.#core.notifyUrlDone(elicitationId);
  }

  /**
   * Serves over stdio or at a URL. Resolves when the client has disconnected (stdio) or a signal arrived; the process ends
   * then. Over stdio, other output to stdout is redirected to stderr. A handler that blocks the event loop does not keep the
   * process: it ends 3 s after the time for calls in flight, with status 1 after the client has disconnected, 143 after
   * SIGTERM and 130 after SIGINT. A second signal ends it at once.
   *
   * @param at - `"stdio"`, the default; `"http://127.0.0.1:8000/mcp"`, which also serves WebSocket clients; `"https://…"`
   *   with the option `tls`; `"http+unix:/path/to/socket"`, whose path is `/mcp`; `"tcp://127.0.0.1:8000"` or
   *   `"unix:/path/to/socket"`, with one message per line.
   * @param options - Default: the server's option `http`. `shutdownGraceMs`: milliseconds for calls in flight to finish after
   *   a signal; default: 3,000 over stdio, else 10,000.
   * Workers of a cluster listen at one port; port 0 is another one in each of them.
   *
   * @throws TypeError if the address or an option is invalid; an Error if the server can't listen there.
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
   * Listens at a URL, as `run` does, and returns while it listens. It keeps the process alive.
   *
   * @param at - As in `run`; with port 0 the system chooses a port.
   * @param options - As in `run`.
   * @throws TypeError if the address or an option is invalid; an Error if the server can't listen there.
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

  /** Serves one peer over a custom transport; resolves when the transport has ended. */
  async serve(transport: Transport): Promise<void> {
    await serveTransport(this.#core, transport);
  }

  /**
   * Stops serving through `fetch` and `node`: rejects new requests, waits for calls in flight, and leaves the lifespan.
   * Further calls do nothing.
   */
  async close(): Promise<void> {
    await this.#hosting.close();
  }

  /**
   * Answers a `Request`, in hosts such as Hono, Next, Bun and Deno: `serve({ fetch: app.fetch })`, `export const POST =
   * app.fetch`. The function is bound and works at any path. The lifespan is entered at the first request and left by
   * `close()`.
   *
   * Requests for hosts other than `localhost`, and from web pages of other origins, are rejected unless the server's option
   * `http` allows them: `new Server("shelf", { http: { publicUrl: "https://example.org/mcp" } })`.
   *
   * @param request - A `Request`, or the context of a host such as Hono, SvelteKit or Astro. Its body must not have been read yet.
   * @param extra - `principal`: the caller, if the host authenticated it; handlers find it in `ctx.principal`. Not
   *   together with the server's option `auth`. `remoteAddress`: the address of the other side of the connection, by which
   *   clients are told apart, and which `trustedProxies` are compared with. Other arguments of a host are ignored.
   *
   * @example
   * ```ts
   * import { Hono } from "hono";
   * import { Server } from "gudgeon";
   *
   * const app = new Server("shelf");
   * const host = new Hono().all("/mcp", app.fetch);
   *
   * const response = await host.request("http://localhost/mcp", { method: "PUT" });
   * console.log(response.status); // 405
   * await app.close();
   * ```
   */
  readonly fetch: FetchHandler = async (request: Request | FetchContext, extra?: unknown): Promise<Response> =>
    answerFetch(this.#hosting.mounted(), fetchRequestOf(request), principalIn(extra), remoteAddressIn(extra));

  /**
   * Answers a request of `node:http`, Express or Fastify, as `fetch` does: `createServer(app.node)`, `express.all("/mcp", app.node)`,
   * `fastify.all("/mcp", app.node)`. The function is bound and works at any path. A body that the host has read is taken from
   * `request.body`. The caller is taken from `request.principal`; handlers find it in `ctx.principal`.
   *
   * @throws TypeError for other arguments.
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
  readonly node = (request: NodeRequest, response: ServerResponse | FastifyReply): void => {
    const [incoming, outgoing] = nodeArgumentsOf(request, response);
    answerNode(this.#hosting.mounted(), incoming, outgoing).catch((error: unknown) => failNode(outgoing, error));
  };
}

brandClass("Server", Server);
explainSdkNames("Server", Server);
bindMethods(Server);

/** Returns the principal in the second argument of `fetch`, which may be any object of a host. */
function principalIn(extra: unknown): Principal | undefined {
  return isObject(extra) ? (extra["principal"] as Principal | undefined) : undefined;
}

/** Returns the address in the second argument of `fetch`. */
function remoteAddressIn(extra: unknown): string | undefined {
  const address = isObject(extra) ? extra["remoteAddress"] : undefined;
  return typeof address === "string" ? address : undefined;
}
