import type { ClientWire } from "./client-wire.js";
import { isObject } from "./content.js";
import { NotSupported } from "./errors.js";
import type { Change, Meta } from "./types.js";

/** What a subscription hears of. */
export interface Wanted {
  uris?: readonly string[] | undefined;
  tools?: boolean | undefined;
  resources?: boolean | undefined;
  prompts?: boolean | undefined;
}

const LISTS = ["tools", "resources", "prompts"] as const;

/** Changes that a server tells of. One that comes again before it was taken is one change: what waits is bounded. */
export class Subscription implements AsyncIterableIterator<Change>, AsyncDisposable {
  readonly #wire: ClientWire;
  readonly #uris: readonly string[];
  readonly #lists: readonly string[];
  readonly #waiting = new Map<string, Change>();
  #opened: Promise<void> | undefined;
  #wake: () => void = () => {};
  #isOver = false;
  #error: Error | undefined;

  /** Begins with the first `next()`. */
  constructor(
    wire: ClientWire,
    private readonly server: { readonly revision: string; readonly capabilities: Meta },
    wanted: Wanted,
  ) {
    const { uris = [] } = wanted;
    const wrong = uris.findIndex((uri) => typeof uri !== "string");
    if (wrong >= 0) throw new TypeError(`subscribe(): uris[${wrong}] must be a text`);
    this.#wire = wire;
    this.#uris = [...new Set(uris)];
    this.#lists = LISTS.filter((name) => wanted[name] === true);
    if (this.#uris.length + this.#lists.length === 0) {
      throw new TypeError("subscribe() to something: { uris: […] }, { tools: true }, { resources: true } or { prompts: true }");
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Change, undefined>> {
    await (this.#opened ??= this.#open());
    for (;;) {
      for (const [key, value] of this.#waiting) {
        this.#waiting.delete(key);
        return { done: false, value };
      }
      if (this.#error) throw this.#error;
      if (this.#isOver) return { done: true, value: undefined };
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Takes it back, but for what others still want. */
  async return(): Promise<IteratorResult<Change, undefined>> {
    if (this.#wire.subscriptions.delete(this)) {
      this.end();
      const others = [...this.#wire.subscriptions].flatMap((other) => other.#uris);
      const left = this.#wire.isOpen ? this.#uris.filter((uri) => !others.includes(uri)) : [];
      await Promise.all(left.map((uri) => this.#request("resources/unsubscribe", uri)));
    }
    this.#isOver = true;
    return { done: true, value: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  hear(change: Change): void {
    const isUpdate = change.kind === "updated";
    if (!(isUpdate ? this.#uris.includes(change.uri) : this.#lists.includes(change.kind))) return;
    this.#waiting.set(isUpdate ? `updated ${change.uri}` : change.kind, change);
    this.#wake();
  }

  end(error?: Error): void {
    this.#isOver = true;
    this.#error = error;
    this.#wake();
  }

  async #open(): Promise<void> {
    const { revision, capabilities } = this.server;
    if (revision === "2026-07-28") {
      throw new NotSupported("subscriptions/listen of 2026-07-28 is not part of this version", {
        hint: 'a client with { revision: "2025-11-25" } can subscribe, where the server speaks that, too',
        phase: "subscribe",
      });
    }
    for (const name of this.#lists) {
      const declared = capabilities[name];
      if (!isObject(declared) || declared["listChanged"] !== true) {
        const message = `the server does not tell when its ${name} change: it did not declare ${name}.listChanged`;
        throw new NotSupported(message, { phase: "subscribe" });
      }
    }
    this.#wire.subscriptions.add(this);
    try {
      for (const uri of this.#uris) await this.#request("resources/subscribe", uri);
    } catch (error) {
      this.#wire.subscriptions.delete(this);
      throw error;
    }
  }

  async #request(method: string, uri: string): Promise<void> {
    await this.#wire.request("request", { method, params: { uri } });
  }
}
