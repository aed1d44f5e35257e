import { type InMemoryTransport, nameInMemory, type TestMode } from "../model/in-memory.js";
import { keepAliveUntil } from "../model/keep-alive.js";
import type { Transport } from "../model/types/server.js";
import { checked, native, type NativeFaultyLink } from "../native.js";
import type { ServerCore } from "../server/core.js";
import { serveTransport } from "../serving/memory.js";
import type { Faults, Recorder } from "./options.js";

/** The time for calls in flight to finish when the server is restarted. */
const GRACE_MS = 3_000;

/** Returns a client's transport that records, loses and repeats messages, and restarts its server. */
export function tapped(core: ServerCore, testMode: TestMode, faults: Faults = {}, recorder?: Recorder): Transport {
  const { seed = 0, drop = 0, duplicate = 0, restartBetweenRounds = false } = faults;
  const link = checked("connect(): faults", () => new (native().NativeFaultyLink)(seed, drop, duplicate, restartBetweenRounds));
  return new Tap(core, testMode, link, recorder);
}

class Tap implements Transport, InMemoryTransport {
  readonly standsFor: string;
  readonly #inbox = new MessageQueue();
  #serving: Promise<Serving> | undefined;

  constructor(
    private readonly core: ServerCore,
    private readonly testMode: TestMode,
    private readonly link: NativeFaultyLink,
    private readonly recorder: Recorder | undefined,
  ) {
    this.standsFor = nameInMemory(core.server.name);
  }

  readonly onSend = (listener: () => void): void => void this.core.sendListeners.add(listener);

  async send(message: string): Promise<void> {
    const { restartsServer, toServer, toClient } = this.link.sentByClient(message);
    const serving = await this.#served(restartsServer);
    this.recorder?.record(">", message);
    for (const copy of toServer) serving.receive(copy);
    for (const copy of toClient) this.#inbox.send(copy);
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
    const { toServer, toClient } = this.link.sentByServer(message);
    for (const copy of toServer) (await this.#served(false)).receive(copy);
    this.recorder?.record("<", message);
    for (const copy of toClient) this.#inbox.send(copy);
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
