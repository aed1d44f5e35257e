import { appendFileSync, writeFileSync } from "node:fs";

/**
 * Faults of a test's transport, the same in each run; the handshake has none. A duplicated request arrives again after its
 * response, so that its handler, or the callback that answers the server's question, runs twice.
 */
export interface Faults {
  /** The seed of the random faults. Default: 0. */
  seed?: number | undefined;
  /** The share of messages that are lost, from 0 (default) to 1. */
  drop?: number | undefined;
  /** The share of messages that arrive twice, from 0 (default) to 1. */
  duplicate?: number | undefined;
  /**
   * Restarts the server for every round of answers, as if another process with the same `requestStateKeys` received them:
   * its lifespan is left and entered again, and suspended handlers are replayed. Only 2026-07-28 has rounds. Default: false.
   */
  restartBetweenRounds?: boolean | undefined;
}

/** Writes a transcript into a file: `> …` for messages of the client, `< …` for those of the server. */
export class Recorder {
  readonly #path: string | URL;
  #isBegun = false;

  constructor(path: string | URL) {
    if (typeof path !== "string" && !(path instanceof URL)) throw new TypeError("new Recorder(path): the path must be a string or a URL");
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
