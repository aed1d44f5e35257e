import { AsyncResource } from "node:async_hooks";

import { errorOf, refusalOf, type Told } from "./client-errors.js";
import { answer, type Asked } from "./client-questions.js";
import { Cancelled, ConnectionLost } from "./errors.js";
import { stringify, toJson } from "./json.js";
import { checked, type NativeClient } from "./native.js";
import { stamped } from "./tracing.js";
import type { Change, ClientOptions, LogLevel, Meta, Progress } from "./types.js";

type Wire = Readonly<Record<string, unknown>>;

/** The number of the request that connects. */
const CONNECT = 0;
/** What comes of a request, as the second member of an entry tells it. */
const FAILED = 1;
const PROGRESS = 2;
const INPUT_REQUIRED = 3;

type Outcome = readonly [number: number, outcome: number, value: unknown, data?: unknown];
type Unasked =
  | readonly ["log", { level: LogLevel; logger?: string; data: unknown }]
  | readonly ["changed", "tools" | "resources" | "prompts"]
  | readonly ["urlDone", elicitation: string]
  | readonly ["renewed"]
  | readonly ["ask", number: number, what: Asked, params: Wire, key?: string]
  | readonly ["closed", reason: string];

/** How one request is made. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly throwOnError?: boolean | undefined;
  readonly meta?: Meta | undefined;
}

/** What came of a request. */
export interface Reply {
  readonly result: Wire;
  /** Of a tool: its structured value, out of its wrapper; an empty list where there is none. */
  readonly data: readonly unknown[];
  readonly isInputRequired: boolean;
}

/** What is to be taken from a subscription: a change, or else the end, and why. */
export interface Taken {
  readonly change?: Change;
  readonly error?: Told;
}

/** A subscription in the native half, which keeps what has come. */
export interface Listening {
  /** Undefined where there is nothing yet. */
  take(): Taken | undefined;
  /** Resolves when there is something to take. */
  ready(): Promise<unknown>;
  close(): void;
}

/** What a server said of itself. */
export interface Facts {
  readonly server: { readonly name: string; readonly version: string };
  readonly revision: string;
  readonly capabilities: Meta;
  readonly instructions?: string;
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: unknown): void;
  readonly onProgress: ((progress: Progress) => void) | undefined;
}

