import { appendFileSync, writeFileSync } from "node:fs";

import type { Transport } from "./types.js";

/** What goes wrong on the wire, once the client is connected. Each is a share of the messages, from 0 to 1. */
export interface Faults {
  /** The same seed makes the same faults. Default: 0. */
  seed?: number | undefined;
  drop?: number | undefined;
  duplicate?: number | undefined;
  restartBetweenRounds?: boolean | undefined;
}

/** Writes what is said into a file: `> …` what the client sends, `< …` what the server does. */
export class Recorder {
  readonly #path: string | URL;
  #isBegun = false;

  constructor(path: string | URL) {
    if (typeof path !== "string" && !(path instanceof URL)) throw new TypeError("new Recorder(path): the path must be a text or a URL");
    this.#path = path;
  }

  /** @internal */
  record(mark: ">" | "<", message: string): void {
    const line = `${mark} ${message}\n`;
    if (this.#isBegun) appendFileSync(this.#path, line);
    else writeFileSync(this.#path, line);
    this.#isBegun = true;
  }
}

/** The two ends of a wire that is listened to, and that loses and repeats messages. */
export function tapped(faults: Faults = {}, recorder?: Recorder): [client: Transport, server: Transport] {
  const lane = (mark: ">" | "<", handshake: number): Lane => {
    // In each direction by itself: how the two interleave is up to chance.
    const random = randomOf((faults.seed ?? 0) * 2 + (mark === ">" ? 0 : 1));
    let seen = 0;
    const copies = (): number => {
      if (++seen <= handshake) return 1;
      if (random() < (faults.drop ?? 0)) return 0;
      return random() < (faults.duplicate ?? 0) ? 2 : 1;
    };
    return new Lane((message) => recorder?.record(mark, message), copies);
  };
  // `initialize` and `notifications/initialized` there, one answer back; a modern handshake is shorter.
  const toServer = lane(">", 2);
  const toClient = lane("<", 1);
  const close = async (): Promise<void> => {
    toServer.end();
    toClient.end();
  };
  return [
    { receive: () => toClient.receive(), send: async (message) => toServer.send(message), close },
    { receive: () => toServer.receive(), send: async (message) => toClient.send(message), close },
  ];
}

/** Messages in one direction. */
class Lane {
  readonly #waiting: string[] = [];
  #wake: (() => void) | undefined;
  #isEnded = false;

  constructor(
    private readonly hear: (message: string) => void,
    private readonly copies: () => number,
  ) {}

  send(message: string): void {
    if (this.#isEnded) return;
    this.hear(message);
    for (let copies = this.copies(); copies > 0; copies--) this.#waiting.push(message);
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

/** Mulberry32: small, and the same everywhere. */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
