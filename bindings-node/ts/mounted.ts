import { Connection } from "./connection.js";
import type { ServerCore } from "./core.js";
import { httpOptions } from "./http-options.js";
import { checked, type NativeMounted, type NativePart } from "./native.js";
import type { Principal } from "./types.js";
import { principalToJson } from "./visible.js";
import { warnWorker } from "./workers.js";

/** Bytes that a client may leave unread before it is cut off. */
export const MAX_UNREAD = 4 * 1024 * 1024;
/** Bytes that it may leave unread, beside the longest piece, before its subscription ends. */
const MAX_BEHIND = 1024 * 1024;
/** What a host adds to a piece at most: bytes. */
const CHUNKING = 1024;
/** How long calls in flight have to finish when the server is closed. */
const GRACE_MS = 10_000;
/** Longer times than this are no time to a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Gets the pieces of one answer, in order; gives back how many bytes of it the client has not read. */
export type Deliver = (part: NativePart) => number;

/** The head of a request. */
export interface Head {
  readonly method: string;
  /** A path with its query, or a URL. */
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Who the host says has made it. */
  readonly principal?: Principal | undefined;
}

/** A request whose answer is not complete. */
interface Waiting {
  readonly deliver: Deliver;
  readonly principal: Principal | undefined;
  readonly exchange: number;
  /** Bytes of the longest piece among those that are unread. */
  longest: number;
  isBehind: boolean;
}

/** A server's endpoint, moved by the event loop: requests of a host go in, pieces of their answers come out. */
export class Mounted {
  /** Resolves once the server's lifespan is entered. */
  readonly ready: Promise<void>;
  readonly maxBody: number;
  readonly #native: NativeMounted;
  readonly #connection: Connection;
  readonly #waiting = new Map<number, Waiting>();
  readonly #graceMs: number;
  #numbers = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The process lives as long as somebody waits for an answer. */
  #alive: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;

  constructor(private readonly core: ServerCore) {
    const { http = {} } = core.options;
    this.#graceMs = http.shutdownGraceMs ?? GRACE_MS;
    const options = httpOptions("new Server({ http })", http);
    let mounted: NativeMounted | undefined;
    this.#connection = new Connection(
      core,
      (wake) => {
        mounted = checked("new Server({ http })", () => core.native.serveMounted(options, wake));
        return mounted.shell();
      },
      { collect: () => this.#collect(), principalOf: (request) => (request === undefined ? undefined : this.#waiting.get(request)?.principal) },
    );
    this.#native = mounted as unknown as NativeMounted;
    this.maxBody = this.#native.maxBody();
    this.ready = core.enter().then(() => this.#connection.start());
    // Each request awaits it; the first failure must not count as nobody's.
    this.ready.catch(() => {});
    void warnWorker(core);
  }

  /** Takes a request, whole. Returns what is to be called when the client leaves before the end. */
  request({ method, target, headers, principal }: Head, body: Uint8Array, deliver: Deliver): () => void {
    const number = ++this.#numbers;
    const who = principal && principalToJson(principal);
    // What is refused here, because the host gave it wrongly, nobody waits for.
    const exchange = this.#native.request(number, method, target, headers.join("\n"), body, who);
    this.#waiting.set(number, { deliver, principal, exchange, longest: 0, isBehind: false });
    this.#alive ??= setInterval(() => {}, MAX_TIMER_MS);
    this.#connection.drain();
    return () => {
      if (!this.#forget(number)) return;
      this.#native.gone(exchange);
      this.#connection.drain();
    };
  }

  /** The answer to a request whose body is too long. */
  refuse({ method, target, headers }: Head): NativePart {
    return this.#native.refuse(method, target, headers.join("\n"));
  }

  /** Takes nothing new, lets what is in flight finish, and leaves the lifespan. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const hasEntered = await this.ready.then(
      () => true,
      () => false,
    );
    await this.#connection.stop(hasEntered ? this.#graceMs : 0);
    clearTimeout(this.#timer);
    if (hasEntered) await this.core.leave();
  }

  /** Hands on what has come for anybody. */
  #collect(): void {
    for (const part of this.#native.takeParts()) {
      const waiting = this.#waiting.get(part.request);
      if (!part.more) this.#forget(part.request);
      if (waiting) this.#deliver(waiting, part);
    }
    const alarm = this.#native.takeAlarm();
    if (alarm === null) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tick(), Math.min(alarm, MAX_TIMER_MS)).unref();
  }

  #deliver(waiting: Waiting, part: NativePart): void {
    const unread = waiting.deliver(part);
    const size = part.body?.byteLength ?? 0;
    // One piece, as the acknowledgment of a long filter, may be longer than all that may wait.
    waiting.longest = unread > size + CHUNKING ? Math.max(waiting.longest, size) : size;
    const isBehind = unread - waiting.longest > MAX_BEHIND;
    if (isBehind && !waiting.isBehind) this.#native.behind(waiting.exchange);
    waiting.isBehind = isBehind;
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
    this.#connection.drain();
  }
}
