import { checked, type NativeArrival, type NativeMounted, type NativePart } from "../native.js";
import { principalToJson } from "../model/principal.js";
import { isPromise } from "../model/promises.js";
import { activeTrace } from "../model/tracing.js";
import type { Principal } from "../model/types/server.js";
import { CallScheduler } from "../call/scheduler.js";
import type { ServerCore } from "../server/core.js";
import { joinWorkers } from "./workers.js";

/** The number of unread bytes after which a client is disconnected. */
export const MAX_UNREAD = 4 * 1024 * 1024;
/** The number of unread bytes, not counting the longest part, after which a subscription ends. */
const MAX_BEHIND = 1024 * 1024;
/** The maximum number of bytes that a host adds to a part. */
const CHUNKING = 1024;
/** The time for calls in flight to finish when the server is closed. */
const GRACE_MS = 10_000;
/** The longest delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Receives the parts of one response, in order; returns the number of bytes that the client has not read. After a part with
 * `counted`, `report` must be called when some of them are read. A part with `cut` closes the connection.
 */
export type Deliver = (part: NativePart) => number;

/** The reason that a request has no body: the client sent too much or too slowly, all clients did, or it has left. */
export type NoBody = "too long" | "too slow" | "too much" | "gone";

/** The head of a request. */
export interface Head {
  readonly method: string;
  /** The path with its query, or a URL. */
  readonly target: string;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  /** The caller, as the host authenticated it. */
  readonly principal?: Principal | undefined;
  /** The place at which the request arrived; needed by a server that authenticates callers itself. */
  readonly arrival: NativeArrival | undefined;
  /** The address of the other side of the connection, if the host knows it; `unix` for a Unix socket. */
  readonly peer?: string | undefined;
}

/** A request whose head was admitted. `request` or `refuse` must be called for each. */
export interface Admitted {
  readonly number: number;
  readonly principal: Principal | undefined;
}

/** A request whose response is not complete. */
interface Waiting {
  readonly deliver: Deliver;
  readonly principal: Principal | undefined;
  readonly exchange: number;
  /** The size of the longest unread part. */
  longest: number;
  isLagging: boolean;
}

/** A server's HTTP endpoint on the event loop: it takes requests of a host and returns parts of their responses. */
export class Mounted {
  /** Resolves when the server's lifespan has been entered. */
  readonly ready: Promise<void>;
  readonly maxBody: number;
  /** True if the server authenticates callers itself. */
  readonly hasAuth: boolean;
  readonly #native: NativeMounted;
  readonly #scheduler: CallScheduler;
  readonly #waiting = new Map<number, Waiting>();
  readonly #graceMs: number;
  #numbers = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Keeps the process alive while a request waits for its response. */
  #alive: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;
  #isReady = false;

  constructor(private readonly core: ServerCore) {
    this.#graceMs = core.options.http?.shutdownGraceMs ?? GRACE_MS;
    let mounted: NativeMounted | undefined;
    // For the key: the workers of a mounted server do not reach each other.
    joinWorkers(core);
    this.#scheduler = new CallScheduler(
      core,
      (wake) => {
        mounted = checked("new Server({ http })", () => core.native.serveMounted(core.http, wake));
        return mounted.workQueue();
      },
      { afterTurn: () => this.#collect(), principalOf: (request) => (request === undefined ? undefined : this.#waiting.get(request)?.principal) },
    );
    this.#native = mounted as unknown as NativeMounted;
    this.maxBody = this.#native.maxBody();
    this.hasAuth = this.#native.hasAuth();
    this.ready = core.enter().then(async () => {
      await this.#scheduler.reachUpstreams();
      this.#scheduler.start();
      this.#isReady = true;
    });
    // Each request awaits it; without this a failure would be an unhandled rejection.
    this.ready.catch(() => {});
  }

  /** Returns the response to a request for `health` or `ready` that need not wait until the lifespan has been entered. */
  probeBeforeStart({ method, target }: Head): NativePart | undefined {
    return this.#isReady ? undefined : (this.#native.probeBeforeStart(method, target) ?? undefined);
  }

