import type * as Api from "@opentelemetry/api";

import { isPromise } from "../model/promises.js";
import { ToolResult } from "../model/results.js";
import { traceContextOf } from "../model/tracing.js";
import type { Context } from "../model/types/context.js";
import type { Subject } from "../plan/plan.js";

/** Runs a handler in a span of the server, a child of the one that the client's request names. */
export function inSpan<R>(api: typeof Api, subject: Subject, ctx: Context, call: () => R): R {
  const { context, propagation, ROOT_CONTEXT, SpanKind, trace } = api;
  const parent = propagation.extract(ROOT_CONTEXT, traceContextOf(ctx.meta));
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

function attributesOf([method, name]: Subject, ctx: Context): Record<string, string> {
  return {
    "mcp.method.name": method,
    "mcp.protocol.version": ctx.revision,
    ...(ctx.requestId !== "" && { "jsonrpc.request.id": String(ctx.requestId) }),
    ...(ctx.sessionId !== undefined && { "mcp.session.id": ctx.sessionId }),
    ...(method === "tools/call" && name !== undefined && { "gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool" }),
    ...(method === "prompts/get" && name !== undefined && { "gen_ai.prompt.name": name }),
  };
}
