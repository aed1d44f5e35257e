import type { CallContext } from "./context.js";
import type { ServerCore } from "./core.js";
import { then } from "./maybe.js";
import { decodeTexts } from "./prompt-arguments.js";
import type { JsonObject } from "./portable.js";
import { isQuestion } from "./questions.js";
import type { OfferKind } from "./reply.js";
import { ToolResult } from "./results.js";
import type { Validate } from "./schema.js";
import type { ErrorClass } from "./types.js";

type Wire = Record<string, unknown>;

/** How a registered function is run, worked out once. */
export interface Plan {
  readonly kind: OfferKind | "notification";
  /** Whose lifespan and name the handler sees. */
  readonly owner: ServerCore;
  readonly exposeErrors: readonly ErrorClass[];
  /** Decodes, passes the middleware, calls. */
  invoke(input: Wire, ctx: CallContext): unknown;
}

export interface Steps {
  kind: Plan["kind"];
  method: string;
  exposeErrors?: readonly ErrorClass[] | undefined;
  /** What middleware sees of the request. */
  params: (input: Wire) => Wire;
  call: (input: Wire, ctx: CallContext) => unknown;
}

export function makePlan(owner: ServerCore, { kind, method, exposeErrors, params, call }: Steps): Plan {
  return {
    kind,
    owner,
    exposeErrors: [...(owner.options.exposeErrors ?? []), ...(exposeErrors ?? [])],
    invoke: (input, ctx) =>
      owner.hasMiddleware ? owner.around(method, params(input), ctx, () => call(input, ctx)) : call(input, ctx),
  };
}

/** The same plan for a server that the owner is mounted into: that one's middleware is the outer one. */
export function mountPlan(outer: ServerCore, inner: Plan, { method, params }: Pick<Steps, "method" | "params">): Plan {
  return {
    ...inner,
    invoke: (input, ctx) =>
      outer.hasMiddleware
        ? outer.around(method, params(input), ctx, () => inner.invoke(input, ctx))
        : inner.invoke(input, ctx),
  };
}

type Handler<A extends readonly unknown[]> = (...args: [...A, CallContext]) => unknown;

/** Arguments in their final type, and a result that fits its schema. */
export function toolCall(
  handler: Handler<[unknown]>,
  validateInput: Validate | undefined,
  validateOutput: Validate | undefined,
): Steps["call"] {
  const call: Steps["call"] = validateInput
    ? (input, ctx) => then(validateInput(input), (args) => handler(args, ctx))
    : handler;
  if (!validateOutput) return call;
  return (input, ctx) =>
    then(call(input, ctx), (value) => (value instanceof ToolResult || isAsking(value) ? value : validateOutput(value)));
}

/** Prompt arguments come as texts. */
export function promptCall(handler: Handler<[unknown]>, schema: JsonObject, validate: Validate | undefined): Steps["call"] {
  return (input, ctx) => {
    const given = decodeTexts(schema, input as Record<string, string>);
    return then(validate ? validate(given) : given, (args) => handler(args, ctx));
  };
}

const CACHED = 1_000;

/** Keeps what a resource gave for a while, by its variables. */
export function cachedCall(call: Steps["call"], milliseconds: number): Steps["call"] {
  const kept = new Map<string, { value: unknown; until: number }>();
  return (input, ctx) => {
    const key = JSON.stringify(input);
    const found = kept.get(key);
    if (found && found.until > performance.now()) return found.value;
    return then(call(input, ctx), (value) => {
      if (isAsking(value)) return value;
      kept.delete(key);
      kept.set(key, { value, until: performance.now() + milliseconds });
      if (kept.size > CACHED) kept.delete(kept.keys().next().value as string);
      return value;
    });
  };
}

function isAsking(value: unknown): boolean {
  return isQuestion(value) || (Array.isArray(value) && value.some(isQuestion));
}
