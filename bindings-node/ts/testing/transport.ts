import { type InMemoryTransport, nameInMemory, type TestMode } from "../model/in-memory.js";
import { keepAliveUntil } from "../model/keep-alive.js";
import type { Transport } from "../model/types/server.js";
import { isObject } from "../model/values.js";
import type { ServerCore } from "../server/core.js";
import { serveTransport } from "../serving/memory.js";
import type { Faults, Recorder } from "./options.js";

const HANDSHAKE: readonly unknown[] = ["initialize", "notifications/initialized", "server/discover"];
/** The time for calls in flight to finish when the server is restarted. */
const GRACE_MS = 3_000;

/** Returns a client's transport that records, loses and repeats messages, and restarts its server. */
export function tapped(core: ServerCore, testMode: TestMode, faults: Faults = {}, recorder?: Recorder): Transport {
  for (const name of ["drop", "duplicate"] as const) {
    const share = faults[name] ?? 0;
    if (!(share >= 0 && share <= 1)) throw new TypeError(`connect(): faults.${name} must be a share from 0 to 1, not ${String(share)}`);
  }
  return new Tap(core, testMode, faults, recorder);
}

class Tap implements Transport, InMemoryTransport {
  readonly standsFor: string;
  readonly #inbox = new MessageQueue();
  readonly #toServer: (id: unknown) => number;
  readonly #toClient: (id: unknown) => number;
  /** The ids of requests of the handshake. */
  readonly #opening = new Set<unknown>();
  /** Copies of requests, sent after the response, because a request with an id in use is rejected. */
  readonly #late = new Map<unknown, string>();
  /** Copies of the server's requests. */
  readonly #lateQuestions = new Map<unknown, string>();
  #serving: Promise<Serving> | undefined;

  constructor(
    private readonly core: ServerCore,
    private readonly testMode: TestMode,
    private readonly faults: Faults,
    private readonly recorder: Recorder | undefined,
  ) {
    this.standsFor = nameInMemory(core.server.name);
    // Each direction has its own random numbers, because the order between the two is not fixed.
    const seed = (faults.seed ?? 0) * 2;
    [this.#toServer, this.#toClient] = [copiesOf(faults, seed), copiesOf(faults, seed + 1)];
  }

  readonly onSend = (listener: () => void): void => void this.core.sendListeners.add(listener);

  async send(message: string): Promise<void> {
    const frame = parse(message);
    const isRound = isObject(frame["params"]) && "requestState" in frame["params"];
    const serving = await this.#served(isRound && this.faults.restartBetweenRounds === true);
    this.recorder?.record(">", message);
    if (HANDSHAKE.includes(frame["method"])) {
      this.#opening.add(frame["id"]);
      return serving.receive(message);
    }
    const copies = this.#toServer(frame["id"]);
    const isRequest = "method" in frame && "id" in frame;
    if (copies > 0) serving.receive(message);
    if (copies > 1 && isRequest) this.#late.set(frame["id"], message);
    else if (copies > 1) serving.receive(message);
    const question = "method" in frame ? undefined : this.#lateQuestions.get(frame["id"]);
    if (question !== undefined) {
      this.#lateQuestions.delete(frame["id"]);
      this.#inbox.send(question);
    }
  }

  receive(): Promise<string | undefined> {
    this.#serving ??= this.#start();
    return this.#inbox.receive();
  }

  async close(): Promise<void> {
    this.#inbox.end();
    (await this.#serving)?.close();
  }

  async #onSent(message: string): Promise<void> {
    const frame = parse(message);
    const id = "method" in frame ? undefined : frame["id"];
    const late = this.#late.get(id);
    if (late !== undefined) {
      this.#late.delete(id);
      (await this.#served(false)).receive(late);
    }
    this.recorder?.record("<", message);
    const copies = id !== undefined && this.#opening.has(id) ? 1 : this.#toClient(frame["id"]);
    const isQuestion = "method" in frame && "id" in frame;
    if (isQuestion && copies > 1) this.#lateQuestions.set(frame["id"], message);
    for (let copy = 0; copy < (isQuestion ? Math.min(copies, 1) : copies); copy++) this.#inbox.send(message);
  }

  #served(isRestart: boolean): Promise<Serving> {
    const before = this.#serving;
    if (before === undefined) this.#serving = this.#start();
    else if (isRestart) this.#serving = before.then((serving) => serving.end()).then(() => this.#start());
    return this.#serving ?? this.#start();
  }

  async #start(): Promise<Serving> {
    return new Serving(this.core, this.testMode, (message) => this.#onSent(message), () => this.#inbox.end());
  }
}

/** One run of the server, as by one process. */
class Serving {
  readonly #incoming = new MessageQueue();
  readonly #served: Promise<void>;
  #isEnding = false;

  constructor(core: ServerCore, testMode: TestMode, send: (message: string) => Promise<void>, lost: () => void) {
    const wire: Transport = {
      receive: () => this.#incoming.receive(),
      send,
      close: async () => {
        if (!this.#isEnding) lost();
      },
    };
    // The client learns that the transport has ended; the error must only not be an unhandled rejection.
    this.#served = serveTransport(core, wire, GRACE_MS, testMode).catch(() => undefined);
  }

  receive(message: string): void {
    this.#incoming.send(message);
  }

  /** Waits for calls in flight; suspended handlers are discarded. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.close();
    await this.#served;
  }

  close(): void {
    // The lifespan is left even if the client no longer waits for that.
    void keepAliveUntil(this.#served);
    this.#incoming.end();
  }
}

/** A queue of messages in one direction. */
class MessageQueue {
  readonly #waiting: string[] = [];
  #wake: (() => void) | undefined;
  #isEnded = false;

  send(message: string): void {
    if (this.#isEnded) return;
    this.#waiting.push(message);
    this.#wake?.();
  }

  async receive(): Promise<string | undefined> {
    while (this.#waiting.length === 0 && !this.#isEnded) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#waiting.shift();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }
}

function parse(message: string): Readonly<Record<string, unknown>> {
  const frame: unknown = JSON.parse(message);
  return isObject(frame) ? frame : {};
}

/** Returns how often each message arrives. It depends on the message's id, if it has one, because the order of messages is not fixed. */
function copiesOf(faults: Faults, seed: number): (id: unknown) => number {
  const others = randomOf(seed);
  return (id) => {
    const random = id === undefined ? others : randomOf(hashOf(`${seed} ${JSON.stringify(id)}`));
    if (random() < (faults.drop ?? 0)) return 0;
    return random() < (faults.duplicate ?? 0) ? 2 : 1;
  };
}

/** Hashes a string with FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Returns a random number generator, Mulberry32, with the same numbers on every machine. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
