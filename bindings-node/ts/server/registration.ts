import { stringify } from "../model/stringify.js";
import { checked, native } from "../native.js";
import { checkedAnnotations, checkedToolAnnotations } from "../model/annotations.js";
import { refuseUnknown } from "../model/checks.js";
import { ProtocolError } from "../model/errors.js";
import { then } from "../model/promises.js";
import type { PromptOptions, ResourceOptions, ToolOptions } from "../model/types/options.js";
import type { Schema } from "../model/types/schema.js";
import { isObject } from "../model/values.js";
import { compileInput, type CompiledSchema, compileSchema } from "../schema/compile.js";
import { type HandlerSpec, makePlan, promptCall, toolCall } from "../plan/plan.js";
import { promptArguments } from "../plan/prompt-arguments.js";
import { checkComponentOptions } from "./component-options.js";
import { isTemplate, type Kind, type ServerCore } from "./core.js";
import type { Visible } from "./visibility.js";

type Wire = Record<string, unknown>;
/** A handler of any kind; its types are those of the public method that takes it. */
export type Handle = (...args: unknown[]) => unknown;

/** The methods by which clients reach handlers; others are reached by their own. */
const METHODS: Readonly<Record<string, string>> = {
  tool: "tools/call", resource: "resources/read", prompt: "prompts/get", completion: "completion/complete",
};
const NO_ARGUMENTS = { type: "object", properties: {} };

export function registerTool(
  core: ServerCore,
  name: string,
  options: ToolOptions<Schema | undefined, Schema | undefined>,
  handler: Handle,
): void {
  const place = placeOf("tool", name, options, handler);
  checkComponentOptions("tool", place, options);
  const { input = options.inputSchema, output, annotations, concurrency, replay, exposeErrors, unknownArguments, convertArguments } = options;
  if (options.input && options.inputSchema) throw new TypeError(`${place}: input and inputSchema are one option; give one of them`);
  const profile = options.schemaProfile ?? core.options.schemaProfile;
  const given: CompiledSchema = input ? compileInput(input, `${place}, input`, profile) : { json: NO_ARGUMENTS, validate: undefined, fill: undefined };
  const taken = output ? compileSchema(output, `${place}, output`, profile, "output") : undefined;
  const properties = taken?.json["properties"];
  const hasContentKey = isObject(properties) && "content" in properties;
  register(core, "tool", place, name, {
    visible: options.visible,
    declaration: {
      ...common(options),
      name,
      inputSchema: given.json,
      outputSchema: taken?.json,
      annotations: annotations && checkedToolAnnotations(place, annotations as Wire),
      // The library validates as well, and its messages reach the model.
      validates: given.validate !== undefined,
      // A library refuses BigInts where it expects numbers.
      hasDoublesOnly: given.validate === undefined,
      // A plain JSON Schema is closed only if it says so itself.
      closed: unknownArguments !== "ignore" && (!input || given.validate !== undefined),
      convertArguments,
      concurrency,
      replay,
    },
    spec: {
      kind: "tool",
      exposeErrors,
      hasContentKey,
      call: toolCall(handler, given.validate ?? given.fill, taken?.validate, hasContentKey),
    },
  });
}

export function registerResource(core: ServerCore, uri: string, options: ResourceOptions, handler: Handle): void {
  const place = placeOf("resource", uri, options, handler);
  checkComponentOptions("resource", place, options);
  const hasVariables = isTemplate(uri);
  const annotations = options.annotations && checkedAnnotations(place, options.annotations);
  const { name = uri, mimeType, size, ttlMs, cacheScope, cacheMs, paths, uncheckedPaths } = options;
  register(core, hasVariables ? "resourceTemplate" : "resource", place, uri, {
    visible: options.visible,
    declaration: {
      ...common(options), [hasVariables ? "uriTemplate" : "uri"]: uri, name, mimeType, annotations, size, ttlMs, cacheScope,
      cacheMs, paths, uncheckedPaths,
    },
    spec: {
      kind: "resource",
      call: handler,
    },
  });
}

export function registerPrompt(core: ServerCore, name: string, options: PromptOptions<Schema | undefined>, handler: Handle): void {
  const place = placeOf("prompt", name, options, handler);
  checkComponentOptions("prompt", place, options);
  const args = options.args ? compileInput(options.args, `${place}, args`, core.options.schemaProfile) : undefined;
  register(core, "prompt", place, name, {
    visible: options.visible,
    declaration: { ...common(options), name, arguments: args ? promptArguments(args.json, `${place}, args`) : [] },
    spec: {
      kind: "prompt",
      call: promptCall(handler, args?.json ?? {}, args?.validate ?? args?.fill),
    },
  });
}

