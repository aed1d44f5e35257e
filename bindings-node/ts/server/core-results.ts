import {
  promptFromWire, promptToWire, resourceFromWire, resourceTemplateFromWire, resourceToWire, toolFromWire, toolToWire,
} from "../model/components.js";
import { ProtocolError } from "../model/errors.js";
import { toJson } from "../model/json.js";
import { resultToWire, toolResultFromWire } from "../model/results.js";
import { tracing } from "../model/tracing.js";
import type { Context } from "../model/types/context.js";
import { isObject } from "../model/values.js";
import { failActiveSpan } from "../call/tracing.js";
import { native } from "../native.js";
import type { Plan, PlanOwner } from "../plan/plan.js";

type Wire = Readonly<Record<string, unknown>>;

/** The result or error of a request that the core answers without a handler. */
interface Prepared {
  readonly method: string;
  readonly params: Record<string, unknown>;
  /** The type of the result, or of the entries of a list, and the member that holds them. */
  readonly type?: keyof typeof TYPES;
  readonly member?: string;
  readonly result?: Wire;
  readonly fixedParams?: boolean;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Runs a server's middleware around requests that the core answers itself. A value of undefined leaves the core's result unchanged. */
export function coreResultPlan(core: PlanOwner): Plan {
  return {
    kind: "prepared",
    owner: core,
    exposeErrors: core.options.exposeErrors ?? [],
    subject: ({ method }) => [String(method), undefined],
    invoke: (input, ctx) => runMiddleware(core, input as unknown as Prepared, ctx),
  };
}

async function runMiddleware(core: PlanOwner, exchange: Prepared, ctx: Context): Promise<unknown> {
  const { method, params, type, error } = exchange;
  const failure = error && new ProtocolError(error.code, error.message, error.data);
  const prepared = typed(exchange);
  const before = failure ? undefined : toJson(written(type, prepared));
  const asked = toJson(params);
  try {
    const changed = await core.around(method, params, ctx, () => {
      if (failure) throw failure;
      if (exchange.fixedParams && toJson(params) !== asked) throw new TypeError(native().NativeMiddleware.paramsChanged(method));
      return prepared;
    });
    const wire = written(type, changed) ?? {};
    return toJson(wire) === before ? undefined : wire;
  } catch (thrown) {
    if (thrown !== failure) throw thrown;
    const traces = tracing();
    if (traces && error) failActiveSpan(traces, error.code, error.message);
    return undefined;
  }
}

/** The types that the core names, with the functions that read and write them. */
const TYPES = {
  Tool: [toolFromWire, toolToWire],
  Resource: [resourceFromWire, resourceToWire],
  ResourceTemplate: [resourceTemplateFromWire, resourceToWire],
  Prompt: [promptFromWire, promptToWire],
  ToolResult: [toolResultFromWire, resultToWire],
  Completion: [(raw: unknown) => raw, (value: unknown) => value],
} as const satisfies Record<string, readonly [(raw: Wire) => unknown, (value: never) => unknown]>;

function typed({ type, member, result }: Prepared): unknown {
  const value = result && member !== undefined ? result[member] : result;
  if (value === undefined || type === undefined) return value;
  const [read] = TYPES[type];
  if (Array.isArray(value)) return { items: value.map((one: Wire) => read(one)), nextCursor: result?.["nextCursor"] };
  return read(value as Wire);
}

function written(type: keyof typeof TYPES | undefined, value: unknown): unknown {
  if (type === undefined || !isObject(value) || !Array.isArray(value["items"])) return resultToWire(value);
  const [, write] = TYPES[type];
  return { ...value, items: value["items"].map((one) => write(one as never)) };
}
