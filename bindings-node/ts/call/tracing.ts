import type * as Api from "@opentelemetry/api";

import { isPromise } from "../model/promises.js";
import { ToolResult } from "../model/results.js";
import type { SpanDescription } from "../model/tracing.js";

/** Runs a handler in a span of the server, a child of the one that caused the client's request. */
export function inSpan<R>(api: typeof Api, description: SpanDescription, call: () => R): R {
  const { context, trace } = api;
  const { parent, span } = start(api, description);
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

/** Makes the span of a request that was answered without a handler; `error` is the message of the error, if it got one. */
export function answeredSpan(api: typeof Api, description: SpanDescription, error: string | null, milliseconds: number): void {
  const { span } = start(api, description, Date.now() - milliseconds);
  if (error !== null) span.setStatus({ code: api.SpanStatusCode.ERROR, message: error });
  span.end();
}

/** Marks the active span as that of a request that was answered with an error. */
export function failActiveSpan(api: typeof Api, code: number, message: string): void {
  const span = api.trace.getActiveSpan();
  span?.setAttributes({ "error.type": String(code), "rpc.response.status_code": String(code) });
  span?.setStatus({ code: api.SpanStatusCode.ERROR, message });
}

function start(api: typeof Api, { title, attributes, carrier, link }: SpanDescription, startTime?: number): { parent: Api.Context; span: Api.Span } {
  const { propagation, ROOT_CONTEXT, SpanKind, trace } = api;
  const parent = propagation.extract(ROOT_CONTEXT, carrier);
  const linked = link === undefined ? undefined : trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { traceparent: link }));
  const links = linked ? [{ context: linked }] : [];
  const options = { kind: SpanKind.SERVER, attributes: { ...attributes }, links, ...(startTime !== undefined && { startTime }) };
  return { parent, span: trace.getTracer("gudgeon").startSpan(title, options, parent) };
}
