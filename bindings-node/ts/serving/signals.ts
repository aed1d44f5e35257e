/** The time for the rest of the program to finish, after the server has ended. */
const LINGER_MS = 500;

const NUMBERS: Readonly<Record<string, number>> = { SIGINT: 2, SIGTERM: 15 };

/** Signal handlers: the first SIGINT or SIGTERM starts an orderly shutdown, the second exits at once. */
export class Signals {
  readonly came: Promise<void>;
  #stop!: () => void;
  #count = 0;

  constructor() {
    this.came = new Promise((resolve) => (this.#stop = resolve));
    for (const name of Object.keys(NUMBERS)) process.on(name, this.#onSignal);
  }

  release(): void {
    // The handlers stay after a first signal, so that a second one exits at once.
    if (this.#count > 0) return;
    for (const name of Object.keys(NUMBERS)) process.off(name, this.#onSignal);
  }

  readonly #onSignal = (name: string): void => {
    if (++this.#count > 1) process.exit(128 + (NUMBERS[name] ?? 0));
    this.#stop();
  };
}

/** Exits the process soon, even if timers or threads would keep it alive. */
export function endProcess(): void {
  setTimeout(() => process.exit(), LINGER_MS).unref();
}
