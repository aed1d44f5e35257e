import { isMarked, mark } from "./brand.js";
import { isPromise } from "./promises.js";
import type { Maybe } from "./types/components.js";
import type { Outcome, Question } from "./types/questions.js";

type Wire = Readonly<Record<string, unknown>>;

/** The members of a `Question`: the request to the client, and the function that reads its result. */
export interface Asked<T = unknown> extends Question<T> {
  readonly kind: "elicit" | "elicitUrl" | "sample" | "roots";
  /** The question's text, for errors. */
  readonly message: string;
  readonly key: string | undefined;
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Wire;
  /**
   * Returns the client's result in the question's type. Throws Declined or Cancelled if the user declined or cancelled, and
   * SchemaMismatch if the result is of another type.
   */
  read(result: Wire): Maybe<T>;
}

/** The value that `onElicit` returns if the user declines. */
export const declined: unique symbol = Symbol.for("gudgeon.declined") as never;
/** The value that `onElicit` returns if the user closes the question. */
export const cancelled: unique symbol = Symbol.for("gudgeon.cancelled") as never;

const QUESTION = Symbol.for("gudgeon.question");

export function markedQuestion<T>(fields: Omit<Asked<T>, keyof Question<T>>): Question<T> {
  return mark(fields, QUESTION) as unknown as Question<T>;
}

export function isQuestion(value: unknown): value is Asked {
  return isMarked(value, QUESTION);
}

/** Returns the questions that a handler returned; undefined if it returned another value. */
export function questionsIn(value: unknown): readonly Asked[] | undefined {
  if (isQuestion(value)) return [value];
  if (!Array.isArray(value) || !value.some(isQuestion)) return undefined;
  const other = value.findIndex((item) => !isQuestion(item));
  if (other < 0) return value as Asked[];
  throw new TypeError(`the result[${other}] is not a question; a handler returns either questions or its result`);
}

/** Returns the outcome of a question: its answer or a refusal. */
export function outcomeOf<T>(question: Asked<T>, result: Wire): Maybe<Outcome<T>> {
  if (result["action"] === "decline") return { action: "decline" };
  if (result["action"] === "cancel") return { action: "cancel" };
  const value = question.read(result);
  const accept = (value: T): Outcome<T> => ({ action: "accept", value });
  return isPromise(value) ? (value as Promise<T>).then(accept) : accept(value as T);
}
