import { isObject } from "./content.js";
import type { CallContext } from "./context.js";
import type { ServerCore } from "./core.js";
import { ProtocolError } from "./errors.js";
import { toJson } from "./json.js";
import {
  promptFromWire, promptToWire, resourceFromWire, resourceTemplateFromWire, resourceToWire, toolFromWire, toolToWire,
} from "./components.js";
import type { Plan } from "./plan.js";
import {
  PromptResult, promptResultToWire, ResourceResult, resourceResultToWire, ToolResult, toolResultFromWire,
  toolResultToWire,
} from "./results.js";

type Wire = Readonly<Record<string, unknown>>;

/** What the core has for a request that needs no handler. */
interface Prepared {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly result?: Wire;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Runs a server's middleware around what the core answers by itself; undefined leaves that as it is. */
export function passingPlan(core: ServerCore): Plan {
  return {
    kind: "prepared",
    owner: core,
    exposeErrors: core.options.exposeErrors ?? [],
    subject: ({ method }) => [String(method), undefined],
    invoke: (input, ctx) => pass(core, input as unknown as Prepared, ctx),
  };
}

async function pass(core: ServerCore, { method, params, result, error }: Prepared, ctx: CallContext): Promise<unknown> {
  const failure = error && new ProtocolError(error.code, error.message, error.data);
  const prepared = result && read(method, result);
  const before = result && toJson(write(method, prepared, result));
  const asked = toJson(params);
  try {
    const changed = await core.around(method, params, ctx, () => {
      if (failure) throw failure;
      // A refusal says what is wrong with what the client sent.
      if (result?.["isError"] !== true && toJson(params) !== asked) {
        throw new TypeError(
          `the core answers ${method} from what the client sent: middleware can change the result, not the params`,
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

/** Lists: where their entries stand, and how they are read and written. */
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

/** What only `result` knew of a list stays. */
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
  throw new TypeError(`middleware gave a ${typeof value} for ${method}: it gives what next() gave, or an object`);
}
