import { checkOptions } from "../model/checks.js";
import type { Change, SubscribeOptions, Subscription } from "../model/types/client.js";
import { errorOf } from "./errors.js";
import type { Listening, Taken } from "./wire.js";

/** The part of a client's wire, or of a group, that opens subscriptions. */
interface Wire<C> {
  subscribe(filter: Readonly<Record<string, unknown>>): Promise<Listening<C>>;
}

/** An iterator over the changes that servers report. The native half queues changes until they are taken. */
export class Subscribing<C extends Change = Change> implements Subscription<C> {
  readonly #wire: Wire<C>;
  readonly #filter: Readonly<Record<string, unknown>>;
  #listening: Promise<Listening<C>> | undefined;
  #isOver = false;

  /** Begins with `open()` or the first `next()`. */
  constructor(wire: Wire<C>, wanted: SubscribeOptions) {
    checkOptions("subscribe", "subscribe()", wanted);
    const { uris = [], tools, prompts, resources } = wanted;
    this.#wire = wire;
    this.#filter = {
      ...(tools === true && { toolsListChanged: true }),
      ...(prompts === true && { promptsListChanged: true }),
      ...(resources === true && { resourcesListChanged: true }),
      ...(uris.length > 0 && { resourceSubscriptions: uris }),
    };
    if (Object.keys(this.#filter).length === 0) {
      throw new TypeError("subscribe(): nothing to subscribe to; give { uris: […] }, { tools: true }, { resources: true } or { prompts: true }");
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async open(): Promise<this> {
    if (!this.#isOver) await this.#opened();
    return this;
  }

  async next(): Promise<IteratorResult<C, undefined>> {
    while (!this.#isOver) {
      const value = await this.#settled(this.#take(await this.#opened()));
      if (value !== undefined) return { done: false, value };
      this.#isOver = true;
    }
    return { done: true, value: undefined };
  }

  #opened(): Promise<Listening<C>> {
    return this.#settled((this.#listening ??= this.#wire.subscribe(this.#filter)));
  }

  /** Ends the iteration with an error. */
  async #settled<T>(what: Promise<T>): Promise<T> {
    try {
      return await what;
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  }

  /** Ends the subscription; a waiting `next()` resolves with the end. */
  async return(): Promise<IteratorResult<C, undefined>> {
    this.#isOver = true;
    // A subscription that failed to open needs no unsubscribing.
    this.#listening?.then((listening) => listening.close(), () => undefined);
    return { done: true, value: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** Returns the oldest change; undefined at the end. */
  async #take(listening: Listening<C>): Promise<C | undefined> {
    for (;;) {
      const taken = listening.take() ?? (await this.#awaited(listening));
      if (taken?.error) throw errorOf(taken.error);
      if (taken) return taken.change;
    }
  }

  async #awaited(listening: Listening<C>): Promise<Taken<C> | undefined> {
    try {
      await listening.ready();
      return listening.take();
    } catch (error) {
      // Closing the client ends the wait; the end is then taken from the queue.
      const taken = listening.take();
      if (taken === undefined) throw error;
      return taken;
    }
  }
}