/** The seam to the native client: requests go in by number, outcomes and events come out in batches. */
export class ClientWire {
  readonly #native: NativeClient;
  readonly #options: ClientOptions;
  readonly #waiting = new Map<number, Waiting>();
  #next = CONNECT;
  #target = "";
  /** Why there is no connection any more. */
  #reason: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions, target: string, open: (wake: () => void) => NativeClient) {
    this.#options = options;
    this.#target = target;
    this.#native = open(() => this.#drain());
  }

  get isOpen(): boolean {
    return this.#reason === undefined;
  }

  /** Whether what was lost comes back. */
  readonly restarts = false;

  get sessionId(): string | undefined {
    return this.#native.sessionId() ?? undefined;
  }

  async connect(): Promise<Facts> {
    try {
      const reply = await new Promise<Reply>((resolve, reject) => {
        this.#waiting.set(this.#next++, { resolve, reject, onProgress: undefined });
      });
      return reply.result as unknown as Facts;
    } catch (error) {
      this.#reason ??= "the connection failed";
      void this.close();
      throw error;
    }
  }

  request(what: string, params: Wire, options: RequestOptions = {}): Promise<Reply> {
    const { signal } = options;
    if (signal?.aborted) return Promise.reject(aborted(what, signal));
    if (this.#reason !== undefined) return Promise.reject(this.#lost(this.#reason));
    const number = this.#next++;
    const onProgress = this.#progressOf(options);
    const json = toJson(params, `${what}()`);
    checked(`${what}()`, () => this.#native.request(number, what, json, optionsJson(options, onProgress !== undefined)));
    const reply = new Promise<Reply>((resolve, reject) => this.#waiting.set(number, { resolve, reject, onProgress }));
    return signal ? this.#abortable(number, what, signal, reply) : reply;
  }

  /** Subscribes to what the filter names, as on the wire. */
  async subscribe(filter: Wire, mayHaveMissed: boolean): Promise<Listening> {
    if (this.#reason !== undefined) throw this.#lost(this.#reason);
    const json = toJson(filter, "subscribe()");
    const number = await this.#outcome((it) => this.#native.subscribe(it, json, mayHaveMissed));
    return {
      take: () => {
        const taken = this.#native.takeChange(number);
        return taken === null ? undefined : (JSON.parse(taken) as Taken);
      },
      ready: () => this.#outcome((it) => this.#native.awaitChange(it, number)),
      close: () => this.#native.unsubscribe(number),
    };
  }

  /** Waits for what was started under a new number. */
  async #outcome(start: (number: number) => void): Promise<number> {
    const number = this.#next++;
    checked("subscribe()", () => start(number));
    await new Promise<Reply>((resolve, reject) => this.#waiting.set(number, { resolve, reject, onProgress: undefined }));
    return number;
  }

  async notify(method: string, params: Wire): Promise<void> {
    if (this.#reason !== undefined) throw this.#lost(this.#reason);
    checked(`notify(${JSON.stringify(method)})`, () => this.#native.notify(method, toJson(params, "the params")));
  }

  setRoots(json: string): void {
    if (this.#reason !== undefined) throw this.#lost(this.#reason);
    const refused = checked("setRoots()", () => this.#native.setRoots(json));
    if (refused != null) throw errorOf(JSON.parse(refused) as Told);
  }

  /** Resolves when the server's process has ended too. */
  close(): Promise<void> {
    this.#reason ??= "the client is closed";
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const number = this.#next++;
    await new Promise<Reply>((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, onProgress: undefined });
      this.#native.close(number);
    });
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of left) reject(this.#lost(this.#reason ?? ""));
    this.#native.release();
  }

  #abortable(number: number, what: string, signal: AbortSignal, reply: Promise<Reply>): Promise<Reply> {
    const abort = (): void => {
      const waiting = this.#waiting.get(number);
      this.#waiting.delete(number);
      this.#native.cancel(number);
      waiting?.reject(aborted(what, signal));
      this.#closeWhenLost();
    };
    signal.addEventListener("abort", abort, { once: true });
    return reply.finally(() => signal.removeEventListener("abort", abort));
  }

  #progressOf({ onProgress }: RequestOptions): Waiting["onProgress"] {
    const everywhere = this.#options.onProgress;
    if (!onProgress) return everywhere;
    // What wakes JavaScript belongs to the client: the call's own context has to be kept.
    const here = AsyncResource.bind(onProgress);
    if (!everywhere) return here;
    return (progress) => {
      tell("onProgress", everywhere, progress);
      here(progress);
    };
  }

  /** Why there is no connection any more. */
  lost(): ConnectionLost {
    return this.#lost(this.#reason ?? "the client is connected");
  }

  #lost(reason: string): ConnectionLost {
    const hint = "connect() makes a new client";
    return new ConnectionLost(`${this.#target}: ${reason}`, { target: this.#target, phase: "call", hint });
  }

  #drain(): void {
    const batch = this.#native.takeBatch();
    if (batch === null) return;
    for (const entry of JSON.parse(batch) as (Outcome | Unasked)[]) {
      if (typeof entry[0] === "number") this.#settle(entry as Outcome);
      else this.#hear(entry as Unasked);
    }
    this.#closeWhenLost();
  }

  /** Every call first hears what it died of; then nothing keeps the process any more. */
  #closeWhenLost(): void {
    if (this.#reason !== undefined && this.#waiting.size === 0) void this.close();
  }

  #settle([number, outcome, value, ...data]: Outcome): void {
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    if (outcome === PROGRESS) return tell("onProgress", waiting.onProgress, progressOf(value as Wire));
    this.#waiting.delete(number);
    if (outcome === FAILED) waiting.reject(errorOf(value as Told));
    else waiting.resolve({ result: value as Wire, data, isInputRequired: outcome === INPUT_REQUIRED });
  }

  #hear(entry: Unasked): void {
    switch (entry[0]) {
      case "log": {
        const { level, logger, data } = entry[1];
        return tell("onLog", this.#options.onLog, { level, logger, data });
      }
      case "changed":
        return tell("onListChanged", this.#options.onListChanged, entry[1]);
      case "urlDone":
        return tell("onUrlDone", this.#options.onUrlDone, entry[1]);
      case "renewed": {
        const why = `${this.#target}: the server had forgotten the session, and another was begun`;
        const reason = new ConnectionLost(why, { target: this.#target, phase: "call" });
        return tell("onReconnect", this.#options.onReconnect, { attempt: 1, reason });
      }
      case "ask":
        return void this.#answer(entry[1], entry[2], entry[3], entry[4]);
      case "closed":
        this.#reason ??= entry[1];
        return;
    }
  }

  async #answer(number: number, what: Asked, params: Wire, key: string | undefined): Promise<void> {
    try {
      this.#native.answer(number, await answer(this.#options, what, params, key));
    } catch (error) {
      this.#native.answer(number, null, stringify(refusalOf(error, CALLBACKS[what])));
    }
  }
}

const CALLBACKS: Readonly<Record<Asked, string>> = { elicit: "onElicit", sample: "onSample", roots: "roots()" };

/** A callback that throws must not keep others from hearing what they wait for. */
export function tell<T>(name: string, callback: ((value: T) => unknown) | undefined, value: T): void {
  const failed = (error: unknown): void => console.error(`${name} failed:`, error);
  try {
    const given = callback?.(value);
    if (given instanceof Promise) given.catch(failed);
  } catch (error) {
    failed(error);
  }
}

function progressOf({ progress, total, message }: Wire): Progress {
  return { progress: progress as number, total: total as number | undefined, message: message as string | undefined };
}

function optionsJson({ timeoutMs, throwOnError, ...given }: RequestOptions, wantsProgress: boolean): string | null {
  const meta = stamped(given.meta);
  if (timeoutMs === undefined && throwOnError === undefined && meta === undefined && !wantsProgress) return null;
  return toJson({ timeoutMs: milliseconds("timeoutMs", timeoutMs), throwOnError, meta, wantsProgress }, "the call's options");
}

/** For ever is -1 in the native half. */
export function milliseconds(name: string, given: number | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== "number" || !(given > 0)) throw new TypeError(`${name} must be milliseconds above 0; Infinity waits for ever`);
  return given === Infinity ? -1 : given;
}

function aborted(what: string, signal: AbortSignal): Cancelled {
  const reason: unknown = signal.reason;
  const why = reason instanceof Error ? reason.message : String(reason);
  const error = new Cancelled(`${what} was cancelled: ${why}`, { cause: reason, phase: "call" });
  // As for every aborted operation of the platform, whatever the signal's reason is.
  return Object.defineProperty(error, "name", { value: "AbortError", writable: true, configurable: true });
}
