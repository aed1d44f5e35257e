import { isObject } from "./content.js";
import { type CallContext } from "./context.js";
import { resourceResult } from "./connection.js";
import { ResourceNotFound } from "./errors.js";
import { toJson } from "./json.js";
import { Lifespan } from "./lifespan.js";
import { Mounted } from "./mounted.js";
import { passingPlan } from "./passing.js";
import { checked, native, type NativeServer } from "./native.js";
import { mountPlan, type Plan, type Steps } from "./plan.js";
import type { ResourceResult } from "./results.js";
import { roundOptions } from "./round-options.js";
import { checkServerOptions } from "./server-options.js";
import type { Middleware, ServerMembers, ServerOptions } from "./types.js";
import { visibilityPlan, type Visible } from "./visible.js";

export type Kind = "tool" | "resource" | "resourceTemplate" | "prompt";

/** What a server registered, so that it can be registered again where it is mounted. */
interface Registration {
  readonly place: string;
  readonly kind: Kind | "completion" | "method" | "notification";
  readonly key: string;
  readonly declaration: Record<string, unknown>;
  readonly plan: Plan;
  readonly seen: Pick<Steps, "method" | "params">;
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

/** What a server consists of, behind its public face; ESM and CommonJS copies of that face may share it. */
export class ServerCore {
  readonly native: NativeServer;
  readonly lifespan: Lifespan<unknown>;
  /** By the numbers that the native half knows handlers by. */
  readonly plans: (Plan | undefined)[] = [];
  readonly #registrations: Registration[] = [];
  readonly #mountPoints: MountPoint[] = [];
  /** Servers mounted here, whose lifespans belong to this one's. */
  readonly mounted: ServerCore[] = [];
  #hosted: Mounted | undefined;
  #hasVisibilityFilter = false;
  readonly #middleware: { readonly handler: Middleware; readonly on: ReadonlySet<string> | undefined }[] = [];

  constructor(
    readonly server: ServerMembers<unknown>,
    readonly options: ServerOptions<unknown>,
  ) {
    const { version = "", title, instructions, websiteUrl, icons, pageSize, debug, revisions, dialects, listTtlMs, maxMessage } = options;
    const place = `new Server(${JSON.stringify(server.name)})`;
    checkServerOptions(place, options);
    const declaration = {
      name: server.name, version, title, instructions, websiteUrl, icons, pageSize, debug, revisions, dialects, listTtlMs, maxMessage,
      ...roundOptions(place, options),
    };
    this.native = checked(place, () => new (native().NativeServer)(toJson(declaration, "the options")));
    this.lifespan = new Lifespan(server, options.lifespan);
  }

  get hasMiddleware(): boolean {
    return this.#middleware.length > 0;
  }

