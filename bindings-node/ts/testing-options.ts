import { appendFileSync, writeFileSync } from "node:fs";

/**
 * What goes wrong on the wire, the same way each time; the handshake is spared. A request comes the second time when it
 * is answered: then its handler runs once more, or the callback that answers the server's question.
 */
export interface Faults {
  /** The same seed makes the same faults. Default: 0. */
  seed?: number | undefined;
  /** The share of messages that get lost, from 0 (default) to 1. */
  drop?: number | undefined;
  /** The share of messages that come twice, from 0 (default) to 1. */
  duplicate?: number | undefined;
  /**
   * Whether the server is served anew for every round of answers, as by another process that shares its
   * `requestStateKeys`: its lifespan is left and entered again, and handlers that waited are replayed. Only 2026-07-28 has
   * rounds. Default: false.
   */
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
