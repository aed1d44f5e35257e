import { AsyncResource } from "node:async_hooks";

import { parseMarked } from "../model/big-integers.js";
import { stringify } from "../model/stringify.js";
import { checked, type NativeClient } from "../native.js";
import { Cancelled, ConnectionLost } from "../model/errors.js";
import { toJson } from "../model/json.js";
import { KeepAlive } from "../model/keep-alive.js";
import { loggerOf } from "../model/logging.js";
import type { Credentials } from "../model/sign-in.js";
import { withTraceContext } from "../model/tracing.js";
import type { CallOptions, Change, ClientOptions, ClientRequest, Progress } from "../model/types/client.js";
import type { LogLevel } from "../model/types/components.js";
import type { Meta } from "../model/types/content.js";
import type { Logger } from "../model/types/logging.js";
import { errorOf, refusalOf, type ReportedError } from "./errors.js";
import { contextOf, keepThrown, runMiddleware, takeThrown } from "./middleware.js";
import { answerByFetch } from "./fetch.js";
import { answer, type Asked } from "./questions.js";
import { withoutLimit } from "./settings.js";

type Wire = Readonly<Record<string, unknown>>;

/** The number of the request that connects the client. */
const CONNECT = 0;
/** Outcomes of a request: the second member of a batch's entry. */
const FAILED = 1;
const PROGRESS = 2;
const INPUT_REQUIRED = 3;

/** Milliseconds of callbacks, after which the event loop continues. */
const TURN = 20;

/**
 * `data` is there for a tool's result with data: false if that is the structured content, true if the structured content is an
 * object around it, `[data]` if the text stands for it.
 */
type Outcome = readonly [number: number, outcome: number, value: unknown, data?: boolean | readonly [unknown]];
type ServerEvent =
  | readonly ["log", { level: LogLevel; logger?: string; data: unknown }]
  | readonly ["changed", "tools" | "resources" | "prompts"]
  | readonly ["urlDone", elicitation: string]
  | readonly ["reconnected", { attempt: number; reason: ReportedError; facts: Facts }]
  | readonly ["ask", number: number, what: Asked | "auth", params: Wire, key?: string]
  | readonly ["middleware", run: number, ticket: number | null, method: string, params: Wire]
  | readonly ["fetch", connection: number, origin: string]
  | readonly ["closed", reason: string];

/** The options of a request that the native half or this class uses. */
type SentOptions = Omit<CallOptions, "output">;

/** The result of a request. */
export interface Reply {
  readonly result: Wire;
  /** A tool's data; an empty list if that is the text as it is. */
  readonly data: readonly unknown[];
  readonly isInputRequired: boolean;
}

/** The next item of a subscription: a change, or its end with the reason. */
export interface Taken<C = Change> {
  readonly change?: C;
  readonly error?: ReportedError;
}

/** A subscription in the native half, which queues changes. */
export interface Listening<C = Change> {
  /** Takes the next item; undefined if the queue is empty. */
  take(): Taken<C> | undefined;
  /** Resolves when there is an item to take. */
  ready(): Promise<unknown>;
  close(): void;
}

/** The server's description of itself. */
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

/** The JavaScript side of the native client: requests are numbered; outcomes and events come back in batches. */
export class ClientWire {
  readonly #native: NativeClient;
  readonly #options: ClientOptions;
  readonly #credentials: Credentials | undefined;
  readonly #logger: Logger;
  readonly #waiting = new Map<number, Waiting>();
  #next = CONNECT;
  #target = "";
  /** The reason that the connection is closed; undefined while it is open. */
  #reason: string | undefined;
  #facts: Facts | undefined;
  #closing: Promise<void> | undefined;
  readonly #alive = new KeepAlive();
  /** The async contexts of calls with middleware, and the requests that it sends. */
  readonly #callers = new Map<number, { readonly context: AsyncResource; readonly sent: Set<number> }>();

  /** Messages that answer no request are received by callbacks. */
  readonly #hasCallbacks: boolean;
  readonly #isInMemory: boolean;

