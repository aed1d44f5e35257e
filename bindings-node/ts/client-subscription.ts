import { errorOf } from "./client-errors.js";
import type { Listening, Taken } from "./client-wire.js";
import { ConnectionLost } from "./errors.js";
import type { Change, Subscription } from "./types.js";

/** How long a server that was started again must last to be started once more. */
const MIN_LIFE_MS = 1_000;

/** What a subscription hears of. */
export interface Wanted {
  uris?: readonly string[] | undefined;
  tools?: boolean | undefined;
  resources?: boolean | undefined;
  prompts?: boolean | undefined;
}

/** Where subscriptions come from. */
interface Wire {
  readonly restarts: boolean;
  subscribe(filter: Readonly<Record<string, unknown>>, mayHaveMissed: boolean): Promise<Listening>;
}

/** Changes that a server tells of, one by one; the native half keeps what has come and was not taken. */
export class Subscribing implements Subscription {
  readonly #wire: Wire;
  readonly #filter: Readonly<Record<string, unknown>>;
  #listening: Promise<Listening> | undefined;
  #isOver = false;
  #since = -Infinity;

  /** Begins with `open()` or the first `next()`. */
  constructor(wire: Wire, wanted: Wanted) {
    const { uris = [], tools, prompts, resources } = wanted;
    const wrong = uris.findIndex((uri) => typeof uri !== "string");
    if (wrong >= 0) throw new TypeError(`subscribe(): uris[${wrong}] must be a text`);
    this.#wire = wire;
    this.#filter = {
      ...(tools === true && { toolsListChanged: true }),
      ...(prompts === true && { promptsListChanged: true }),
      ...(resources === true && { resourcesListChanged: true }),
      ...(uris.length > 0 && { resourceSubscriptions: uris }),
    };
    if (Object.keys(this.#filter).length === 0) {
      throw new TypeError("subscribe() to something: { uris: […] }, { tools: true }, { resources: true } or { prompts: true }");
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async open(): Promise<this> {
    if (!this.#isOver) await this.#opened();
    return this;
  }

  async next(): Promise<IteratorResult<Change, undefined>> {
    while (!this.#isOver) {
      const listening = await this.#opened();
      try {
        const value = await this.#take(listening);
        if (value !== undefined) return { done: false, value };
        this.#isOver = true;
      } catch (error) {
        // A server that ends again at once would be started for ever.
        const isQuick = performance.now() - this.#since < MIN_LIFE_MS;
        if (!(error instanceof ConnectionLost) || !this.#wire.restarts || isQuick) return this.#settled(Promise.reject(error));
        this.#listening = this.#wire.subscribe(this.#filter, true);
        await this.#settled(this.#listening);
        this.#since = performance.now();
      }
    }
    return { done: true, value: undefined };
  }

  #opened(): Promise<Listening> {
    return this.#settled((this.#listening ??= this.#wire.subscribe(this.#filter, false)));
  }

  /** What fails is the last thing that is said. */
  async #settled<T>(what: Promise<T>): Promise<T> {
    try {
      return await what;
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  }

  /** Takes it back; whoever waits finds the end. */
  async return(): Promise<IteratorResult<Change, undefined>> {
    this.#isOver = true;
    // One that could not begin has nothing to be taken back.
    this.#listening?.then((it) => it.close(), () => undefined);
    return { done: true, value: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** The oldest change; undefined at the end. */
  async #take(listening: Listening): Promise<Change | undefined> {
    for (;;) {
      const taken = listening.take() ?? (await this.#awaited(listening));
      if (taken?.error) throw errorOf(taken.error);
      if (taken) return taken.change;
    }
  }

  async #awaited(listening: Listening): Promise<Taken | undefined> {
    try {
      await listening.ready();
      return listening.take();
    } catch (error) {
      // With the client, waiting ends; then the end is there to be taken.
      const taken = listening.take();
      if (taken === undefined) throw error;
      return taken;
    }
  }
}
