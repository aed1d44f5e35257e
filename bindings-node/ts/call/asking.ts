import { parseJson, parseMarked } from "../model/big-integers.js";
import { Declined, McpError, NotSupported, ProtocolError } from "../model/errors.js";
import { toJson } from "../model/json.js";
import type { Asked } from "../model/questions.js";
import type { Maybe } from "../model/types/components.js";
import { native } from "../native.js";
import { SchemaMismatch } from "../schema/compile.js";
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

/** The outcome of a question, at its index among those asked. */
type Outcome = readonly [at: number, result: Wire | null, refusal: Refusal | null];

/** The questions of one call: their keys, and the promises that wait for answers. */
export class Asking {
  readonly #keys = new Map<Asked, string>();
  readonly #generated = new (native().NativeQuestionKeys)();
  readonly #waiting = new Map<number, () => void>();
  #end: Error | undefined;

  constructor(private readonly call: CallHandle) {}

  /** Returns the question's own key, or the one that it got when the call first used it. */
  keyOf(question: Asked): string {
    const known = question.key ?? this.#keys.get(question);
    if (known !== undefined) return known;
    const key = this.#generated.next(question.method, runningStep()) ?? question.method;
    this.#keys.set(question, key);
    return key;
  }

  /** Returns the client's result that came with the call; undefined if there is none or it is invalid. */
  known(question: Asked): Wire | undefined {
    const json = this.call.answer(this.keyOf(question), question.method, paramsOf(question));
    return json === null ? undefined : (parseJson(json) as Wire);
  }

  /** Discards an answer that the schema refuses; throws once the retry limit is reached. */
  refuse(question: Asked, { problem }: SchemaMismatch): void {
    const refusal = this.call.refuseAnswer(this.keyOf(question), question.method, paramsOf(question), problem);
    if (refusal !== null) throw errorOf(JSON.parse(refusal) as Refusal);
  }

  /**
   * Asks questions together, and again those whose answers the schema refuses, unless their answers came with the call.
   *
   * @throws NotSupported when the handler has ended.
   */
  async ask<T>(questions: readonly Asked[], read: (question: Asked, result: Wire) => Maybe<T>): Promise<T[]> {
    if (this.#end) throw this.#end;
    const keys = questions.map((question) => this.keyOf(question));
    const asked = alive(this.call.ask(keys, questions.map(({ method }) => method), questions.map(paramsOf)));
    const answers: T[] = [];
    while (asked.isOpen) {
      if (alive(asked.send())) await this.#answers(asked.number);
      for (const [at, result, refusal] of parseMarked(asked.take()) as Outcome[]) {
        if (refusal) throw errorOf(refusal);
        try {
          answers[at] = await read(questions[at] as Asked, result ?? {});
        } catch (invalid) {
          if (!(invalid instanceof SchemaMismatch)) throw invalid;
          asked.reject(at, invalid.problem);
        }
      }
    }
    return answers;
  }

  /** Settles the questions of this number. */
  answered(number: number): void {
    this.#waiting.get(number)?.();
    this.#waiting.delete(number);
  }

  /** Rejects the waiting questions, and those that follow, because the run of the handler is over. */
  end(reason: Error): void {
    this.#end = reason;
    for (const settle of this.#waiting.values()) settle();
    this.#waiting.clear();
  }

  async #answers(number: number): Promise<void> {
    this.call.noteQuestion();
    await new Promise<void>((resolve) => void this.#waiting.set(number, resolve));
    if (this.#end) throw this.#end;
  }
}

/** Throws if the native half knows the call no more. */
function alive<T>(given: T | null): T {
  if (given !== null) return given;
  throw new NotSupported("the handler has ended; it can ask its client only until it returns");
}

function paramsOf({ params }: Asked): string {
  return toJson(params, "the question");
}

function errorOf({ kind, code = -32603, message = "", data }: Refusal): McpError {
  if (kind === "declined") return new Declined(message);
  return kind === "protocol" ? new ProtocolError(code, message, data) : new NotSupported(message, { data });
}
