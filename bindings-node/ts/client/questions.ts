import { Cancelled, Declined, ProtocolError } from "../model/errors.js";
import { toJson } from "../model/json.js";
import { cancelled, declined } from "../model/questions.js";
import { sampleRequestFromWire, sampleResultToWire } from "../model/sampling.js";
import type { ClientOptions, ElicitRequest, InputRequired, SampleRequest } from "../model/types/client.js";
import type { SampleResult } from "../model/types/questions.js";
import type { JsonSchema } from "../model/types/schema.js";
import { isObject } from "../model/values.js";
import { checkSampleRequest, InvalidMember } from "./checks.js";

type Wire = Readonly<Record<string, unknown>>;

/** The kinds of requests that the native half passes to callbacks. */
export type Asked = "onElicit" | "onSample" | "roots";

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

/** Returns what the user's callback answers, as JSON; throws what the callback throws. */
export async function answer(options: ClientOptions, what: Asked, params: Wire, key?: string): Promise<string> {
  const value = await returned(options, what, params, key);
  if (value === declined) throw new Declined();
  if (value === cancelled) throw new Cancelled();
  if (value instanceof Declined || value instanceof Cancelled) throw value;
  const isResult = what === "onSample" && isObject(value) && Array.isArray(value["content"]);
  return toJson((isResult ? sampleResultToWire(value as unknown as SampleResult) : value) ?? null, `the result of ${what}`);
}

function returned(options: ClientOptions, what: Asked, params: Wire, key: string | undefined): unknown {
  if (what === "onElicit") return call(options.onElicit, key, elicitRequestFromWire(params));
  if (what === "onSample") return call(options.onSample, key, receivedSampleRequest(params));
  const roots = options.roots as () => unknown;
  const withKey = keyed.get(roots);
  return withKey ? withKey(key) : roots();
}

function receivedSampleRequest(params: Wire): SampleRequest {
  try {
    checkSampleRequest(params);
    return sampleRequestFromWire(params);
  } catch (error) {
    if (!(error instanceof InvalidMember || error instanceof RangeError)) throw error;
    throw new ProtocolError(-32602, `the server's question can't be read: ${error.message}`, undefined, { cause: error });
  }
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
