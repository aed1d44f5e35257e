import { createRequire } from "node:module";

import { native, type NativeWatchdog, type NativeWorkQueue } from "../native.js";

/** The time for the rest of the program to finish, after the server has ended. */
const LINGER_MS = 500;

const NUMBERS: Readonly<Record<string, number>> = { SIGINT: 2, SIGTERM: 15 };

/** The servers that this process runs. */
const running = new Set<(name: string) => void>();
let isListening = false;

/**
 * Listens to signals until the process ends: the last listener that leaves makes Node take the signal from the native
 * watchdog as well, for good. While no server runs, a signal has the effect that it has without this listener.
 */
function listen(): void {
  if (isListening) return;
  isListening = true;
  for (const name of Object.keys(NUMBERS)) process.on(name, onSignal);
}

function onSignal(name: string): void {
  for (const handle of running) handle(name);
  if (running.size > 0 || process.listenerCount(name) > 1) return;
  process.off(name, onSignal);
  process.kill(process.pid, name);
}

/**
 * Signal handlers: the first SIGINT or SIGTERM starts an orderly shutdown, the second exits at once. The native watchdog
 * receives them as well, also while a handler blocks the event loop, and ends the process if handlers keep it from ending.
 */
export class Signals {
  readonly came: Promise<void>;
  #stop!: () => void;
  #count = 0;
  readonly #watchdog: NativeWatchdog | undefined;

  constructor() {
    this.came = new Promise((resolve) => (this.#stop = resolve));
    listen();
    running.add(this.#onSignal);
    // A worker thread gets no signals, and its process belongs to the main thread.
    if (isMainThread()) this.#watchdog = new (native().NativeWatchdog)();
  }

  /** Ends the process if handlers keep it from ending, from the end of the input or the first signal on. */
  watch(queue: NativeWorkQueue, graceMs: number): void {
    this.#watchdog?.watch(queue, graceMs);
  }

  /** Reports that no handler runs any more. */
  handlersEnded(): void {
    this.#watchdog?.handlersEnded();
  }

  release(): void {
    // The handlers stay after a first signal, so that a second one exits at once.
    if (this.#count > 0) return;
    running.delete(this.#onSignal);
    this.#watchdog?.close();
  }

  readonly #onSignal = (name: string): void => {
    if (++this.#count > 1) process.exit(128 + (NUMBERS[name] ?? 0));
    this.#stop();
  };
}

function isMainThread(): boolean {
  const threads = createRequire(import.meta.url)("node:worker_threads") as typeof import("node:worker_threads");
  return threads.isMainThread;
}

/** Exits the process soon, even if timers or threads would keep it alive. */
export function endProcess(): void {
  setTimeout(() => process.exit(), LINGER_MS).unref();
}
