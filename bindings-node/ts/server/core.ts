import { checked, native, type NativeServer } from "../native.js";
import { display } from "../model/display.js";
import { toJson } from "../model/json.js";
import { loggerOf } from "../model/logging.js";
import type { ResourceResult } from "../model/results.js";
import type { Context, Middleware, ServerMembers } from "../model/types/context.js";
import type { Logger } from "../model/types/logging.js";
import type { ServerOptions } from "../model/types/options.js";
import type { UpstreamServers } from "../model/upstream.js";
import { isObject } from "../model/values.js";
import { mountPlan, type Plan } from "../plan/plan.js";
import { resourceResult } from "../plan/resource-result.js";
import { hierarchyOf, setMethods, type Verifiers } from "./authentication.js";
import { setStore, type StoreCalls } from "./store.js";
import { coreResultPlan } from "./core-results.js";
import { Lifespan } from "./lifespan.js";
import { checkServerOptions, httpOptions, keysFile, stateKeys } from "./options.js";
import type { Route } from "./routes.js";
import { exportMetrics } from "./telemetry.js";
import { aroundUpstream, readUpstreamResource, type UpstreamPath, wrappedKinds } from "./upstreams.js";
import { visibilityPlan, type Visible } from "./visibility.js";

export type Kind = "tool" | "resource" | "resourceTemplate" | "prompt";

/** A registered component, kept so that it can be registered again with servers that mount this one. */
interface Registration {
  readonly place: string;
  readonly kind: Kind | "completion" | "method" | "notification";
  readonly method: string;
  readonly key: string;
  readonly declaration: Record<string, unknown>;
  readonly plan: Plan;
  readonly visible?: Visible | undefined;
}

interface MountPoint {
  readonly prefix: string;
  readonly into: ServerCore;
}

type Change =
  | { readonly how: "remove" }
  | { readonly how: "update"; readonly changes: Record<string, unknown> }
  | { readonly how: "enable" | "disable"; readonly tags: readonly string[] };

/** The state of a server behind its public class; ESM and CommonJS copies of that class may share it. */
export class ServerCore {
  readonly native: NativeServer;
  readonly lifespan: Lifespan<unknown>;
  readonly logger: Logger;
  /** The HTTP options of hosts, as the native half reads them. */
  readonly http: string;
  /** The plans by handler number, as the native half refers to them. */
  readonly plans: (Plan | undefined)[] = [];
  /** By what identifies them, in the order in which they were made. */
  readonly #registrations = new Map<string, Registration>();
  readonly #mountPoints: MountPoint[] = [];
  /** The routes, those of mounted servers among them. */
  readonly #routes: Route[] = [];
  readonly #upstreams: { readonly prefix: string; readonly servers: UpstreamServers; readonly below: UpstreamPath }[] = [];
  /** The prefixes of upstream servers here, with the servers that their calls pass. */
  readonly #upstreamParts: { readonly prefix: string; readonly path: UpstreamPath }[] = [];
  /** The servers mounted into this one; their lifespans are entered with its own. */
  readonly mounted: ServerCore[] = [];
  /** Called when messages may be sent that answer no request: a list or a resource has changed. */
  readonly sendListeners = new Set<() => void>();
  #hasVisibilityFilter = false;
  /** The methods of the program's store, kept as long as the server. */
  readonly store: StoreCalls | undefined;
  /** The functions that verify tokens. */
  readonly verifiers: Verifiers | undefined;
  readonly #middleware: { readonly handler: Middleware; readonly on: ReadonlySet<string> | undefined }[] = [];

  constructor(
    readonly server: ServerMembers<unknown>,
    readonly options: ServerOptions<unknown>,
  ) {
    const {
      version = "", title, instructions, websiteUrl, icons, pageSize, debug, revisions, dialects, listTtlMs, maxMessage, maxRequestState,
      stateTtlMs, suspendedLimit, suspendedTtlMs, auth, hideUnauthorized, store, convertArguments, extensions, experimental,
    } = options;
    const place = `new Server(${JSON.stringify(server.name)})`;
    checkServerOptions(place, options);
    this.http = httpOptions("new Server({ http })", options.http ?? {});
    this.logger = loggerOf(options.logger);
    const scopeImplies = hierarchyOf(place, options.scopeImplies);
    const declaration = {
      name: server.name, version, title, instructions, websiteUrl, icons, pageSize, debug, revisions, dialects, listTtlMs, maxMessage,
      requestStateKeys: stateKeys(place, options.requestStateKeys), requestStateKeysFile: keysFile(place, options.requestStateKeysFile),
      maxRequestState, stateTtlMs, suspendedLimit, suspendedTtlMs, scopeImplies, hideUnauthorized, convertArguments, extensions, experimental,
    };
    this.native = checked(place, () => new (native().NativeServer)(toJson(declaration, "the options")));
    this.store = setStore(this.native, store, place, this.logger);
    this.verifiers = auth === undefined ? undefined : setMethods(this.native, auth, scopeImplies, place, this.logger);
    this.lifespan = new Lifespan(server, options.lifespan);
  }

