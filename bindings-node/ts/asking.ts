import { Cancelled, type McpError, NotSupported, ProtocolError } from "./errors.js";
import { toJson } from "./json.js";
import type { Asked } from "./questions.js";

type Wire = Readonly<Record<string, unknown>>;

/** The way to the client, past which the core decides. */
interface Way {
  answer(slot: number, key: string, method: string, params: string): string | null;
  ask(slot: number, number: number, method: string, params: string): void;
}

/** Why a question got no answer, as the core tells it. */
export interface Refusal {
  readonly kind: "missingCapability" | "notSupported" | "protocol" | "cancelled";
  readonly code?: number;
  readonly message?: string;
  readonly data?: unknown;
}

/** A question's number, on which the client's answer comes back. */
let numbers = 0;

/** What one call has asked: each question's key, and who waits for which answer. */
export class Asking {
  readonly #keys = new Map<Asked, string>();
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<number, (answer: Wire | McpError) => void>();

  constructor(
    private readonly way: Way,
    private readonly slot: number,
  ) {}

  /** The question's own key, or the number that it got when the call first named it. */
  keyOf(question: Asked): string {
    if (question.key !== undefined) return question.key;
    const known = this.#keys.get(question);
    if (known !== undefined) return known;
    const kind = question.kind === "elicitUrl" ? "elicit" : question.kind;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const key = `${kind}-${count}`;
    this.#keys.set(question, key);
    return key;
  }

  /** The client's result that came with the call, where it fits. */
  known(question: Asked): Wire | undefined {
    const json = this.way.answer(this.slot, this.keyOf(question), question.method, toJson(question.params, "the question"));
    return json === null ? undefined : (JSON.parse(json) as Wire);
  }

  /** The client's result, or why there is none; asked at once where it is not known. Never rejects. */
  put(question: Asked): Promise<Wire | McpError> {
    const known = this.known(question);
    if (known !== undefined) return Promise.resolve(known);
    const number = ++numbers;
    return new Promise((resolve) => {
      this.#waiting.set(number, resolve);
      this.way.ask(this.slot, number, question.method, toJson(question.params, "the question"));
    });
  }

  answered(number: number, result: Wire | null, refusal: Refusal | null): void {
    const settle = this.#waiting.get(number);
    this.#waiting.delete(number);
    settle?.(result ?? errorOf(refusal ?? { kind: "cancelled" }));
  }

  /** The call is over: nobody answers any more. */
  cancel(reason: Cancelled): void {
    for (const settle of this.#waiting.values()) settle(reason);
    this.#waiting.clear();
  }
}

function errorOf({ kind, code = -32603, message = "", data }: Refusal): McpError {
  switch (kind) {
    case "missingCapability":
    case "notSupported":
      return new NotSupported(message, { data });
    case "protocol":
      return new ProtocolError(code, message, data);
    case "cancelled":
      return new Cancelled(message);
  }
}
