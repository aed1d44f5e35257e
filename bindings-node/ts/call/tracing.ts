import { createRequire } from "node:module";

import type * as Api from "@opentelemetry/api";

import type { CallContext } from "./context.js";
import { ToolResult } from "../model/results.js";
import { isPromise } from "../schema/compile.js";
import type { Meta } from "../model/types.js";

/** The subject of a span: the method, and the name of the tool or prompt. */
export type Subject = readonly [method: string, name: string | undefined];

/** The global under which OpenTelemetry's API registers itself; without it nothing is traced. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");
/** Spec: Base Protocol › General fields › OpenTelemetry trace context. */
const KEYS = ["traceparent", "tracestate", "baggage"] as const;

let api: typeof Api | null | undefined;

/** Returns OpenTelemetry's API if the program has set it up; it is not loaded otherwise. */
export function tracing(): typeof Api | null {
  if (api !== undefined) return api;
  if (!(REGISTERED in globalThis)) return null;
  try {
    api = createRequire(import.meta.url)("@opentelemetry/api") as typeof Api;
  } catch {
    api = null;
  }
  return api;
}

/** Runs a handler in a span of the server, a child of the one that the client's request names. */
export function inSpan<R>(api: typeof Api, subject: Subject, ctx: CallContext, call: () => R): R {
  const { context, propagation, ROOT_CONTEXT, SpanKind, trace } = api;
  const parent = propagation.extract(ROOT_CONTEXT, carrierOf(ctx.meta));
  const [method, name] = subject;
  const title = name === undefined ? method : `${method} ${name}`;
  const attributes = attributesOf(subject, ctx);
  const span = trace.getTracer("gudgeon").startSpan(title, { kind: SpanKind.SERVER, attributes }, parent);
  const fail = (error: unknown): never => {
    span.setAttribute("error.type", error instanceof Error ? error.name : typeof error);
    span.recordException(error instanceof Error ? error : String(error));
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
    span.end();
    throw error;
  };
  const end = <T>(value: T): T => {
    if (value instanceof ToolResult && value.isError) {
      span.setAttribute("error.type", "tool_error");
      span.setStatus({ code: api.SpanStatusCode.ERROR });
    }
    span.end();
    return value;
  };
  return context.with(trace.setSpan(parent, span), () => {
    let value: R;
    try {
      value = call();
    } catch (error) {
      return fail(error);
    }
    return isPromise(value) ? (value.then(end, fail) as R) : end(value);
  });
}

/** Returns a request's `_meta` with the trace context of the active span, if there is one. Its own members take precedence. */
export function stamped(meta: Meta | undefined): Meta | undefined {
  const found = tracing();
  if (!found) return meta;
  const active = found.context.active();
  const span = found.trace.getSpanContext(active);
  if (!span || !found.isSpanContextValid(span)) return meta;
  const carrier: Record<string, string> = {};
  found.propagation.inject(active, carrier);
  const own = Object.fromEntries(KEYS.flatMap((key) => (carrier[key] === undefined ? [] : [[key, carrier[key]]])));
  return { ...own, ...meta };
}

function carrierOf(meta: Meta): Record<string, string> {
  return Object.fromEntries(KEYS.flatMap((key) => (typeof meta[key] === "string" ? [[key, meta[key]]] : [])));
}

function attributesOf([method, name]: Subject, ctx: CallContext): Record<string, string> {
  return {
    "mcp.method.name": method,
    "mcp.protocol.version": ctx.revision,
    ...(ctx.requestId !== "" && { "jsonrpc.request.id": String(ctx.requestId) }),
    ...(ctx.sessionId !== undefined && { "mcp.session.id": ctx.sessionId }),
    ...(method === "tools/call" && name !== undefined && { "gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool" }),
    ...(method === "prompts/get" && name !== undefined && { "gen_ai.prompt.name": name }),
  };
}
