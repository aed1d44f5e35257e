import { then } from "../model/promises.js";
import { isQuestion } from "../model/questions.js";
import { ToolResult } from "../model/results.js";
import type { Context, ServerMembers } from "../model/types/context.js";
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
  readonly options: { readonly exposeErrors?: readonly ErrorClass[] | undefined };
  readonly lifespan: { readonly value: unknown };
  readonly hasMiddleware: boolean;
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

/** What a plan is made of. */
export interface HandlerSpec {
  kind: Plan["kind"];
  method: string;
  exposeErrors?: readonly ErrorClass[] | undefined;
  hasContentKey?: boolean | undefined;
  /** Returns the params that middleware sees. */
  params: (input: Wire) => Wire;
  call: (input: Wire, ctx: Context) => unknown;
}

export function makePlan(owner: PlanOwner, { kind, method, exposeErrors, hasContentKey, params, call }: HandlerSpec): Plan {
  return {
    kind,
    owner,
    hasContentKey,
    exposeErrors: [...(owner.options.exposeErrors ?? []), ...(exposeErrors ?? [])],
    subject: subjectOf(kind, method, params),
    invoke: (input, ctx) =>
      owner.hasMiddleware ? owner.around(method, params(input), ctx, () => call(input, ctx)) : call(input, ctx),
  };
}

/** Returns the same plan for a server that the owner is mounted into, whose middleware runs outside of the owner's. */
export function mountPlan(outer: PlanOwner, inner: Plan, { method, params }: Pick<HandlerSpec, "method" | "params">): Plan {
  return {
    ...inner,
    subject: subjectOf(inner.kind, method, params),
    invoke: (input, ctx) =>
      outer.hasMiddleware
        ? outer.around(method, params(input), ctx, () => inner.invoke(input, ctx))
        : inner.invoke(input, ctx),
  };
}

function subjectOf(kind: Plan["kind"], method: string, params: (input: Wire) => Wire): (input: Wire) => Subject {
  return (input) => [method, kind === "tool" || kind === "prompt" ? String(params(input)["name"]) : undefined];
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
