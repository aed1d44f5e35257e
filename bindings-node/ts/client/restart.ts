import { ConnectionLost } from "../model/errors.js";
import { loggerOf } from "../model/logging.js";
import type { ClientOptions } from "../model/types/client.js";
import { isObject } from "../model/values.js";
import { type ClientWire, type Listening, notifyCallback, type Reply, type RequestOptions } from "./wire.js";

type Wire = Readonly<Record<string, unknown>>;

const ATTEMPTS = 5;
const DEADLINE_MS = 30_000;
/** Requests that only read, and so may be sent twice. */
const READS = /^(list|readResource$|getPrompt$|complete$|ping$)/;

/** The wire of a client whose server is restarted: it repeats the set-up, and requests that only read. */
export class RestartingWire {
  #wire: ClientWire;
  readonly #open: () => ClientWire;
  readonly #options: ClientOptions;
  readonly #attempts: number;
  readonly #deadlineMs: number;
  /** The tools with the hint readOnly or idempotent. */
  readonly #safeTools = new Set<unknown>();
  #reviving: Promise<void> | undefined;
  #isClosed = false;
  #roots: string | undefined;
  #logLevel: Wire | undefined;

  constructor(wire: ClientWire, open: () => ClientWire, options: ClientOptions) {
    const { retry = "safe" } = options;
    const { attempts = ATTEMPTS, deadlineMs = DEADLINE_MS } = typeof retry === "object" ? retry : {};
    this.#wire = wire;
    this.#open = open;
    this.#options = options;
    this.#attempts = retry === "never" ? 1 : attempts;
    this.#deadlineMs = deadlineMs;
  }

  get sessionId(): string | undefined {
    return this.#wire.sessionId;
  }

  async request(what: string, params: Wire, options: RequestOptions = {}): Promise<Reply> {
    const mayRepeat = READS.test(what) || (what === "callTool" && this.#safeTools.has(params["name"]));
    const reply = await this.#repeat(mayRepeat ? this.#attempts : 1, () => this.#wire.request(what, params, options));
    this.#learn(what, params, reply);
    return reply;
  }

  async subscribe(filter: Wire, mayHaveMissed: boolean): Promise<Listening> {
    return this.#repeat(this.#attempts, () => this.#wire.subscribe(filter, mayHaveMissed));
  }

  /** True if a lost connection is opened again; false after `close()`. */
  get restarts(): boolean {
    return !this.#isClosed;
  }

  async notify(method: string, params: Wire): Promise<void> {
    await this.#revive(1);
    await this.#wire.notify(method, params);
  }

  setRoots(json: string): void {
    this.#roots = json;
    if (this.#wire.isOpen || this.#isClosed) this.#wire.setRoots(json);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#wire.close();
  }

  async #repeat<T>(attempts: number, ask: () => Promise<T>): Promise<T> {
    const end = performance.now() + this.#deadlineMs;
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#revive(attempt);
        return await ask();
      } catch (error) {
        if (!(error instanceof ConnectionLost) || this.#isClosed || attempt >= attempts || performance.now() >= end) throw error;
      }
    }
  }

  /** Restarts the server if it has ended. Calls made meanwhile wait. */
  async #revive(attempt: number): Promise<void> {
    if (this.#wire.isOpen || this.#isClosed) return;
    this.#reviving ??= this.#startAnew(attempt).finally(() => (this.#reviving = undefined));
    await this.#reviving;
  }

  async #startAnew(attempt: number): Promise<void> {
    const reason = this.#wire.lost();
    await this.#wire.close();
    const wire = this.#open();
    await wire.connect();
    this.#wire = wire;
    if (this.#isClosed) return wire.close();
    if (this.#roots !== undefined) wire.setRoots(this.#roots);
    if (this.#logLevel) await wire.request("setLogLevel", this.#logLevel);
    notifyCallback(loggerOf(this.#options.logger), "onReconnect", this.#options.onReconnect, { attempt, reason });
  }

  #learn(what: string, params: Wire, { result }: Reply): void {
    if (what === "setLogLevel") this.#logLevel = params;
    if (what !== "listTools" || !Array.isArray(result)) return;
    this.#safeTools.clear();
    for (const { name, annotations: hints } of result.filter(isObject)) {
      if (isObject(hints) && (hints["readOnlyHint"] === true || hints["idempotentHint"] === true)) this.#safeTools.add(name);
    }
  }
}
