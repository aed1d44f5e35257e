import { isObject } from "./content.js";
import { type CallContext } from "./context.js";
import { resourceResult } from "./connection.js";
import { NotSupported, ResourceNotFound } from "./errors.js";
import { toJson } from "./json.js";
import { Lifespan } from "./lifespan.js";
import { Mounted } from "./mounted.js";
import { checked, native, type NativeServer } from "./native.js";
import { mountPlan, type Plan, type Steps } from "./plan.js";
import type { ResourceResult } from "./results.js";
import { roundOptions } from "./round-options.js";
import type { Middleware, ServerMembers, ServerOptions } from "./types.js";

export type Kind = "tool" | "resource" | "resourceTemplate" | "prompt";

/** What a server registered, so that it can be registered again where it is mounted. */
interface Registration {
  readonly place: string;
  readonly kind: Kind | "completion" | "method" | "notification";
  readonly key: string;
  readonly declaration: Record<string, unknown>;
  readonly plan: Plan;
  readonly seen: Pick<Steps, "method" | "params">;
}

interface Link {
  readonly prefix: string;
  readonly into: ServerCore;
}

type Change =
  | { readonly how: "remove" }
  | { readonly how: "update"; readonly changes: Record<string, unknown> }
  | { readonly how: "enable" | "disable"; readonly tags: readonly string[] };

/** Options of things that this version has not. */
const ABSENT = ["store"] as const;

/** What a server consists of, behind its public face; ESM and CommonJS copies of that face may share it. */
export class ServerCore {
  readonly native: NativeServer;
  readonly lifespan: Lifespan<unknown>;
  /** By the numbers that the native half knows handlers by. */
  readonly plans: (Plan | undefined)[] = [];
  readonly #registrations: Registration[] = [];
  readonly #links: Link[] = [];
  readonly #middleware: { readonly handler: Middleware; readonly on: ReadonlySet<string> | undefined }[] = [];

  constructor(
    readonly server: ServerMembers<unknown>,
    readonly options: ServerOptions<unknown>,
  ) {
    const { version = "", title, instructions, websiteUrl, icons, pageSize, debug, revisions, dialects, listTtlMs, maxMessage } = options;
    const place = `new Server(${JSON.stringify(server.name)})`;
    for (const name of ABSENT) {
      const given = options[name];
      if (given !== undefined && given.length > 0) throw new NotSupported(`Server({ ${name} }): this version of gudgeon has no ${name}`);
    }
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
    this.#middleware.push({ handler, on: on === undefined ? undefined : new Set(typeof on === "string" ? [on] : on) });
  }

  /** Passes the request through the middleware, the first registered outermost. */
  around(method: string, params: Record<string, unknown>, ctx: CallContext, inner: () => unknown): unknown {
    const chain = this.#middleware.filter(({ on }) => on === undefined || on.has(method));
    const request = { method, params, ctx };
    const step = async (at: number): Promise<unknown> =>
      at < chain.length ? chain[at]?.handler(request, () => step(at + 1)) : inner();
    return chain.length > 0 ? step(0) : inner();
  }

