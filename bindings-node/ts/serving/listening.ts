import { checked, type NativeListening, placed } from "../native.js";
import { WRITES_JSON } from "../model/logging.js";
import type { HttpOptions } from "../model/types/options.js";
import type { Listening } from "../model/types/server.js";
import { CallScheduler } from "../call/scheduler.js";
import type { ServerCore } from "../server/core.js";
import { httpOptions } from "../server/options.js";
import { endProcess, Signals } from "./signals.js";
import { isClusterWorker, joinWorkers } from "./workers.js";

/** The default time for calls in flight at the end. */
const GRACE_MS = 10_000;

/** The longest delay of a timer. */
const LONG_MS = 2 ** 31 - 1;

/** Listens at an address with native threads; resolves when it listens. */
export async function listen(core: ServerCore, place: string, at: string, given: HttpOptions = {}): Promise<Listening> {
  return open(core, place, at, given);
}

/** `signals`: those of the process, if the server owns it. */
async function open(core: ServerCore, place: string, at: string, given: HttpOptions = {}, signals?: Signals): Promise<Listening> {
  if (typeof at !== "string") {
    throw new TypeError(`${place}: the address must be a string such as "http://127.0.0.1:8000/mcp"; run() without an address serves stdin and stdout`);
  }
  const { http, ioThreads } = core.options;
  const options = httpOptions(place, { ...http, ...given }, { ioThreads });
  const group = joinWorkers(core);
  const server = new ListeningServer(core, place, (wake) => checked(place, () => core.native.serveListening(at, options, wake)), group, signals);
  const { drainDelayMs = 0, shutdownGraceMs = GRACE_MS } = { ...http, ...given };
  await server.start(drainDelayMs + shutdownGraceMs);
  return server;
}

/** Listens until a signal comes; then the process ends. */
export async function runListening(core: ServerCore, place: string, at: string, options?: HttpOptions): Promise<void> {
  const signals = new Signals();
  try {
    const server = await open(core, place, at, options, signals);
    // The URL stands alone on its line, because programs that start servers read it.
    // As JSON, the event server.started says the same.
    if (!WRITES_JSON) console.error(`${core.server.name || "gudgeon"} serves (Ctrl-C ends it)\n${server.url}`);
    await signals.came;
    await server.close();
  } finally {
    signals.release();
  }
  endProcess();
}

let hasWarned = false;

class ListeningServer implements Listening {
  url = "";
  readonly #native: NativeListening;
  readonly #scheduler: CallScheduler;
  /** Keeps the process alive while the server listens. */
  #alive: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    private readonly core: ServerCore,
    private readonly place: string,
    open: (wake: () => void) => NativeListening,
    private readonly group: string | undefined,
    private readonly signals?: Signals,
  ) {
    let native: NativeListening | undefined;
    this.#scheduler = new CallScheduler(core, (wake) => (native = open(wake)).workQueue());
    this.#native = native as unknown as NativeListening;
  }

  /** `graceMs`: the time from the first signal in which calls in flight may end. */
  async start(graceMs: number): Promise<void> {
    let hasEntered = false;
    try {
      await this.core.enter();
      hasEntered = true;
      await this.#scheduler.reachUpstreams();
      // Before the first handler, which may block the event loop.
      this.signals?.watch(this.#scheduler.workQueue, graceMs);
      this.#scheduler.start();
      const [url = "", warning] = await this.#native.start(isClusterWorker(), this.group).catch((error: unknown) => Promise.reject(placed(this.place, error)));
      this.url = url;
      this.#alive = setInterval(() => {}, LONG_MS);
      if (warning !== undefined && !hasWarned) {
        hasWarned = true;
        this.core.logger.warn(warning);
      }
    } catch (error) {
      this.#scheduler.workQueue.close();
      if (hasEntered) await this.core.leave();
      throw error;
    }
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#native.stop();
    // `stop` has waited for the calls in flight already.
    await this.#scheduler.stop(0);
    this.signals?.handlersEnded();
    clearInterval(this.#alive);
    await this.core.leave();
  }
}