  /**
   * With `isInMemory` the server is in this process. The connection then keeps the process alive only while a request or a
   * subscription is open, and while a message to a callback may be under way.
   */
  constructor(options: ClientOptions, credentials: Credentials | undefined, target: string, isInMemory: boolean, open: (wake: () => void) => NativeClient) {
    this.#options = options;
    this.#credentials = credentials;
    this.#logger = loggerOf(options.logger);
    this.#target = target;
    this.#native = open(() => this.#drain());
    this.#hasCallbacks = options.roots !== undefined || Object.values(options).some((option) => typeof option === "function");
    this.#isInMemory = isInMemory;
    if (!isInMemory) this.#alive.hold();
  }

  /** The server's description of itself at the last connection. */
  get facts(): Facts {
    if (this.#facts === undefined) throw new Error("the client is not connected");
    return this.#facts;
  }

  /** The server's name in errors. */
  get target(): string {
    return this.#target;
  }

  get sessionId(): string | undefined {
    return this.#native.sessionId() ?? undefined;
  }

  /** True once the server was reached. */
  get isConnected(): boolean {
    return this.#facts !== undefined;
  }

  get native(): NativeClient {
    return this.#native;
  }

  /** Waits for the first attempt to connect. In a group further ones follow a failed one, so that the client stays open. */
  async connect(isGrouped: boolean): Promise<void> {
    try {
      const reply = await new Promise<Reply>((resolve, reject) => {
        this.#expect(this.#next++, { resolve, reject, onProgress: undefined });
      });
      this.#facts = reply.result as unknown as Facts;
    } catch (error) {
      if (!isGrouped) {
        this.#reason ??= "the connection failed";
        void this.close();
      }
      throw error;
    }
  }

  request(what: string, params: Wire, options: SentOptions = {}): Promise<Reply> {
    const { signal } = options;
    if (signal?.aborted) return Promise.reject(aborted(what, signal));
    if (this.#reason !== undefined) return Promise.reject(this.#lost(this.#reason));
    const number = this.#next++;
    const onProgress = this.#progressOf(options);
    const json = toJson(params, `${what}()`);
    checked(`${what}()`, () => this.#native.request(number, what, json, optionsJson(options), onProgress !== undefined));
    if (this.#options.middleware?.length) this.#callers.set(number, { context: new AsyncResource("GudgeonCall"), sent: new Set() });
    const reply = new Promise<Reply>((resolve, reject) => this.#expect(number, { resolve, reject, onProgress }));
    return signal ? this.#abortable(number, what, signal, reply) : reply;
  }

  /** Subscribes to the changes that the filter names, in the wire's form. */
  async subscribe(filter: Wire): Promise<Listening> {
    if (this.#reason !== undefined) throw this.#lost(this.#reason);
    const json = toJson(filter, "subscribe()");
    const number = await this.#outcome((operation) => this.#native.subscribe(operation, json));
    return {
      take: () => {
        const taken = this.#native.takeChange(number);
        return taken === null ? undefined : (JSON.parse(taken) as Taken);
      },
      ready: () => this.#outcome((operation) => this.#native.awaitChange(operation, number)),
      close: () => this.#native.unsubscribe(number),
    };
  }

  /** Starts an operation under a new number and waits for its outcome. */
  async #outcome(start: (number: number) => void): Promise<number> {
    const number = this.#next++;
    checked("subscribe()", () => start(number));
    await new Promise<Reply>((resolve, reject) => this.#expect(number, { resolve, reject, onProgress: undefined }));
    return number;
  }

  async notify(method: string, params: Wire): Promise<void> {
    if (this.#reason !== undefined) throw this.#lost(this.#reason);
    checked(`notify(${JSON.stringify(method)})`, () => this.#native.notify(method, toJson(params, "the params")));
    this.awaitDelivery();
  }

  setRoots(json: string): void {
    if (this.#reason !== undefined) throw this.#lost(this.#reason);
    const refused = checked("setRoots()", () => this.#native.setRoots(json));
    if (refused != null) throw errorOf(JSON.parse(refused) as ReportedError);
    this.awaitDelivery();
  }

  /** Resolves when the server's process has ended too. */
  close(): Promise<void> {
    this.#reason ??= "the client is closed";
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const number = this.#next++;
    await new Promise<Reply>((resolve, reject) => {
      this.#expect(number, { resolve, reject, onProgress: undefined });
      this.#native.close(number);
    });
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of left) reject(this.#lost(this.#reason ?? ""));
    this.#native.release();
    this.#alive.end();
  }

  #expect(number: number, waiting: Waiting): void {
    this.#waiting.set(number, waiting);
    this.#alive.hold();
  }

  /** The request of this number, which waits no more. */
  #take(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number);
    if (this.#waiting.delete(number)) this.#alive.release();
    this.#callers.delete(number);
    return waiting;
  }

  /** Keeps the process alive for a moment, since a message to a callback may be under way between this process's threads. */
  awaitDelivery(): void {
    if (this.#isInMemory && this.#hasCallbacks && this.#closing === undefined) this.#alive.awaitDelivery();
  }

  #abortable(number: number, what: string, signal: AbortSignal, reply: Promise<Reply>): Promise<Reply> {
    const abort = (): void => {
      for (const request of [number, ...(this.#callers.get(number)?.sent ?? [])]) {
        const waiting = this.#take(request);
        this.#native.cancel(request);
        waiting?.reject(aborted(what, signal));
      }
      this.#closeWhenLost();
    };
    signal.addEventListener("abort", abort, { once: true });
    return reply.finally(() => signal.removeEventListener("abort", abort));
  }

  #progressOf({ onProgress }: SentOptions): Waiting["onProgress"] {
    const everywhere = this.#options.onProgress;
    if (!onProgress) return everywhere;
    // The wake-up runs in the async context of the client; the callback needs that of its call.
    const here = AsyncResource.bind(onProgress);
    if (!everywhere) return here;
    return (progress) => {
      notifyCallback(this.#logger, "onProgress", everywhere, progress);
      here(progress);
    };
  }

  #lost(reason: string): ConnectionLost {
    const hint = "call Client.connect() for a new client";
    return new ConnectionLost(`${this.#target}: ${reason}`, { target: this.#target, phase: "call", hint });
  }

  /** Delivers what has arrived, for a while, so that slow callbacks take turns with the rest of the event loop. */
  #drain(): void {
    const end = performance.now() + TURN;
    for (let batch = this.#native.takeBatch(); batch !== null; batch = this.#native.takeBatch()) {
      for (const entry of parseMarked(batch) as (Outcome | ServerEvent)[]) {
        if (typeof entry[0] === "number") this.#settle(entry as Outcome);
        else this.#onEvent(entry as ServerEvent);
      }
      if (performance.now() > end) {
        setImmediate(() => this.#drain());
        break;
      }
    }
    this.awaitDelivery();
    this.#closeWhenLost();
  }

  /** Closes the client once every call has received its error, so that the process can end. */
  #closeWhenLost(): void {
    if (this.#reason !== undefined && this.#waiting.size === 0) void this.close();
  }

  #settle([number, outcome, value, data]: Outcome): void {
    if (outcome === PROGRESS) return notifyCallback(this.#logger, "onProgress", this.#waiting.get(number)?.onProgress, progressOf(value as Wire));
    const waiting = this.#take(number);
    if (outcome === FAILED) waiting?.reject(errorOf(value as ReportedError));
    else waiting?.resolve({ result: value as Wire, data: dataOf(value as Wire, data), isInputRequired: outcome === INPUT_REQUIRED });
  }

  #onEvent(entry: ServerEvent): void {
    switch (entry[0]) {
      case "log": {
        const { level, logger, data } = entry[1];
        return notifyCallback(this.#logger, "onLog", this.#options.onLog, { level, logger, data });
      }
      case "changed":
        return notifyCallback(this.#logger, "onListChanged", this.#options.onListChanged, entry[1]);
      case "urlDone":
        return notifyCallback(this.#logger, "onUrlDone", this.#options.onUrlDone, entry[1]);
      case "reconnected": {
        const { attempt, reason, facts } = entry[1];
        this.#facts = facts;
        return notifyCallback(this.#logger, "onReconnect", this.#options.onReconnect, { attempt, reason: errorOf(reason) });
      }
      case "ask":
        return void this.#answer(entry[1], entry[2], entry[3], entry[4]);
      case "middleware": {
        const [, run, ticket, method, params] = entry;
        const caller = ticket === null ? undefined : this.#callers.get(ticket);
        const context = ticket === null ? undefined : (caller?.context ?? contextOf(ticket));
        const start = (): void => void this.#runMiddleware(run, { method, params }, caller?.sent);
        return context ? context.runInAsyncScope(start) : start();
      }
      case "fetch": {
        const [, connection, origin] = entry;
        void answerByFetch(connection, origin, this.#options.fetch as NonNullable<ClientOptions["fetch"]>, this.#logger);
        return;
      }
      case "closed":
        this.#reason ??= entry[1];
        return;
    }
  }

  async #runMiddleware(run: number, request: ClientRequest, sent: Set<number> | undefined): Promise<void> {
    const send = async (params: Wire): Promise<unknown> => {
      if (this.#reason !== undefined) throw this.#lost(this.#reason);
      const json = toJson(params, "the params of middleware");
      const number = this.#next++;
      sent?.add(number);
      const reply = new Promise<Reply>((resolve, reject) => this.#expect(number, { resolve, reject, onProgress: undefined }));
      this.#native.middlewareNext(number, run, json);
      return (await reply).result;
    };
    try {
      const result = await runMiddleware(this.#options.middleware ?? [], request, send);
      this.#native.middlewareFinish(run, toJson(result, "the result of middleware"));
    } catch (error) {
      const number = keepThrown(error);
      if (!this.#native.middlewareFail(run, number, String(error))) takeThrown(number);
    }
  }

  /** Answers a question: of the server, or of this client itself, which wants help to sign in. */
  async #answer(number: number, what: Asked | "auth", params: Wire, key: string | undefined): Promise<void> {
    try {
      const given =
        what === "auth" ? JSON.stringify(await this.#credentials?.answer(params as never)) : await answer(this.#options, what, params, key);
      const wrong = this.#native.answer(number, given);
      if (wrong != null) this.#logger.error(`${what} failed:`, new TypeError(wrong));
    } catch (error) {
      this.#native.refuse(number, stringify(refusalOf(error, what, this.#logger)) ?? "");
    }
  }
}

/** Returns a tool's data; an empty list if that is the text as it is. */
function dataOf(result: Wire, data: Outcome[3]): readonly unknown[] {
  if (data === undefined) return [];
  if (typeof data !== "boolean") return data;
  const { structuredContent } = result;
  return [data ? (structuredContent as { result: unknown }).result : structuredContent];
}

/** Calls a callback; logs what it throws, so that other callbacks still run. */
export function notifyCallback<T>(logger: Logger, name: string, callback: ((value: T) => unknown) | undefined, value: T): void {
  const failed = (error: unknown): void => logger.error(`${name} failed:`, error);
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

function optionsJson({ timeoutMs, throwOnError, ...given }: SentOptions): string | null {
  const meta = withTraceContext(given.meta);
  if (timeoutMs === undefined && throwOnError === undefined && meta === undefined) return null;
  return toJson({ timeoutMs: withoutLimit(timeoutMs), throwOnError, meta }, "the call's options");
}

function aborted(what: string, signal: AbortSignal): Cancelled {
  const reason: unknown = signal.reason;
  const why = reason instanceof Error ? reason.message : String(reason);
  const error = new Cancelled(`${what} was cancelled: ${why}`, { cause: reason, phase: "call" });
  // Aborted operations of the platform have this name, whatever the signal's reason is.
  return Object.defineProperty(error, "name", { value: "AbortError", writable: true, configurable: true });
}
