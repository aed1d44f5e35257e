import type { NativeWorkQueue } from "../native.js";
import type { KeepAlive } from "../model/keep-alive.js";
import type { Principal } from "../model/types/server.js";
import type { Signals } from "./signals.js";
import { CallScheduler } from "../call/scheduler.js";
import type { ServerCore } from "../server/core.js";

/** The time for calls in flight to finish when the server stops. */
export const GRACE_MS = 3_000;

export interface ConnectionOptions {
  /** The principal of every call. */
  readonly principal?: Principal | undefined;
  /** Held while handlers run, for a stream that does not keep the process alive itself. */
  readonly keepAlive?: KeepAlive | undefined;
}

/** A server's connection with one peer over a stream. */
export class Connection {
  readonly #core: ServerCore;
  readonly #scheduler: CallScheduler;
  readonly #keepAlive: KeepAlive | undefined;
  /** Resolves when the peer has ended its input. */
  readonly #ended: Promise<void>;

  constructor(core: ServerCore, open: (wake: () => void) => NativeWorkQueue, { principal, keepAlive }: ConnectionOptions = {}) {
    let end!: () => void;
    this.#ended = new Promise((resolve) => (end = resolve));
    this.#core = core;
    this.#keepAlive = keepAlive;
    this.#scheduler = new CallScheduler(core, open, { principalOf: principal && (() => principal), onEnd: end, keepAlive });
  }

  get workQueue(): NativeWorkQueue {
    return this.#scheduler.workQueue;
  }

  /**
   * Serves until the peer has ended its input or a signal arrives, then waits for calls in flight.
   *
   * @param signals - The signals of the process, if the server owns it.
   * @param graceMs - The time for calls in flight to finish.
   * @param entered - Called when the server's lifespan has been entered.
   * @throws The error of the lifespan.
   */
  async serve(signals: Signals | undefined, graceMs: number, entered?: () => void): Promise<void> {
    let hasEntered = false;
    try {
      await this.#core.enter();
      hasEntered = true;
      await this.#scheduler.reachUpstreams();
      entered?.();
      // Before the first handler, which may block the event loop.
      signals?.watch(this.workQueue, graceMs);
      this.#scheduler.start();
      await (signals ? Promise.race([this.#ended, signals.came]) : this.#ended);
    } finally {
      await this.#scheduler.stop(hasEntered ? graceMs : 0);
      signals?.handlersEnded();
      this.#keepAlive?.end();
      if (hasEntered) await this.#core.leave();
    }
  }
}