  register(registration: Registration): void {
    const { place, kind, key, declaration, plan } = registration;
    const id = this.plans.length;
    checked(place, () => {
      switch (kind) {
        case "completion":
          return this.native.addCompletion(key, String(declaration["argument"]), id);
        case "method":
          return this.native.addMethod(key, id);
        case "notification":
          return this.native.addNotification(key, id);
        default:
          return this.native.add(kind, toJson(declaration, place), id);
      }
    });
    this.plans[id] = plan;
    this.#registrations.push(registration);
    for (const link of this.#links) link.into.register(linked(registration, link));
  }

  /** Offers all of this server's, now and later, in another one. */
  mountInto(into: ServerCore, prefix: string): void {
    if (reaches(this, into)) throw new TypeError(`mount(${JSON.stringify(prefix)}): a server can't be mounted into itself`);
    const link = { prefix, into };
    for (const registration of this.#registrations) into.register(linked(registration, link));
    this.#links.push(link);
  }

  /** Servers mounted here and below, whose lifespans belong to this one's. */
  readonly mounted: ServerCore[] = [];

  async enter(): Promise<void> {
    await this.lifespan.enter();
    try {
      for (const one of this.mounted) await one.enter();
    } catch (error) {
      await this.lifespan.leave();
      throw error;
    }
  }

  async leave(): Promise<void> {
    try {
      for (const one of [...this.mounted].reverse()) await one.leave();
    } finally {
      await this.lifespan.leave();
    }
  }

  #mounted: Mounted | undefined;

  /** What serves the requests of hosts; begun with the first. */
  mountedOnce(): Mounted {
    return (this.#mounted ??= new Mounted(this));
  }

  async closeMounted(): Promise<void> {
    await this.#mounted?.close();
  }

  notifyUpdated(uri: string): void {
    this.native.updated(uri);
    for (const { into } of this.#links) into.notifyUpdated(uri);
  }

  notifyUrlDone(id: string): void {
    this.native.pageDone(id);
    for (const { into } of this.#links) into.notifyUrlDone(id);
  }

  change(kind: Kind, keys: readonly string[], change: Change): void {
    const place = `${kind} ${keys.map((key) => JSON.stringify(key)).join(", ")}`;
    for (const id of this.native.takeDropped()) delete this.plans[id];
    checked(place, () => {
      if (change.how === "enable" || change.how === "disable") {
        this.native.setEnabled(kind, [...keys], [...change.tags], change.how === "enable");
        return;
      }
      for (const key of keys) {
        if (change.how === "update") this.native.update(kind, key, toJson(change.changes, "the changes"));
        else this.#remove(kind, key);
      }
    });
    for (const { into, prefix } of this.#links) into.change(kind, keys.map((key) => keyIn(kind, key, prefix)), change);
  }

  /** Reads a resource of this server's on behalf of a handler. */
  async readResource(ctx: CallContext, uri: string): Promise<ResourceResult> {
    const found = this.native.resolveResource(uri);
    const [id, input, mimeType] = found === null ? [] : (JSON.parse(found) as [number, Record<string, unknown>, string | null]);
    const plan = id === undefined ? undefined : this.plans[id];
    if (!plan || !input) throw new ResourceNotFound(uri);
    return resourceResult(uri, mimeType ?? null, await plan.invoke(input, ctx));
  }

  #remove(kind: Kind, key: string): void {
    this.native.remove(kind, key);
    const at = this.#registrations.findIndex((one) => one.kind === kind && one.key === key);
    if (at >= 0) this.#registrations.splice(at, 1);
  }
}

const CORE = Symbol.for("gudgeon.core");

export function setCore(server: object, core: ServerCore): void {
  Object.defineProperty(server, CORE, { value: core });
}

/** What stands behind a server, whichever copy of the package made it. */
export function coreOf(server: unknown, place: string): ServerCore {
  const core = isObject(server) ? (server as Record<symbol, unknown>)[CORE] : undefined;
  if (core === undefined) throw new TypeError(`${place}: this is no Server of gudgeon's`);
  return core as ServerCore;
}

/** Tools and prompts get the prefix; URIs and vendors' names say where they belong by themselves. */
function keyIn(kind: Registration["kind"], key: string, prefix: string): string {
  return kind === "tool" || kind === "prompt" || (kind === "completion" && !key.includes("{")) ? `${prefix}_${key}` : key;
}

function linked(registration: Registration, { prefix, into }: Link): Registration {
  const { kind, key, declaration, plan, seen } = registration;
  const place = `mount(${JSON.stringify(prefix)}): ${registration.place}`;
  const name = keyIn(kind, key, prefix);
  const isNamed = kind === "tool" || kind === "prompt";
  const seenAs = isNamed ? { ...seen, params: (input: Record<string, unknown>) => ({ ...seen.params(input), name }) } : seen;
  return {
    place,
    kind,
    key: name,
    declaration: isNamed ? { ...declaration, name } : declaration,
    plan: mountPlan(into, plan, seenAs),
    seen: seenAs,
  };
}

function reaches(from: ServerCore, to: ServerCore): boolean {
  return from === to || to.mounted.some((one) => reaches(from, one));
}