  use(handler: Middleware, on: string | readonly string[] | undefined): void {
    if (typeof handler !== "function") throw new TypeError("middleware(handler): the handler must be a function (request, next)");
    const methods = on === undefined ? ["*"] : typeof on === "string" ? [on] : on;
    if (!Array.isArray(methods) || !methods.every((one) => typeof one === "string")) {
      throw new TypeError('middleware(handler, { on }): a method, such as "tools/call", or a list of methods');
    }
    checked("middleware", () => this.native.checkMiddleware([...methods]));
    this.#middleware.push({ handler, on: methods.includes("*") ? undefined : new Set(methods) });
    // What the core answers by itself; handlers are wrapped by their plans.
    const passing = this.plans.push(passingPlan(this)) - 1;
    this.native.setMiddleware(passing, this.#middleware.flatMap(({ on: wanted }) => (wanted ? [...wanted] : ["*"])));
  }

  /** Passes the request through the middleware, the first registered outermost. */
  around(method: string, params: Record<string, unknown>, ctx: CallContext, inner: () => unknown): unknown {
    const chain = this.#middleware.filter(({ on }) => on === undefined || on.has(method));
    const request = { method, params, ctx };
    const step = async (at: number): Promise<unknown> => {
      if (at === chain.length) return inner();
      let given: unknown;
      const result = await chain[at]?.handler(request, async () => (given = await step(at + 1)));
      if (result === undefined && given !== undefined) {
        throw new TypeError(
          `middleware gave nothing for ${method}, though next() gave a result: return what next() gave, or a result of its own`,
        );
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
      this.native.setVisibilityFilter(this.plans.push(visibilityPlan(this, (of, name) => this.#visible(of, name))) - 1);
      this.#hasVisibilityFilter = true;
    }
    const id = this.plans.length;
    const warnings = checked(place, () => {
      switch (kind) {
        case "completion":
          return this.native.addCompletion(key, String(declaration["argument"]), id);
        case "method":
          return this.native.addMethod(key, toJson(declaration["params"], place), id);
        case "notification":
          return this.native.addNotification(key, id);
        default:
          return this.native.add(kind, toJson(declaration, place), id);
      }
    });
    this.plans[id] = plan;
    this.#registrations.push(registration);
    for (const warning of warnings ?? []) process.emitWarning(warning);
    for (const link of this.#mountPoints) link.into.#register(linked(registration, link));
  }

  /** Refuses a name that is taken here, or in a server that this one is mounted into. */
  #checkFree({ place, kind, key, declaration }: Pick<Registration, "place" | "kind" | "key" | "declaration">): void {
    const argument = declaration["argument"];
    const taken = this.#registrations.some(
      (one) => one.kind === kind && one.key === key && one.declaration["argument"] === argument,
    );
    if (taken) {
      const name = JSON.stringify(key) + (argument === undefined ? "" : ` ${JSON.stringify(argument)}`);
      throw new TypeError(
        `${place}: a ${kind} named ${name} is already registered with ${JSON.stringify(this.server.name)}: ` +
          "give this one another name, or remove that one first",
      );
    }
    for (const { into, prefix } of this.#mountPoints) into.#checkFree({ place, kind, key: keyIn(kind, key, prefix), declaration });
  }

  /** Offers all of this server's, now and later, in another one. */
  mountInto(into: ServerCore, prefix: string): void {
    if (contains(this, into)) throw new TypeError(`mount(${JSON.stringify(prefix)}): a server can't be mounted into itself`);
    const late = into.lifespan.isUsed && this.#lasting();
    if (late) {
      throw new TypeError(
        `mount(${JSON.stringify(prefix)}): the lifespan of ${JSON.stringify(late.server.name)} begins with that of ` +
          `${JSON.stringify(into.server.name)}, which runs already: mount it before`,
      );
    }
    const link = { prefix, into };
    const published = this.#registrations.map((registration) => linked(registration, link));
    for (const registration of published) into.#checkFree(registration);
    for (const registration of published) into.#register(registration);
    this.#mountPoints.push(link);
  }

  /** The first that has a lifespan, of this server and those mounted into it. */
  #lasting(): ServerCore | undefined {
    if (this.options.lifespan) return this;
    for (const one of this.mounted) {
      const found = one.#lasting();
      if (found) return found;
    }
    return undefined;
  }

  async enter(): Promise<void> {
    await this.lifespan.enter();
    const entered: ServerCore[] = [];
    try {
      for (const one of this.mounted) {
        await one.enter();
        entered.unshift(one);
      }
    } catch (error) {
      await this.#leave(entered);
      throw error;
    }
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

  /** What serves the requests of hosts; begun with the first. */
  hosted(): Mounted {
    if (this.#hosted) return this.#hosted;
    const hosted = (this.#hosted = new Mounted(this));
    // What could not begin may be able to with the next request.
    hosted.ready.catch(() => {
      if (this.#hosted === hosted) this.#hosted = undefined;
      void hosted.close();
    });
    return hosted;
  }

  async closeHosted(): Promise<void> {
    await this.#hosted?.close();
  }

  notifyUpdated(uri: string): void {
    for (const core of this.#above()) core.native.updated(uri);
  }

  notifyUrlDone(id: string): void {
    for (const core of this.#above()) core.native.pageDone(id);
  }

  change(kind: Kind, keys: readonly string[], change: Change): void {
    // Servers above have things of their own under the same tags: they are told names.
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
    for (const { into, prefix } of this.#mountPoints) into.#change(kind, keys.map((key) => keyIn(kind, key, prefix)), change);
  }

  /** The keys here of what carries one of the tags. */
  #tagged(kind: Kind, tags: readonly string[]): string[] {
    const carries = (own: unknown): boolean => Array.isArray(own) && own.some((tag) => tags.includes(tag as string));
    return this.#registrations.filter((one) => one.kind === kind && carries(one.declaration["tags"])).map(({ key }) => key);
  }

  /** This server and those that it is mounted into, each once. */
  #above(found: Set<ServerCore> = new Set()): Set<ServerCore> {
    found.add(this);
    for (const { into } of this.#mountPoints) if (!found.has(into)) into.#above(found);
    return found;
  }

  /** Reads a resource of this server's on behalf of a handler. */
  async readResource(ctx: CallContext, uri: string): Promise<ResourceResult> {
    const found = this.native.resolveResource(uri);
    const [id, input, mimeType] = found === null ? [] : (JSON.parse(found) as [number, Record<string, unknown>, string | null]);
    const plan = id === undefined ? undefined : this.plans[id];
    if (!plan || !input) throw new ResourceNotFound(uri);
    return resourceResult(uri, mimeType ?? null, await plan.invoke(input, ctx));
  }

  #visible(kind: string, key: string): Visible | undefined {
    return this.#registrations.find((one) => one.kind === kind && one.key === key)?.visible;
  }

  #remove(kind: Kind, key: string): void {
    this.native.remove(kind, key);
    const goes = (one: Registration): boolean => one.key === key && (one.kind === kind || (one.kind === "completion" && isCompleted(kind)));
    this.#registrations.splice(0, this.#registrations.length, ...this.#registrations.filter((one) => !goes(one)));
  }
}

const CORE = Symbol.for("gudgeon.core");

export function setCore(server: object, core: ServerCore): void {
  Object.defineProperty(server, CORE, { value: core });
}

/** Whether it is a server, of whichever copy of the package. */
export function isServer(value: object): boolean {
  return CORE in value;
}

/** What stands behind a server, whichever copy of the package made it. */
export function coreOf(server: unknown, place: string): ServerCore {
  const core = isObject(server) ? (server as Record<symbol, unknown>)[CORE] : undefined;
  if (core === undefined) throw new TypeError(`${place}: this is no Server of gudgeon's`);
  return core as ServerCore;
}

/** Tools and prompts get the prefix; URIs and vendors' names say where they belong by themselves. */
function keyIn(kind: Registration["kind"], key: string, prefix: string): string {
  return kind === "tool" || kind === "prompt" || (kind === "completion" && !isTemplate(key)) ? `${prefix}_${key}` : key;
}

function linked(registration: Registration, { prefix, into }: MountPoint): Registration {
  const { kind, key, declaration, plan, seen, visible } = registration;
  const place = `mount(${JSON.stringify(prefix)}): ${registration.place}`;
  const name = keyIn(kind, key, prefix);
  const isNamed = kind === "tool" || kind === "prompt";
  const renamed = isNamed ? { name } : kind === "completion" ? { ref: referenceTo(name) } : {};
  const seenAs = { ...seen, params: (input: Record<string, unknown>) => ({ ...seen.params(input), ...renamed }) };
  return {
    place,
    kind,
    key: name,
    declaration: isNamed ? { ...declaration, name } : declaration,
    plan: mountPlan(into, plan, seenAs),
    seen: seenAs,
    visible,
  };
}

/** Whether completions belong to such things, and go with them. */
function isCompleted(kind: Kind): boolean {
  return kind === "prompt" || kind === "resourceTemplate";
}

/** Whether it is a URI template (RFC 6570): of what is completed, whether it is no prompt's name. */
export function isTemplate(uri: string): boolean {
  return uri.includes("{");
}

/** What a completion completes, as clients say it. */
export function referenceTo(target: string): Record<string, unknown> {
  return isTemplate(target) ? { type: "ref/resource", uri: target } : { type: "ref/prompt", name: target };
}

/** Whether a server is another one, or is mounted in it at any depth. */
function contains(outer: ServerCore, inner: ServerCore): boolean {
  return outer === inner || outer.mounted.some((one) => contains(one, inner));
}
