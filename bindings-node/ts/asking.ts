import { Declined, McpError, NotSupported, ProtocolError } from "./errors.js";
import { toJson } from "./json.js";
import type { Asked } from "./questions.js";
import type { SchemaMismatch } from "./schema.js";
import { runningStep } from "./steps.js";

type Wire = Readonly<Record<string, unknown>>;

/** The way to the client, past which the core decides. */
interface Way {
  answer(slot: number, key: string, method: string, params: string): string | null;
  refuse(slot: number, key: string, method: string, params: string, problem: string): string | null;
  refusal(slot: number, methods: string[], params: string[]): string | null;
  ask(slot: number, number: number, key: string, method: string, params: string, problem?: string): boolean;
}

/** Why a question got no answer, as the core tells it. */
export interface Refusal {
  readonly kind: "missingCapability" | "notSupported" | "declined" | "protocol";
  readonly code?: number;
  readonly message?: string;
  readonly data?: unknown;
}

/** The client's result, or why there is none. */
export type Answer = Wire | Error;

/** A question's number, on which the client's answer comes back. */
let numbers = 0;

/** What one call has asked: each question's key, and who waits for which answer. */
export class Asking {
  readonly #keys = new Map<Asked, string>();
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #end: Error | undefined;

  /** `wait`: the handler has asked, and may ask more in this turn of the event loop. */
  constructor(
    private readonly way: Way,
    private readonly slot: number,
    private readonly wait: () => void,
  ) {}

  /** The question's own key, or the number that it got when the call first named it. */
  keyOf(question: Asked): string {
    if (question.key !== undefined) return question.key;
    const known = this.#keys.get(question);
    if (known !== undefined) return known;
    const step = runningStep();
    const plain = question.kind === "elicitUrl" ? "elicit" : question.kind;
    const kind = step === undefined ? plain : `${step}/${plain}`;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const key = `${kind}-${count}`;
    this.#keys.set(question, key);
    return key;
  }

  /** The client's result that came with the call, where it fits. */
  known(question: Asked): Wire | undefined {
    const json = this.way.answer(this.slot, this.keyOf(question), question.method, paramsOf(question));
    return json === null ? undefined : (JSON.parse(json) as Wire);
  }

  /** The known result is none of the type that was asked for, and counts no more: throws where it is not asked for again. */
  refuse(question: Asked, { problem }: SchemaMismatch): void {
    const refusal = this.way.refuse(this.slot, this.keyOf(question), question.method, paramsOf(question), problem);
    if (refusal !== null) throw errorOf(JSON.parse(refusal) as Refusal);
  }

  /** Of several questions none is asked where one can't be: throws why. */
  check(questions: readonly Asked[]): void {
    if (questions.length < 2 || this.#end) return;
    const open = questions.filter((question) => this.known(question) === undefined);
    const params = open.map(paramsOf);
    const refusal = this.way.refusal(this.slot, open.map(({ method }) => method), params);
    if (refusal !== null) throw errorOf(JSON.parse(refusal) as Refusal);
  }

  /**
   * Asked at once where the answer is not known, and again where it was `unfit`. Rejects only where it can't be asked at
   * all.
   */
  async put(question: Asked, unfit?: SchemaMismatch): Promise<Answer> {
    const known = unfit ? undefined : this.known(question);
    if (known !== undefined) return known;
    if (this.#end) return this.#end;
    const number = ++numbers;
    if (!this.way.ask(this.slot, number, this.keyOf(question), question.method, paramsOf(question), unfit?.problem)) {
      throw new NotSupported("the handler has ended: it can ask its client only until it gives its answer");
    }
    this.wait();
    return new Promise((resolve) => void this.#waiting.set(number, resolve));
  }

  answered(number: number, result: Wire | null, refusal: Refusal | null): void {
    const settle = this.#waiting.get(number);
    this.#waiting.delete(number);
    settle?.(result ?? errorOf(refusal));
  }

  /** The run is over: nobody answers any more. */
  end(reason: Error): void {
    this.#end = reason;
    for (const settle of this.#waiting.values()) settle(reason);
    this.#waiting.clear();
  }
}

function paramsOf({ params }: Asked): string {
  return toJson(params, "the question");
}

function errorOf(refusal: Refusal | null): McpError {
  const { kind, code = -32603, message = "", data } = refusal ?? {};
  if (kind === "declined") return new Declined(message);
  return kind === "protocol" ? new ProtocolError(code, message, data) : new NotSupported(message, { data });
}
