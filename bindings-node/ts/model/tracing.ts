import { createRequire } from "node:module";

import type * as Api from "@opentelemetry/api";

import type { Meta } from "./types/content.js";

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

/** Returns the trace context in a request's `_meta`. */
export function traceContextOf(meta: Meta): Record<string, string> {
  return Object.fromEntries(KEYS.flatMap((key) => (typeof meta[key] === "string" ? [[key, meta[key]]] : [])));
}