  /**
   * Checks the head of a request, before its body is read, and authenticates the caller. Returns its response if it is refused.
   *
   * @throws TypeError if both the host and the server authenticate callers.
   */
  admit({ method, target, headers, principal, arrival, peer }: Head): Admitted | NativePart | Promise<Admitted | NativePart> {
    if (principal !== undefined && this.hasAuth) {
      throw new TypeError("the request's principal and new Server({ auth }) both say who calls; leave one of them out");
    }
    const number = ++this.#numbers;
    const who = principal && principalToJson(principal);
    const refusal = this.#native.head(number, method, target, headers.join("\n"), who, peer, arrival, activeTrace());
    const admitted = { number, principal };
    if (refusal !== null || !this.hasAuth) return refusal ?? admitted;
    const decided = this.#native.authenticate(number);
    return isPromise(decided) ? decided.then((decision) => decision ?? admitted) : (decided ?? admitted);
  }

  /** Handles a request that was admitted. Returns a function to call if the client disconnects before the end. */
  request({ number, principal }: Admitted, body: Uint8Array, deliver: Deliver): () => void {
    const exchange = this.#native.request(number, body);
    this.#waiting.set(number, { deliver, principal, exchange, longest: 0, isLagging: false });
    this.#alive ??= setInterval(() => {}, MAX_TIMER_MS);
    this.#scheduler.drain();
    return () => {
      if (!this.#forget(number)) return;
      this.#native.disconnected(exchange);
      this.#scheduler.drain();
    };
  }

  /** Counts the bytes received of a body that is not complete. Returns the milliseconds within which more must come, if there is room. */
  received({ number }: Admitted, bytes: number): number | undefined {
    return this.#native.received(number, bytes) ?? undefined;
  }

  /** Returns the response to a request that was admitted and has no body. */
  refuse({ number }: Admitted, reason: NoBody): NativePart {
    return this.#native.refuse(number, reason);
  }

  /** Reports how many bytes of a response the host holds. */
  report({ number }: Admitted, unread: number): void {
    this.#native.unread(number, unread);
  }

  /** Accepts no further requests, waits for calls in flight, and leaves the lifespan. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const hasEntered = await this.ready.then(
      () => true,
      () => false,
    );
    await this.#scheduler.stop(hasEntered ? this.#graceMs : 0);
    clearTimeout(this.#timer);
    if (hasEntered) await this.core.leave();
  }

  /** Delivers the parts that are ready. */
  #collect(): void {
    for (const part of this.#native.takeParts()) {
      const waiting = this.#waiting.get(part.request);
      if (!part.more) this.#forget(part.request);
      if (waiting) this.#deliver(waiting, part);
      else if (part.counted) this.#native.unread(part.request, 0);
    }
    const alarm = this.#native.takeAlarm();
    if (alarm === null) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tick(), Math.min(alarm, MAX_TIMER_MS)).unref();
  }

  #deliver(waiting: Waiting, part: NativePart): void {
    const unread = waiting.deliver(part);
    if (part.counted && !this.#native.unread(part.request, unread)) waiting.deliver({ ...part, cut: true });
    const size = part.body?.byteLength ?? 0;
    // One part, such as the acknowledgment of a long filter, may be larger than the limit.
    waiting.longest = unread > size + CHUNKING ? Math.max(waiting.longest, size) : size;
    const isLagging = unread - waiting.longest > MAX_BEHIND;
    if (isLagging && !waiting.isLagging) this.#native.lagging(waiting.exchange);
    waiting.isLagging = isLagging;
  }

  #forget(number: number): boolean {
    const wasWaiting = this.#waiting.delete(number);
    if (this.#waiting.size === 0) {
      clearInterval(this.#alive);
      this.#alive = undefined;
    }
    return wasWaiting;
  }

  #tick(): void {
    this.#native.tick();
    this.#scheduler.drain();
  }
}