  hasMiddleware(method: string): boolean {
    return this.#middleware.some(({ on }) => on === undefined || on.has(method));
  }

  use(handler: Middleware, on: string | readonly string[] | undefined): void {
    if (typeof handler !== "function") throw new TypeError("middleware(): the handler must be a function (request, next)");
    const methods = on === undefined ? ["*"] : typeof on === "string" ? [on] : on;
    if (!Array.isArray(methods) || !methods.every((one) => typeof one === "string")) {
      throw new TypeError('middleware(): on must be a method such as "tools/call", or a list of methods');
    }
    checked("middleware", () => this.native.checkMiddleware([...methods]));
    this.#middleware.push({ handler, on: methods.includes("*") ? undefined : new Set(methods) });
    // For results that the core produces itself; handlers are wrapped by their plans.
    const id = this.plans.push(coreResultPlan(this)) - 1;
    this.native.setMiddleware(id, this.#middleware.flatMap(({ on: wanted }) => (wanted ? [...wanted] : ["*"])));
    for (const core of this.#withMountingServers()) core.#wrapUpstreams();
  }

  /** Runs the middleware around a request, the first registered outermost. */
  around(method: string, params: Record<string, unknown>, ctx: Context, inner: () => unknown): unknown {
    const chain = this.#middleware.filter(({ on }) => on === undefined || on.has(method));
    const request = { method, params, ctx };
    const step = async (at: number): Promise<unknown> => {
      if (at === chain.length) return inner();
      let given: unknown;
      const result = await chain[at]?.handler(request, async () => (given = await step(at + 1)));
      if (result === undefined && given !== undefined) {
        throw new TypeError(native().NativeMiddleware.nothingReturned(method));
      }
      return result;
    };
    return chain.length > 0 ? step(0) : inner();
  }

  register(registration: Registration): void {
    this.#checkFree(registration);
    this.#register(registration);
  }

  #register(registration: Registration): void {
    const { place, kind, key, declaration, plan, visible } = registration;
    if (visible && !this.#hasVisibilityFilter) {
      this.native.setVisibilityFilter(this.plans.push(visibilityPlan(this, this.logger, (of, name) => this.#visible(of, name))) - 1);
      this.#hasVisibilityFilter = true;
    }
    const id = this.plans.length;
    const warnings = checked(place, () => {
      switch (kind) {
        case "completion":
          return this.native.addCompletion(key, String(declaration["argument"]), id);
        case "method": {
          const { params } = declaration;
          return this.native.addMethod(key, params === undefined ? null : toJson(params, place), id);
        }
        case "notification":
          return this.native.addNotification(key, id);
        default:
          return this.native.add(kind, toJson(declaration, place), id);
      }
    });
    this.plans[id] = plan;
    this.#registrations.set(identityOf(registration), registration);
    this.#notifySendListeners();
    for (const warning of warnings ?? []) {
      if (this.options.logger) this.logger.warn(warning);
      else process.emitWarning(warning);
    }
    for (const link of this.#mountPoints) link.into.#register(mountedRegistration(registration, link));
  }

  /** Throws if a name is taken, here or in a server that mounts this one. */
  #checkFree({ place, kind, key, declaration }: Pick<Registration, "place" | "kind" | "key" | "declaration">): void {
    const argument = declaration["argument"];
    if (this.#registrations.has(identityOf({ kind, key, declaration }))) {
      const name = JSON.stringify(key) + (argument === undefined ? "" : ` ${JSON.stringify(argument)}`);
      throw new TypeError(
        `${place}: a ${kind} named ${name} is already registered with ${JSON.stringify(this.server.name)}; ` +
          "use another name, or remove the registered one first",
      );
    }
    for (const { into, prefix } of this.#mountPoints) into.#checkFree({ place, kind, key: native().NativeServer.mountedKey(kind, prefix, key), declaration });
  }

  /** Registers this server's components, present and future, with another server. */
  mountInto(into: ServerCore, prefix: string): void {
    if (contains(this, into)) throw new TypeError(`mount(${JSON.stringify(prefix)}): a server can't be mounted into itself`);
    for (const outer of into.#withMountingServers()) checked(`mount(${JSON.stringify(prefix)})`, () => outer.native.checkMount(this.native));
    const withLifespan = into.lifespan.isUsed && this.#firstWithLifespan();
    if (withLifespan) {
      throw new TypeError(
        `mount(${JSON.stringify(prefix)}): the lifespan of ${JSON.stringify(withLifespan.server.name)} is entered with that of ` +
          `${JSON.stringify(into.server.name)}, which is served already; mount it before`,
      );
    }
    const link = { prefix, into };
    const published = [...this.#registrations.values()].map((registration) => mountedRegistration(registration, link));
    for (const registration of published) into.#checkFree(registration);
    for (const route of this.#routes) into.addRoute(route);
    for (const registration of published) into.#register(registration);
    this.#mountPoints.push(link);
    for (const { prefix: own, servers, below } of this.#upstreams) {
      into.addUpstream(`mount(${JSON.stringify(prefix)})`, `${prefix}_${own}`, servers, [...below, { owner: this, prefix: own }]);
    }
    for (const outer of into.#withMountingServers()) outer.native.declareMounted(this.native);
  }

  /** Adds a route here, and before to every server that this one is mounted into. */
  addRoute(route: Route): void {
    for (const core of [...this.#withMountingServers()].reverse()) {
      const id = core.plans.length;
      checked("route()", () => core.native.addRoute(route.method, route.path, route.needsAuth, id));
      core.plans[id] = route.plan;
      core.#routes.push(route);
    }
  }

  /** Mounts upstream servers here, and into every server that this one is mounted into. `below` are the servers between them and this one. */
  addUpstream(place: string, prefix: string, servers: UpstreamServers, below: UpstreamPath = []): void {
    const path: UpstreamPath = [...below, { owner: this, prefix }];
    for (const [name, target] of servers.places) {
      const rest = name === undefined ? "" : `_${name}`;
      const id = this.plans.push(aroundUpstream(path, rest)) - 1;
      checked(place, () => this.native.mountUpstream(prefix + rest, target, servers.settings, id, servers.ask, servers.connect));
      this.#upstreamParts.push({ prefix: prefix + rest, path });
    }
    this.#upstreams.push({ prefix, servers, below });
    this.#wrapUpstreams();
    for (const link of this.#mountPoints) link.into.addUpstream(place, `${link.prefix}_${prefix}`, servers, path);
  }

  /** Has middleware run around calls of upstream servers, as far as there is any. */
  #wrapUpstreams(): void {
    for (const { prefix, path } of this.#upstreamParts) this.native.wrapUpstream(prefix, wrappedKinds(path));
  }

  /** Returns the first server with a lifespan, of this one and those mounted into it. */
  #firstWithLifespan(): ServerCore | undefined {
    if (this.options.lifespan) return this;
    for (const one of this.mounted) {
      const found = one.#firstWithLifespan();
      if (found) return found;
    }
    return undefined;
  }

  /** `isMounted`: the server is served as a part of another one, which counts its calls. */
  async enter(isMounted = false): Promise<void> {
    await this.lifespan.enter();
    const entered: ServerCore[] = [];
    try {
      for (const one of this.mounted) {
        await one.enter(true);
        entered.unshift(one);
      }
    } catch (error) {
      await this.#leave(entered);
      throw error;
    }
    if (!isMounted) exportMetrics(this.native);
  }

  async leave(): Promise<void> {
    await this.#leave([...this.mounted].reverse());
  }

  async #leave(mounted: readonly ServerCore[]): Promise<void> {
    try {
      for (const one of mounted) await one.leave();
    } finally {
      await this.lifespan.leave();
    }
  }

  notifyUpdated(uri: string): void {
    for (const core of this.#withMountingServers()) {
      core.native.updated(uri);
      core.#notifySendListeners();
    }
  }

  notifyUrlDone(id: string): void {
    for (const core of this.#withMountingServers()) {
      core.native.pageDone(id);
      core.#notifySendListeners();
    }
  }

  change(kind: Kind, keys: readonly string[], change: Change): void {
    // Servers that mount this one may use the same tags for other components, so names are passed on.
    const tags = change.how === "enable" || change.how === "disable" ? change.tags : [];
    this.#change(kind, tags.length > 0 ? [...keys, ...this.#tagged(kind, tags)] : keys, change);
  }

  #change(kind: Kind, keys: readonly string[], change: Change): void {
    const place = `${kind} ${keys.map((key) => JSON.stringify(key)).join(", ")}`;
    for (const id of this.native.takeDropped()) delete this.plans[id];
    checked(place, () => {
      if (change.how === "enable" || change.how === "disable") {
        this.native.setEnabled(kind, [...keys], [], change.how === "enable");
        return;
      }
      for (const key of keys) {
        if (change.how === "update") this.native.update(kind, key, toJson(change.changes, "the changes"));
        else this.#remove(kind, key);
      }
    });
    this.#notifySendListeners();
    for (const { into, prefix } of this.#mountPoints) into.#change(kind, keys.map((key) => native().NativeServer.mountedKey(kind, prefix, key)), change);
  }

  #notifySendListeners(): void {
    for (const listener of this.sendListeners) listener();
  }

  /** Returns the keys of the components with one of the tags. */
  #tagged(kind: Kind, tags: readonly string[]): string[] {
    const carries = (own: unknown): boolean => Array.isArray(own) && own.some((tag) => tags.includes(tag as string));
    return [...this.#registrations.values()].filter((one) => one.kind === kind && carries(one.declaration["tags"])).map(({ key }) => key);
  }

  /** Returns this server and all servers that mount it, each once. */
  #withMountingServers(found: Set<ServerCore> = new Set()): Set<ServerCore> {
    found.add(this);
    for (const { into } of this.#mountPoints) if (!found.has(into)) into.#withMountingServers(found);
    return found;
  }

  /** Reads a resource of this server or of its upstream servers on behalf of a handler. */
  async readResource(ctx: Context, uri: string): Promise<ResourceResult> {
    const found = this.native.resolveResource(uri);
    const [id, input, mimeType] = found === null ? [] : (JSON.parse(found) as [number, Record<string, unknown>, string | null]);
    const plan = id === undefined ? undefined : this.plans[id];
    if (!plan || !input) return readUpstreamResource(ctx, uri);
    return resourceResult(uri, mimeType ?? null, await plan.invoke(input, ctx));
  }

  #visible(kind: string, key: string): Visible | undefined {
    return this.#registrations.get(identityOf({ kind, key, declaration: {} }))?.visible;
  }

  #remove(kind: Kind, key: string): void {
    this.native.remove(kind, key);
    const isRemoved = (one: Registration): boolean => one.key === key && (one.kind === kind || (one.kind === "completion" && isCompleted(kind)));
    for (const [identity, one] of this.#registrations) if (isRemoved(one)) this.#registrations.delete(identity);
  }
}

/** Returns what only one registration of a server has: its kind and key, and the argument that it completes. */
function identityOf({ kind, key, declaration }: { kind: string; key: string; declaration: Registration["declaration"] }): string {
  return JSON.stringify([kind, key, declaration["argument"]]);
}

const CORE = Symbol.for("gudgeon.core");

export function setCore(server: object, core: ServerCore): void {
  Object.defineProperty(server, CORE, { value: core });
}

/** Returns the core of a `Server` of any copy of the package; throws a TypeError for another value. */
export function coreOf(server: unknown, place: string, hint = ""): ServerCore {
  const core = isObject(server) ? (server as Record<symbol, unknown>)[CORE] : undefined;
  if (core === undefined) throw new TypeError(`${place}: the server must be a Server of gudgeon, not ${display(server)}${hint}`);
  return core as ServerCore;
}

function mountedRegistration(registration: Registration, { prefix, into }: MountPoint): Registration {
  const { kind, method, key, declaration, plan } = registration;
  const name = native().NativeServer.mountedKey(kind, prefix, key);
  return {
    ...registration,
    place: `mount(${JSON.stringify(prefix)}): ${registration.place}`,
    key: name,
    declaration: kind === "tool" || kind === "prompt" ? { ...declaration, name } : declaration,
    plan: mountPlan(into, plan, { method, key: name, argument: declaration["argument"] as string | undefined }),
  };
}

/** Returns true for kinds whose completions are removed with them. */
function isCompleted(kind: Kind): boolean {
  return kind === "prompt" || kind === "resourceTemplate";
}

/** Returns true for a URI template (RFC 6570); names of prompts have no braces. */
export function isTemplate(uri: string): boolean {
  return uri.includes("{");
}

/** Returns true if two servers are the same, or the inner one is mounted into the outer one at any depth. */
function contains(outer: ServerCore, inner: ServerCore): boolean {
  return outer === inner || outer.mounted.some((one) => contains(one, inner));
}