export function registerCompletion(core: ServerCore, target: string, argument: string, handler: Handle): void {
  const place = placeOf("complete", target, {}, handler);
  register(core, "completion", place, target, {
    declaration: { argument },
    spec: {
      kind: "completion",
      call: ({ value, arguments: given }, ctx) => handler(value, given, ctx),
    },
  });
}

export function registerMethod(core: ServerCore, name: string, options: { params: Schema }, handler: Handle): void {
  const place = placeOf("method", name, options, handler);
  const { json, validate, fill } = paramsOf(core, place, options);
  const read = validate ?? fill;
  const call: HandlerSpec["call"] = (params, ctx) => then(read ? read(params) : params, (given) => handler(given, ctx));
  register(core, "method", place, name, {
    // The messages of a library's own validation are better than those of its JSON Schema.
    declaration: { params: validate ? undefined : json },
    spec: { kind: "method", call },
  });
}

export function registerNotification(core: ServerCore, name: string, options: { params: Schema }, handler: Handle): void {
  const place = placeOf("notification", name, options, handler);
  const call = checkedCall(core, place, options, handler);
  register(core, "notification", place, name, {
    declaration: {},
    spec: { kind: "notification", call },
  });
}

export function registerRootsChanged(core: ServerCore, handler: Handle): void {
  const name = "notifications/roots/list_changed";
  const place = placeOf("onRootsChanged", name, {}, handler);
  const call: HandlerSpec["call"] = (_, ctx) => handler(ctx);
  register(core, "notification", place, name, {
    declaration: {},
    spec: { kind: "notification", call },
  });
}

function register(
  core: ServerCore,
  kind: Kind | "completion" | "method" | "notification",
  place: string,
  key: string,
  { declaration, spec, visible }: { declaration: Wire; spec: HandlerSpec; visible?: Visible | undefined },
): void {
  const method = METHODS[spec.kind] ?? key;
  const argument = declaration["argument"] as string | undefined;
  core.register({ place, kind, method, key, declaration, plan: makePlan(core, { method, key, argument }, spec), visible });
}

function paramsOf(core: ServerCore, place: string, options: { params: Schema }): CompiledSchema {
  refuseUnknown(place, ["params"], options, { input: "params", schema: "params" });
  const { params: schema } = options;
  if (schema === undefined) throw new TypeError(`${place}: params must be a schema, as in { params: z.object({ … }) }`);
  return compileInput(schema, `${place}, params`, core.options.schemaProfile, "parameter");
}

/** Returns the call of a notification, with the check of its params, which the core leaves to the binding. */
function checkedCall(core: ServerCore, place: string, options: { params: Schema }, handler: Handle): HandlerSpec["call"] {
  const { json, validate, fill } = paramsOf(core, place, options);
  if (validate) return (params, ctx) => then(validate(params), (given) => handler(given, ctx));
  const compiled = checked(`${place}, params`, () => new (native().NativeSchema)(stringify(json) ?? ""));
  return (params, ctx) => {
    const problem = compiled.violation(stringify(params) ?? "null");
    if (problem !== null) throw new ProtocolError(-32602, `Invalid params: ${problem}`);
    return handler(fill ? fill(params) : params, ctx);
  };
}

interface CommonOptions {
  title?: unknown; description?: unknown; icons?: unknown; meta?: unknown; tags?: unknown; scopes?: unknown; timeoutMs?: number | undefined;
  visible?: Visible | undefined; enabled?: boolean | undefined;
}

function common({ title, description, icons, meta, tags, scopes, timeoutMs, visible, enabled = true }: CommonOptions): Wire {
  return { title, description, icons, _meta: meta, tags, scopes, timeoutMs, enabled, guarded: visible !== undefined };
}

function placeOf(kind: string, name: unknown, options: unknown, handler: unknown): string {
  const place = `${kind} ${JSON.stringify(name)}`;
  if (typeof name !== "string") throw new TypeError(`${place}: the name must be a string`);
  if (typeof options === "function") throw new TypeError(`${place}: the options come before the handler; without options write {}`);
  if (typeof options !== "object" || options === null) throw new TypeError(`${place}: the options must be an object; without options write {}`);
  if (typeof handler !== "function") throw new TypeError(`${place}: the handler must be a function`);
  return place;
}
