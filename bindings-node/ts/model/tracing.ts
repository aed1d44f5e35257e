import { createRequire } from "node:module";

import type * as Api from "@opentelemetry/api";

import type { Meta } from "./types/content.js";

/** A span of a request, as the native half describes it. */
export interface SpanDescription {
  readonly title: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** The values that propagators read. */
  readonly carrier: Readonly<Record<string, string>>;
  /** The `traceparent` of a span to link. */
  readonly link?: string;
}

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

/** Returns a request's `_meta` with the trace context of the active span, if there is one. Its own members take precedence. */
export function withTraceContext(meta: Meta | undefined): Meta | undefined {
  const own = activeTrace();
  return own ? { ...own, ...meta } : meta;
}

/** A trace context, as in `_meta` and in the headers of HTTP. */
export interface ActiveTrace {
  traceparent?: string;
  tracestate?: string;
  baggage?: string;
}

/** Returns the trace context of the active span, such as that of a web framework, if there is one. */
export function activeTrace(): ActiveTrace | undefined {
  const found = tracing();
  return found ? contextOf(found) : undefined;
}

/** Returns the fields of log events that name the active span; empty without one. */
export function activeIds(): { trace_id?: string; span_id?: string } {
  const found = tracing();
  const span = found?.trace.getSpanContext(found.context.active());
  return found && span && found.isSpanContextValid(span) ? { trace_id: span.traceId, span_id: span.spanId } : {};
}

function contextOf(found: typeof Api): ActiveTrace | undefined {
  const active = found.context.active();
  const span = found.trace.getSpanContext(active);
  if (!span || !found.isSpanContextValid(span)) return undefined;
  const carrier: Record<string, string> = {};
  found.propagation.inject(active, carrier);
  return Object.fromEntries(KEYS.flatMap((key) => (carrier[key] === undefined ? [] : [[key, carrier[key]]])));
}
