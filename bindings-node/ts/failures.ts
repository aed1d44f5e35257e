import { inspect, types } from "node:util";

import { isObject } from "./content.js";
import {
  Cancelled,
  Declined,
  McpError,
  NotSupported,
  ProtocolError,
  ResourceNotFound,
  ToolError,
  UrlElicitationRequired,
} from "./errors.js";
import { stringify, toJson } from "./json.js";
import { SchemaMismatch } from "./schema.js";
import type { ErrorClass } from "./types.js";

/** What a handler died of, for the core, which decides the code and what the client may see. */
export type Failure =
  | { kind: "tool"; message: string; meta?: Readonly<Record<string, unknown>> }
  | { kind: "protocol"; code: number; message: string; data?: unknown }
  | { kind: "notFound"; uri: string; message?: string }
  | { kind: "exposed" | "declined" | "invalid"; message: string }
  | { kind: "missingCapability"; message: string; data: unknown }
  | { kind: "cancelled" }
  | { kind: "exception"; type: string; message: string; traceback: string };

export interface FailureOptions {
  /** Errors whose message the client may see. */
  readonly exposeErrors?: readonly ErrorClass[] | undefined;
  /** The call's own: what is thrown because it fired is no failure. */
  readonly signal?: AbortSignal | undefined;
}

/** The JSON text of what was thrown; never throws, whatever was. */
export function failureJson(thrown: unknown, options: FailureOptions = {}): string {
  try {
    return toJson(describeFailure(thrown, options), `what the ${typeOf(thrown)} carries`);
  } catch (error) {
    // Its data can't be written, or it has getters that throw.
    console.error("what was thrown carries is left out:", messageOf(error));
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
  // An aborted call of the handler's own is no answer of the user's.
  const isAnswer = thrown instanceof Declined || (thrown instanceof Cancelled && thrown.name !== "AbortError");
  if (isAnswer) return { kind: "declined", message: thrown.message };
  if (thrown instanceof SchemaMismatch && thrown.side === "input") return { kind: "invalid", message: thrown.message };
  if (thrown instanceof SchemaMismatch) {
    const message = `the result does not fit the output schema: ${thrown.message}`;
    return { kind: "exception", type: "invalid result", message, traceback: "" };
  }
  if (thrown instanceof NotSupported && isObject(thrown.data) && "requiredCapabilities" in thrown.data) {
    return { kind: "missingCapability", message: thrown.message, data: thrown.data };
  }
  // It names what the other side lacks, and nothing of ours.
  if (thrown instanceof NotSupported && thrown.code === undefined) return { kind: "exposed", message: hinted(thrown) };
  if (exposeErrors.some((made) => thrown instanceof made)) return { kind: "exposed", message: messageOf(thrown) };
  if (thrown instanceof UrlElicitationRequired) {
    const { message, elicitations } = thrown;
    const wire = elicitations.map(({ id, mode, message, url }) => ({ mode, elicitationId: id, message, url }));
    return { kind: "protocol", code: -32042, message, data: thrown.data ?? { elicitations: wire } };
  }
  // Other errors of a client's belong to a call of the handler's own: their text is not for this one's caller.
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

/** The class's name, where a class of the user's own left `name` as it was. */
function typeOf(thrown: unknown): string {
  if (!isError(thrown)) return typeof thrown;
  return thrown.name === "Error" ? thrown.constructor.name || "Error" : String(thrown.name);
}

function messageOf(thrown: unknown): string {
  const hasMessage = isError(thrown) || (isObject(thrown) && typeof thrown["message"] === "string");
  return String(hasMessage ? (thrown as { message: unknown }).message : thrown);
}

/** The stack, and those of its causes and of the errors that it gathers. */
function traceback(thrown: unknown): string {
  const stacks: string[] = [];
  for (let at = thrown; isError(at) && stacks.length < MANY; at = at.cause) {
    stacks.push(at.stack ?? `${at.name}: ${at.message}`);
  }
  const told = [stacks.length > 0 ? stacks.join("\ncaused by: ") : isObject(thrown) ? inspect(thrown) : messageOf(thrown)];
  const gathered: unknown = isError(thrown) && "errors" in thrown ? thrown.errors : undefined;
  for (const one of Array.isArray(gathered) ? gathered.slice(0, MANY) : []) {
    told.push(`one of its errors: ${isError(one) ? String(one.stack) : inspect(one).replace(/^'(.*)'$/s, "$1")}`);
  }
  return told.join("\n");
}

const MANY = 8;

/** Also of another realm, as Node's own are in a test runner's sandbox. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || types.isNativeError(thrown);
}

/** The same with nothing in it that could not be written. */
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
