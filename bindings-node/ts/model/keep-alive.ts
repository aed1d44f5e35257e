/** As long as a timer can wait, nearly. */
const LONG_MS = 2 ** 30;

/** The time in which a message between two threads of this process arrives, also on a busy machine. */
const DELIVERY_MS = 1_000;

/** Keeps the process alive while it is held, and while messages may be under way. */
export class KeepAlive {
  readonly #timer = setInterval(() => {}, LONG_MS).unref();
  #holds = 0;
  #delivery: NodeJS.Timeout | undefined;

  hold(): void {
    if (this.#holds++ === 0) this.#timer.ref();
  }

  release(): void {
    if (--this.#holds === 0) this.#timer.unref();
  }

  /** Keeps the process alive until a message that was just sent has arrived. */
  awaitDelivery(): void {
    this.#delivery = this.#delivery?.refresh() ?? setTimeout(() => {}, DELIVERY_MS);
  }

  /** Ends it, however often it is held. */
  end(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#delivery);
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
