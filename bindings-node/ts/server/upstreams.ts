import { CallContext } from "../call/context.js";
import { keepFailure } from "../call/failures.js";
import { parseJson } from "../model/big-integers.js";
import { Cancelled, Declined, McpError, NotSupported, ProtocolError, ResourceNotFound, ToolError } from "../model/errors.js";
import { toJson } from "../model/json.js";
import { promptResultFromWire, type ResourceResult, resourceResultFromWire, ToolResult, toolResultFromWire } from "../model/results.js";
import type { Meta } from "../model/types/content.js";
import type { Context } from "../model/types/context.js";
import { native } from "../native.js";
import { aroundCall, type Plan, type PlanOwner } from "../plan/plan.js";
import { type ComponentKind, toReply } from "../plan/replies.js";

type Wire = Record<string, unknown>;

/** The servers that a call passes, the innermost first, each with the prefix that its names have there. */
export type UpstreamPath = readonly { readonly owner: PlanOwner; readonly prefix: string }[];

interface Sort {
  readonly kind: Extract<ComponentKind, "tool" | "resource" | "prompt" | "completion">;
  readonly method: string;
  /** Reads a result of the server as middleware sees it. */
  read(result: Wire): unknown;
}

/** The kinds of registrations, as the native half names them. */
const SORTS: Readonly<Record<string, Sort>> = {
  tools: { kind: "tool", method: "tools/call", read: (result) => toolResultFromWire(result) },
  resources: { kind: "resource", method: "resources/read", read: resourceResultFromWire },
  templates: { kind: "resource", method: "resources/read", read: resourceResultFromWire },
  prompts: { kind: "prompt", method: "prompts/get", read: promptResultFromWire },
  completions: { kind: "completion", method: "completion/complete", read: ({ completion }) => completion },
};

/** Returns the kinds of registrations around which middleware of these servers runs. */
export function wrappedKinds(path: UpstreamPath): string[] {
  const isWrapped = ({ method }: Sort): boolean => path.some(({ owner }) => owner.hasMiddleware(method));
  return Object.entries(SORTS).flatMap(([kind, sort]) => (isWrapped(sort) ? [kind] : []));
}

/** Returns the plan that runs the middleware of these servers around a call of an upstream server. `rest` follows the prefixes. */
export function aroundUpstream(path: UpstreamPath, rest: string): Plan {
  const [{ owner }] = path as [UpstreamPath[number]];
  return {
    kind: "prepared",
    owner,
    exposeErrors: owner.options.exposeErrors ?? [],
    invoke: (input, ctx) => passOn(path, rest, input, ctx),
  };
}

/** Reads a resource of an upstream server on behalf of a handler. Throws ResourceNotFound if none has this URI. */
export async function readUpstreamResource(ctx: Context, uri: string): Promise<ResourceResult> {
  const reading = ctx instanceof CallContext ? ctx.readUpstream(uri) : null;
  if (reading === null) throw new ResourceNotFound(uri);
  const [result, failure] = await reading;
  if (failure !== null) throw keepFailure(errorOf(parseJson(failure) as Failed), failure);
  return resourceResultFromWire(parseJson(result ?? "{}") as Wire);
}

async function passOn(path: UpstreamPath, rest: string, given: Wire, ctx: Context): Promise<unknown> {
  if (!(ctx instanceof CallContext)) throw new TypeError("only the native half calls upstream servers");
  const [of, own, argument] = ctx.nativeSubject();
  const { kind, method, read } = SORTS[of] as Sort;
  const key = of === "templates" ? String(given["uri"]) : own;
  let call: Plan["invoke"] = async (input) => {
    // Middleware can't change which resource is read.
    const [result, failure] = await ctx.passOn(toJson(kind === "resource" ? given : input));
    if (failure !== null) throw keepFailure(errorOf(parseJson(failure) as Failed), failure);
    return read(parseJson(result ?? "{}") as Wire);
  };
  for (const { owner, prefix } of path) {
    const name = native().NativeServer.mountedKey(kind, prefix + rest, key);
    call = aroundCall(owner, kind, { method, key: name, argument }, call);
  }
  const value = await call(given, ctx);
  return parseJson(native().NativeMiddleware.result(kind, key, null, ...toReply(kind, value)));
}

/** A failure, as the native half describes it. */
interface Failed {
  readonly kind: string;
  readonly message?: string;
  readonly code?: number;
  readonly data?: unknown;
  readonly uri?: string;
  readonly meta?: Meta;
}

/** Returns the error that a failure of the upstream server is to middleware. */
function errorOf({ kind, message = "", code = 0, data, uri = "", meta }: Failed): Error {
  switch (kind) {
    case "tool":
      return new ToolError(message, undefined, { result: new ToolResult(message, { isError: true, meta }) });
    case "protocol":
      return new ProtocolError(code, message, data);
    case "notFound":
      return new ResourceNotFound(uri, message === "" ? undefined : message);
    case "missingCapability":
      return new NotSupported(message, { data });
    case "declined":
    case "dismissed":
      return new Declined(message);
    case "cancelled":
      return new Cancelled(message);
    default:
      return new McpError(message);
  }
}
