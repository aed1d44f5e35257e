import {
  promptFromWire, promptToWire, resourceFromWire, resourceTemplateFromWire, resourceToWire, toolFromWire, toolToWire,
} from "../model/components.js";
import { ProtocolError } from "../model/errors.js";
import { toJson } from "../model/json.js";
import {
  PromptResult, promptResultToWire, ResourceResult, resourceResultToWire, ToolResult, toolResultFromWire, toolResultToWire,
} from "../model/results.js";
import type { Context } from "../model/types/context.js";
import { isObject } from "../model/values.js";
import type { Plan, PlanOwner } from "../plan/plan.js";

type Wire = Readonly<Record<string, unknown>>;

/** The result or error of a request that the core answers without a handler. */
interface Prepared {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly result?: Wire;
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

async function runMiddleware(core: PlanOwner, { method, params, result, error }: Prepared, ctx: Context): Promise<unknown> {
  const failure = error && new ProtocolError(error.code, error.message, error.data);
  const prepared = result && read(method, result);
  const before = result && toJson(write(method, prepared, result));
  const asked = toJson(params);
  try {
    const changed = await core.around(method, params, ctx, () => {
      if (failure) throw failure;
      // An error is about the params that the client sent, so changes of them don't matter.
      if (result?.["isError"] !== true && toJson(params) !== asked) {
        throw new TypeError(
          `middleware changed the params of ${method}, which is answered from those that the client sent; change the result instead`,
        );
      }
      return prepared;
    });
    const wire = write(method, changed, result ?? {});
    return toJson(wire) === before ? undefined : wire;
  } catch (thrown) {
    if (thrown === failure) return undefined;
    throw thrown;
  }
}

/** List methods: the key of their entries, and the functions that read and write an entry. */
const LISTS: Readonly<Record<string, { name: string; from: (raw: Wire) => unknown; to: (entry: never) => Wire }>> = {
  "tools/list": { name: "tools", from: toolFromWire, to: toolToWire },
  "resources/list": { name: "resources", from: resourceFromWire, to: resourceToWire },
  "resources/templates/list": { name: "resourceTemplates", from: resourceTemplateFromWire, to: resourceToWire },
  "prompts/list": { name: "prompts", from: promptFromWire, to: promptToWire },
};

function read(method: string, result: Wire): unknown {
  if (method === "tools/call") return toolResultFromWire(result);
  if (method === "completion/complete") return result["completion"];
  const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
  if (!list) return structuredClone(result);
  return { items: (result[list.name] as Wire[]).map(list.from), nextCursor: result["nextCursor"] };
}

/** Writes a result. Members of a list that middleware can not see are copied from `result`. */
function write(method: string, value: unknown, result: Wire): Wire {
  if (value instanceof ToolResult) return toolResultToWire(value);
  if (value instanceof ResourceResult) return resourceResultToWire(value);
  if (value instanceof PromptResult) return promptResultToWire(value);
  if (method === "completion/complete") return { completion: value };
  const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
  if (list && isObject(value) && Array.isArray(value["items"])) {
    const { ttlMs, cacheScope } = result;
    return { [list.name]: (value["items"] as never[]).map(list.to), nextCursor: value["nextCursor"], ttlMs, cacheScope };
  }
  if (value === undefined || isObject(value)) return value ?? {};
  throw new TypeError(`middleware returned a ${typeof value} for ${method}; return the result of next(), or an object`);
}
