import { isUrl, refuseUnknown } from "../model/checks.js";
import { Cancelled, Declined } from "../model/errors.js";
import { isPromise } from "../model/promises.js";
import { type Asked, markedQuestion } from "../model/questions.js";
import { sampleResultFromWire, sampleToWire } from "../model/sampling.js";
import type { Maybe, Root } from "../model/types/components.js";
import type { Question, SampledMessages, SampleOptions, SampleResult, SpecSampleRequest } from "../model/types/questions.js";
import type { Output, Schema } from "../model/types/schema.js";
import { isObject } from "../model/values.js";
import { SchemaMismatch } from "./compile.js";
import { formOf } from "./forms.js";

type Wire = Readonly<Record<string, unknown>>;

interface Keyed {
  key?: string | undefined;
}

/**
 * Questions as values: `ctx.ask()` asks several at once, and a handler may return them.
 *
 * Each takes `{ key }`, the question's name; default: `"<kind>-<n>"` in the order asked. Spec: Client Features ›
 * Elicitation, Sampling, Roots.
 */
export const ask = {
  /**
   * Asks the user to fill in a form.
   *
   * @param message - The question, shown to the user.
   * @param schema - A primitive type (asked as the one property `value`), or an object with flat properties.
   * @throws TypeError if no revision has a form for the schema. Lists of choices exist from 2025-11-25 on; in older
   *   revisions such a question fails when it is asked.
   */
  elicit<const S extends Schema>(message: string, schema: S, rest: Keyed = {}): Question<Output<S>> {
    const place = `elicit(${JSON.stringify(message)})`;
    checkText(message);
    checkRest("elicit()", rest);
    const form = formOf(schema, message);
    return make<Output<S>>({
      kind: "elicit",
      message,
      key: rest.key,
      method: "elicitation/create",
      params: { mode: "form", message, requestedSchema: form.schema },
      read: (result) => accepted(result, message, () => inAnswer(() => form.read(result["content"]), place) as Maybe<Output<S>>),
    });
  },

  /**
   * Asks the user to open a URL; the answer is the elicitation's id.
   *
   * @throws TypeError if the URL is not absolute.
   */
  elicitUrl(message: string, url: string, rest: Keyed = {}): Question<string> {
    checkRest("elicitUrl()", rest);
    if (!isUrl(url)) throw new TypeError(`elicitUrl takes an absolute URL such as "https://example.org/in", not ${JSON.stringify(url)}`);
    return make<string>({
      kind: "elicitUrl",
      message,
      key: rest.key,
      method: "elicitation/create",
      params: { mode: "url", message, url },
      read: (result) => accepted(result, message, () => String(result["elicitationId"] ?? "")),
    });
  },

  /**
   * Asks the client's model.
   *
   * @throws TypeError if an option is unknown, or a message is neither a string nor made by `user()` or `assistant()`, nor of the
   *   specification's shape.
   */
  sample(messages: SampledMessages | SpecSampleRequest, options: SampleOptions & Keyed = {}): Question<SampleResult> {
    return make<SampleResult>({
      kind: "sample",
      message: (typeof messages === "string" && messages) || "sampling",
      key: options.key,
      method: "sampling/createMessage",
      params: sampleToWire(messages, options),
      read: sampleResultFromWire,
    });
  },

  /** Asks for the folders that the client lets the server work in. */
  roots(rest: Keyed = {}): Question<Root[]> {
    checkRest("roots()", rest);
    return make<Root[]>({
      kind: "roots",
      message: "roots",
      key: rest.key,
      method: "roots/list",
      params: {},
      read: (result) =>
        (Array.isArray(result["roots"]) ? result["roots"] : []).filter(
          (root): root is Root => isObject(root) && typeof root["uri"] === "string",
        ),
    });
  },
};

function accepted<T>(result: Wire, message: string, read: () => T): T {
  switch (result["action"]) {
    case "accept":
      return read();
    case "decline":
      throw new Declined(message);
    default:
      throw new Cancelled(message);
  }
}

/** Adds to a mismatch's message that the answer failed. */
function inAnswer(read: () => Maybe<unknown>, place: string): Maybe<unknown> {
  const explain = (error: unknown): never => {
    if (error instanceof SchemaMismatch) throw new SchemaMismatch(`the answer to ${place}: ${error.message}`, error.side, error.problem);
    throw error;
  };
  try {
    const value = read();
    return isPromise(value) ? value.catch(explain) : value;
  } catch (error) {
    return explain(error);
  }
}

function checkRest(place: string, rest: Keyed): void {
  refuseUnknown(place, ["key"], rest);
}

function checkText(message: unknown): void {
  if (typeof message !== "string" || message === "") throw new TypeError(`a question needs a message, a non-empty string, not ${JSON.stringify(message)}`);
}

function make<T>(fields: Omit<Asked<T>, keyof Question<T>>): Question<T> {
  const { message, key } = fields;
  checkText(message);
  if (key !== undefined && (typeof key !== "string" || key === "")) {
    throw new TypeError(`key must be a non-empty string that names the question, not ${JSON.stringify(key)}`);
  }
  return markedQuestion(fields);
}
