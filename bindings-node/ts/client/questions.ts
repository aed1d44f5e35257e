import { pathToFileURL } from "node:url";

import { display } from "../model/display.js";
import { Cancelled, Declined } from "../model/errors.js";
import { toJson } from "../model/json.js";
import { cancelled, declined } from "../model/questions.js";
import { sampleRequestFromWire, sampleResultToWire } from "../model/sampling.js";
import type { ClientOptions, ElicitRequest, InputRequired, SampleRequest } from "../model/types/client.js";
import type { Root } from "../model/types/components.js";
import type { SampleResult } from "../model/types/questions.js";
import type { JsonSchema } from "../model/types/schema.js";
import { isObject } from "../model/values.js";

type Wire = Readonly<Record<string, unknown>>;

/** The kinds of requests that the native half passes to callbacks. */
export type Asked = "elicit" | "sample" | "roots";

/** A callback that receives the question's key as well. */
type KeyedAnswer = (key: string | undefined, request?: ElicitRequest | SampleRequest) => unknown;

const keyed = new WeakMap<(...given: never[]) => unknown, KeyedAnswer>();

/** Marks a callback as one that receives the question's key. */
export function keyedCallback(answer: KeyedAnswer): (request?: ElicitRequest | SampleRequest) => never {
  const callback = (request?: ElicitRequest | SampleRequest) => answer(undefined, request) as never;
  keyed.set(callback, answer);
  return callback;
}

function call<R extends ElicitRequest | SampleRequest, T>(callback: ((request: R) => T) | undefined, key: string | undefined, request: R): T | undefined {
  const answer = callback && keyed.get(callback);
  return answer ? (answer(key, request) as T) : callback?.(request);
}

/** Returns the answer of the user's callback as JSON; throws what the callback throws. */
export async function answer(options: ClientOptions, what: Asked, params: Wire, key?: string): Promise<string> {
  switch (what) {
    case "elicit": {
      const request = elicitRequestFromWire(params);
      return toJson(elicitResult(request, await elicited(options, request, key)), "the result of onElicit");
    }
    case "sample": {
      const result: unknown = await call(options.onSample, key, sampleRequestFromWire(params));
      if (result instanceof Declined || result instanceof Cancelled) throw result;
      if (result === declined) throw new Declined("the user declined");
      if (result === cancelled) throw new Cancelled("the user cancelled");
      if (typeof result !== "string" && !isObject(result)) throw new TypeError(`onSample must return a string or a SampleResult, not ${display(result)}`);
      return toJson(sampleResultToWire(result as string | SampleResult), "the result of onSample");
    }
    case "roots": {
      const { roots } = options;
      const answer = typeof roots === "function" ? (keyed.get(roots)?.bind(undefined, key) ?? roots) : () => roots ?? [];
      return toJson({ roots: rootsToWire((await answer()) as readonly (string | Root)[]) }, "the roots");
    }
  }
}

async function elicited(options: ClientOptions, request: ElicitRequest, key: string | undefined): Promise<unknown> {
  try {
    return await call(options.onElicit, key, request);
  } catch (error) {
    if (error instanceof Declined) return declined;
    if (error instanceof Cancelled) return cancelled;
    throw error;
  }
}

/** Returns the result of an elicitation. For a form with one property the answer may be the bare value. */
export function elicitResult(request: ElicitRequest, given: unknown): Wire {
  if (given === declined || given instanceof Declined) return { action: "decline" };
  if (given === cancelled || given instanceof Cancelled) return { action: "cancel" };
  if (request.mode === "url") return { action: given === false ? "decline" : "accept" };
  if (isObject(given)) return { action: "accept", content: filledIn(given) };
  const names = Object.keys(request.schema?.properties ?? {});
  // A form without fields asks for consent only.
  if (names.length === 0 && typeof given === "boolean") return given ? { action: "accept", content: {} } : { action: "decline" };
  const [only] = names;
  if (names.length === 1 && only !== undefined && given !== undefined) return { action: "accept", content: { [only]: given } };
  const wanted = names.length > 0 ? `an object with ${names.join(", ")}` : "true or false";
  throw new TypeError(
    `onElicit returned ${given === undefined ? "nothing" : display(given)} for ${JSON.stringify(request.message)}; return ${wanted}, declined, or cancelled`,
  );
}

/** Removes members that are null: forms have no null, so such a field was left empty. */
function filledIn(given: Wire): Wire {
  const entries = Object.entries(given);
  return entries.some(([, value]) => value === null) ? Object.fromEntries(entries.filter(([, value]) => value !== null)) : given;
}

export function elicitRequestFromWire(params: Wire): ElicitRequest {
  const { mode, message, requestedSchema, url, elicitationId } = params;
  return {
    id: typeof elicitationId === "string" ? elicitationId : undefined,
    mode: mode === "url" ? "url" : "form",
    message: typeof message === "string" ? message : "",
    schema: isObject(requestedSchema) ? (requestedSchema as JsonSchema) : undefined,
    url: typeof url === "string" ? url : undefined,
  };
}

/** Returns a result that asks for input, as `callToolRound` returns it. */
export function inputRequiredFromWire(raw: Wire): InputRequired {
  const { inputRequests, requestState } = raw as { inputRequests?: Record<string, { method: string; params?: Wire }> | null; requestState?: string | null };
  const questions: Record<string, InputRequired["questions"][string]> = {};
  for (const [key, { method, params }] of Object.entries(inputRequests ?? {})) {
    questions[key] =
      method === "elicitation/create"
        ? { kind: "elicit", ...elicitRequestFromWire(params ?? {}) }
        : method === "sampling/createMessage"
          ? { kind: "sample", ...sampleRequestFromWire(params ?? {}) }
          : { kind: "roots" };
  }
  return { questions, state: requestState ?? undefined };
}

/** Returns roots as on the wire. A string is a `file:` URI or a path. */
export function rootsToWire(roots: readonly (string | Root)[]): Root[] {
  return roots.map((root, index) => {
    const given = typeof root === "string" ? { uri: root } : root;
    if (!isObject(given) || typeof given.uri !== "string") {
      throw new TypeError(`roots[${index}] must be a file: URI, a path, or { uri, name }, not ${display(root)}`);
    }
    if (/^file:\/\//i.test(given.uri)) return given;
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given.uri)) {
      throw new TypeError(`roots[${index}] must be a file:// URI such as "file:///srv/shelf", or a path, not ${JSON.stringify(given.uri)}`);
    }
    return { ...given, uri: pathToFileURL(given.uri).href };
  });
}
