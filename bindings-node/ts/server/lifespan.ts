import type { Maybe } from "../model/types/components.js";
import type { AnyServer } from "../model/types/server.js";

export type LifespanOption<L> =
  | ((server: AnyServer) => Maybe<{ value: L; close?: (() => Maybe<void>) | undefined }>)
  | undefined;

/** The value of the option `lifespan`: entered by the first connection that serves, left by the last. */
export class Lifespan<L> {
  #users = 0;
  #entered: Promise<{ value: L; close?: (() => Maybe<void>) | undefined } | undefined> | undefined;
  #value: L | undefined;

  constructor(
    private readonly server: AnyServer,
    private readonly option: LifespanOption<L>,
  ) {}

  get value(): L {
    return this.#value as L;
  }

  get isUsed(): boolean {
    return this.#users > 0;
  }

  async enter(): Promise<void> {
    this.#users++;
    this.#entered ??= Promise.resolve(this.server).then(this.option ?? (() => undefined));
    try {
      this.#value = (await this.#entered)?.value;
    } catch (error) {
      this.#users--;
      this.#entered = undefined;
      throw error;
    }
  }

  /** Leaves the lifespan after the last user; with `force` at once. */
  async leave(force = false): Promise<void> {
    const entered = this.#entered;
    this.#users = force ? 0 : Math.max(0, this.#users - 1);
    if (this.#users > 0 || entered === undefined) return;
    this.#entered = undefined;
    const held = await entered;
    await held?.close?.();
  }
}
