import { inspect, types } from "node:util";

import {
  Cancelled, Declined, McpError, NotSupported, ProtocolError, ResourceNotFound, ToolError, UrlElicitationRequired,
} from "../model/errors.js";
import { toJson } from "../model/json.js";
import { DEFAULT_LOGGER } from "../model/logging.js";
import { stringify } from "../model/stringify.js";
import type { Logger } from "../model/types/logging.js";
import type { ErrorClass } from "../model/types/options.js";
import { isObject } from "../model/values.js";
import { SchemaMismatch } from "../schema/compile.js";

/** A handler's failure as the core reads it; the core decides the code and the text for the client. */
export type Failure =
  | { kind: "tool"; message: string; meta?: Readonly<Record<string, unknown>> }
  | { kind: "protocol"; code: number; message: string; data?: unknown }
  | { kind: "notFound"; uri: string; message?: string }
  | { kind: "exposed" | "declined" | "dismissed" | "invalid"; message: string }
  | { kind: "missingCapability"; message: string; data: unknown }
  | { kind: "cancelled" }
  | { kind: "exception"; type: string; message: string; traceback: string };

export interface FailureOptions {
  /** The classes of errors whose message the client may see. */
  readonly exposeErrors?: readonly ErrorClass[] | undefined;
  /** The call's signal. An error that it caused is a cancellation. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the reason that an error's details can't be sent. Default: stderr. */
  readonly logger?: Logger | undefined;
}

/** Errors that stand for a failure of the native half, with its JSON. */
const kept = new WeakMap<Error, string>();

/** Returns the error, which is passed on as this failure if it is thrown as it is. */
export function keepFailure(error: Error, failure: string): Error {
  kept.set(error, failure);
  return error;
}

/** Returns a thrown value as JSON for the core; never throws. */
export function failureJson(thrown: unknown, options: FailureOptions = {}): string {
  const failure = kept.get(thrown as Error);
  if (failure !== undefined) return failure;
  try {
    return toJson(describeFailure(thrown, options), `the details of the ${typeOf(thrown)}`);
  } catch (error) {
    // The error's data can't be written as JSON, or a getter throws.
    (options.logger ?? DEFAULT_LOGGER).error(`the details of a thrown error are left out: ${messageOf(error)}`);
    return stringify(bareFailure(thrown)) ?? "";
  }
}

export function describeFailure(thrown: unknown, { exposeErrors = [], signal }: FailureOptions = {}): Failure {
  if (isCancellation(thrown, signal)) return { kind: "cancelled" };
  if (thrown instanceof ToolError) {
    const { meta } = thrown.result;
    return { kind: "tool", message: thrown.message, ...(Object.keys(meta).length > 0 && { meta }) };
  }
  if (thrown instanceof ResourceNotFound) {
    const uri = String((thrown.data as { uri?: unknown } | undefined)?.uri ?? "");
    return { kind: "notFound", uri, message: thrown.message };
  }
  if (thrown instanceof Declined) return { kind: "declined", message: thrown.message };
  // An aborted request of the handler itself is not the user's answer.
  if (thrown instanceof Cancelled && thrown.name !== "AbortError") return { kind: "dismissed", message: thrown.message };
  if (thrown instanceof SchemaMismatch && thrown.side === "input") return { kind: "invalid", message: thrown.message };
  if (thrown instanceof SchemaMismatch) {
    const message = `the result does not fit the output schema: ${thrown.message}`;
    return { kind: "exception", type: "invalid result", message, traceback: "" };
  }
  if (thrown instanceof NotSupported && isObject(thrown.data) && "requiredCapabilities" in thrown.data) {
    return { kind: "missingCapability", message: thrown.message, data: thrown.data };
  }
  // The message names what the peer lacks, and nothing of this server.
  if (thrown instanceof NotSupported && thrown.code === undefined) return { kind: "exposed", message: hinted(thrown) };
  if (exposeErrors.some((made) => thrown instanceof made)) return { kind: "exposed", message: messageOf(thrown) };
  if (thrown instanceof UrlElicitationRequired) {
    const { message, elicitations } = thrown;
    const wire = elicitations.map(({ id, mode, message, url }) => ({ mode, elicitationId: id, message, url }));
    return { kind: "protocol", code: -32042, message, data: thrown.data ?? { elicitations: wire } };
  }
  // Other errors of clients come from requests that the handler made; their text is not meant for its caller.
  if ((thrown instanceof ProtocolError || thrown instanceof NotSupported) && thrown.code !== undefined) {
    const { code, message, data } = thrown;
    return { kind: "protocol", code, message, ...(data !== undefined && { data }) };
  }
  return exception(thrown);
}

function hinted({ message, hint }: McpError): string {
  return hint === undefined ? message : `${message} (hint: ${hint})`;
}

function isCancellation(thrown: unknown, signal: AbortSignal | undefined): boolean {
  if (!signal?.aborted) return false;
  return thrown === signal.reason || (thrown instanceof Error && thrown.name === "AbortError");
}

function exception(thrown: unknown): Failure {
  return { kind: "exception", type: typeOf(thrown), message: messageOf(thrown), traceback: traceback(thrown) };
}

/** Returns the error's name, or its class's name if the class did not set one. */
function typeOf(thrown: unknown): string {
  if (!isError(thrown)) return typeof thrown;
  return thrown.name === "Error" ? thrown.constructor.name || "Error" : String(thrown.name);
}

function messageOf(thrown: unknown): string {
  const hasMessage = isError(thrown) || (isObject(thrown) && typeof thrown["message"] === "string");
  return String(hasMessage ? (thrown as { message: unknown }).message : thrown);
}

/** Returns the stack of an error, of its causes, and of the errors of an AggregateError. */
function traceback(thrown: unknown): string {
  const stacks: string[] = [];
  for (let at = thrown; isError(at) && stacks.length < MANY; at = at.cause) {
    stacks.push(at.stack ?? `${at.name}: ${at.message}`);
  }
  const parts = [stacks.length > 0 ? stacks.join("\ncaused by: ") : isObject(thrown) ? inspect(thrown) : messageOf(thrown)];
  const gathered: unknown = isError(thrown) && "errors" in thrown ? thrown.errors : undefined;
  for (const one of Array.isArray(gathered) ? gathered.slice(0, MANY) : []) {
    parts.push(`one of its errors: ${isError(one) ? String(one.stack) : inspect(one).replace(/^'(.*)'$/s, "$1")}`);
  }
  return parts.join("\n");
}

const MANY = 8;

/** Returns true for errors of any realm: in a test runner's sandbox Node's own errors come from another one. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || types.isNativeError(thrown);
}

/** Returns the failure without the parts that may not be writable as JSON. */
function bareFailure(thrown: unknown): Failure {
  try {
    const message = messageOf(thrown);
    if (thrown instanceof ToolError) return { kind: "tool", message };
    if (thrown instanceof ProtocolError && typeof thrown.code === "number") return { kind: "protocol", code: thrown.code, message };
    return { kind: "exception", type: typeof thrown, message, traceback: message };
  } catch {
    const message = "what was thrown can't be read";
    return { kind: "exception", type: "unknown", message, traceback: message };
  }
}
