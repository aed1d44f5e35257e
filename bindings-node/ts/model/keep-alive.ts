/** As long as a timer can wait, nearly. */
const LONG_MS = 2 ** 30;

/** Keeps the process alive while it is held. */
export class KeepAlive {
  readonly #timer = setInterval(() => {}, LONG_MS).unref();
  #holds = 0;

  hold(): void {
    if (this.#holds++ === 0) this.#timer.ref();
  }

  letGo(): void {
    if (--this.#holds === 0) this.#timer.unref();
  }

  /** Ends it, however often it is held. */
  end(): void {
    clearInterval(this.#timer);
  }
}

/** Keeps the process alive until the promise is settled, and returns its value. */
export async function keepAliveUntil<T>(promise: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, LONG_MS);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
}
