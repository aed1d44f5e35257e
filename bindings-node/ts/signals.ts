/** What the program may still do after it has served before the process ends. */
const LINGER_MS = 500;

const NUMBERS: Readonly<Record<string, number>> = { SIGINT: 2, SIGTERM: 15 };

/** The first SIGINT or SIGTERM asks for an orderly end, the second ends at once. */
export class Signals {
  readonly came: Promise<void>;
  #stop!: () => void;
  #count = 0;

  constructor() {
    this.came = new Promise((resolve) => (this.#stop = resolve));
    for (const name of Object.keys(NUMBERS)) process.on(name, this.#hear);
  }

  release(): void {
    // A second Ctrl-C counts until the process is gone.
    if (this.#count > 0) return;
    for (const name of Object.keys(NUMBERS)) process.off(name, this.#hear);
  }

  readonly #hear = (name: string): void => {
    if (++this.#count > 1) process.exit(128 + (NUMBERS[name] ?? 0));
    this.#stop();
  };
}

/** Timers and threads that live on must not keep a process that serves nobody any more. */
export function endProcess(): void {
  setTimeout(() => process.exit(), LINGER_MS).unref();
}
