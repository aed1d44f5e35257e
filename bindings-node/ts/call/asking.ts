import { Declined, McpError, NotSupported, ProtocolError } from "../model/errors.js";
import { toJson } from "../model/json.js";
import type { Asked } from "../model/questions.js";
import type { SchemaMismatch } from "../schema/compile.js";
import type { CallHandle } from "./handle.js";
import { runningStep } from "./steps.js";

type Wire = Readonly<Record<string, unknown>>;

/** The core's reason for a question without an answer. */
export interface Refusal {
  readonly kind: "missingCapability" | "notSupported" | "declined" | "protocol";
  readonly code?: number;
  readonly message?: string;
  readonly data?: unknown;
}

/** The client's result, or the error in its place. */
export type Answer = Wire | Error;

/** The number of the last question; the client's answer carries its question's number. */
let numbers = 0;

/** The questions of one call: their keys, and the promises that wait for answers. */
export class Asking {
  readonly #keys = new Map<Asked, string>();
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #end: Error | undefined;

  constructor(private readonly call: CallHandle) {}

  /** Returns the question's own key, or one made of its kind and its number in the call. */
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

  /** Returns the client's result that came with the call; undefined if there is none or it is invalid. */
  known(question: Asked): Wire | undefined {
    const json = this.call.answer(this.keyOf(question), question.method, paramsOf(question));
    return json === null ? undefined : (JSON.parse(json) as Wire);
  }

  /** Discards an answer that the schema refuses; throws once the retry limit is reached. */
  refuse(question: Asked, { problem }: SchemaMismatch): void {
    const refusal = this.call.refuseAnswer(this.keyOf(question), question.method, paramsOf(question), problem);
    if (refusal !== null) throw errorOf(JSON.parse(refusal) as Refusal);
  }

  /** Throws if one of several questions can't be asked; then none of them is. */
  check(questions: readonly Asked[]): void {
    if (questions.length < 2 || this.#end) return;
    const open = questions.filter((question) => this.known(question) === undefined);
    const params = open.map(paramsOf);
    const refusal = this.call.refusalOf(open.map(({ method }) => method), params);
    if (refusal !== null) throw errorOf(JSON.parse(refusal) as Refusal);
  }

  /**
   * Asks the client, unless the answer came with the call.
   *
   * @param invalid - The reason that the previous answer was refused.
   * @throws NotSupported when the handler has ended.
   */
  async put(question: Asked, invalid?: SchemaMismatch): Promise<Answer> {
    const known = invalid ? undefined : this.known(question);
    if (known !== undefined) return known;
    if (this.#end) return this.#end;
    const number = ++numbers;
    if (!this.call.ask(number, this.keyOf(question), question.method, paramsOf(question), invalid?.problem)) {
      throw new NotSupported("the handler has ended; it can ask its client only until it returns");
    }
    return new Promise((resolve) => void this.#waiting.set(number, resolve));
  }

  answered(number: number, result: Wire | null, refusal: Refusal | null): void {
    const settle = this.#waiting.get(number);
    this.#waiting.delete(number);
    settle?.(result ?? errorOf(refusal));
  }

  /** Rejects the waiting questions, and those that follow, because the run of the handler is over. */
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
