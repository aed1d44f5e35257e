import { parseJson } from "../model/big-integers.js";
import { native } from "../native.js";
import { toJson } from "../model/json.js";
import { then } from "../model/promises.js";
import { isQuestion } from "../model/questions.js";
import { ToolResult } from "../model/results.js";
import type { Context, ServerMembers } from "../model/types/context.js";
import type { Logger } from "../model/types/logging.js";
import type { ErrorClass } from "../model/types/options.js";
import type { Validate } from "../schema/compile.js";
import type { JsonObject } from "../schema/portable.js";
import { officialToolResult } from "./official-results.js";
import { decodeTexts } from "./prompt-arguments.js";
import type { ComponentKind } from "./replies.js";

type Wire = Record<string, unknown>;

/** The subject of a request: the method, and the name of the tool or prompt. */
export type Subject = readonly [method: string, name: string | undefined];

/** The server that a handler is registered with, as its plan and its context use it. */
export interface PlanOwner {
  readonly server: ServerMembers<unknown>;
  readonly logger: Logger;
  readonly options: { readonly exposeErrors?: readonly ErrorClass[] | undefined };
  readonly lifespan: { readonly value: unknown };
  /** Returns true if there is middleware for a method. */
  hasMiddleware(method: string): boolean;
  /** Runs the middleware around a request. */
  around(method: string, params: Wire, ctx: Context, inner: () => unknown): unknown;
}

/** The way to run a registered function, prepared once. */
export interface Plan {
  readonly kind: ComponentKind | "notification";
  /** The server whose lifespan and name the handler sees. */
  readonly owner: PlanOwner;
  readonly exposeErrors: readonly ErrorClass[];
  /** The tool's output schema has a property `content`. */
  readonly hasContentKey?: boolean | undefined;
  /** Returns the subject of a request for traces; without it the handler is not traced. */
  readonly subject?: (input: Wire) => Subject;
  /** Runs the middleware, decodes the input, and calls the function. */
  invoke(input: Wire, ctx: Context): unknown;
}

/** The parts of a plan. */
export interface HandlerSpec {
  kind: Plan["kind"];
  exposeErrors?: readonly ErrorClass[] | undefined;
  hasContentKey?: boolean | undefined;
  call: (input: Wire, ctx: Context) => unknown;
}

/** A handler as one server has it. */
export interface HandlerKey {
  readonly method: string;
  /** The name, URI or template. */
  readonly key: string;
  /** The argument that a completion is for. */
  readonly argument?: string | undefined;
}

export function makePlan(owner: PlanOwner, at: HandlerKey, { kind, exposeErrors, hasContentKey, call }: HandlerSpec): Plan {
  return {
    kind,
    owner,
    hasContentKey,
    exposeErrors: [...(owner.options.exposeErrors ?? []), ...(exposeErrors ?? [])],
    subject: subjectOf(kind, at),
    invoke: aroundCall(owner, kind, at, call),
  };
}

/** Returns the same plan for a server that the owner is mounted into, whose middleware runs outside of the owner's. */
export function mountPlan(outer: PlanOwner, inner: Plan, at: HandlerKey): Plan {
  return { ...inner, subject: subjectOf(inner.kind, at), invoke: aroundCall(outer, inner.kind, at, inner.invoke) };
}

/** Runs the middleware of one server around a call; it sees the params as that server has them. */
export function aroundCall(server: PlanOwner, kind: Plan["kind"], { method, key, argument = "" }: HandlerKey, call: Plan["invoke"]): Plan["invoke"] {
  return (input, ctx) => {
    if (!server.hasMiddleware(method)) return call(input, ctx);
    const { NativeMiddleware } = native();
    const params = parseJson(NativeMiddleware.params(kind, key, argument, toJson(input))) as Wire;
    const before = toJson(params);
    return server.around(method, params, ctx, () => {
      const after = toJson(params);
      const changed = after === before ? null : NativeMiddleware.input(kind, after);
      return call(changed === null ? input : (parseJson(changed) as Wire), ctx);
    });
  };
}

function subjectOf(kind: Plan["kind"], { method, key }: HandlerKey): () => Subject {
  return () => [method, kind === "tool" || kind === "prompt" ? key : undefined];
}

type Handler<A extends readonly unknown[]> = (...args: [...A, Context]) => unknown;

/** Returns the call of a tool: it validates the arguments and the result. */
export function toolCall(
  handler: Handler<[unknown]>,
  validateInput: Validate | undefined,
  validateOutput: Validate | undefined,
  hasContentKey = false,
): HandlerSpec["call"] {
  const call: HandlerSpec["call"] = validateInput
    ? (input, ctx) => then(validateInput(input), (args) => handler(args, ctx))
    : handler;
  if (!validateOutput) return call;
  return (input, ctx) =>
    then(call(input, ctx), (value) => {
      if (value instanceof ToolResult || isAsking(value)) return value;
      return (hasContentKey ? undefined : officialToolResult(value)) ?? validateOutput(value);
    });
}

/** Returns the call of a prompt: it decodes the arguments, which are strings on the wire, and validates them. */
export function promptCall(handler: Handler<[unknown]>, schema: JsonObject, validate: Validate | undefined): HandlerSpec["call"] {
  return (input, ctx) => {
    const given = decodeTexts(schema, input as Record<string, string>);
    return then(validate ? validate(given) : given, (args) => handler(args, ctx));
  };
}

function isAsking(value: unknown): boolean {
  return isQuestion(value) || (Array.isArray(value) && value.some(isQuestion));
}
