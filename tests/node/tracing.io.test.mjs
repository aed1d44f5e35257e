/** OpenTelemetry: spans of handlers below the client's, the context in `_meta`, and nothing at all without an SDK. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { context, propagation, SpanKind, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import express from "express";
import { Client, middleware, Server, ToolError, ToolResult } from "gudgeon";
import { connect, eras } from "gudgeon/testing";

import { eventually } from "./http.mjs";

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const tracer = trace.getTracer("test");

function traced() {
  const app = new Server("traced");
  app.tool("meta", {}, async (_, ctx) => {
    await null;
    trace.getActiveSpan()?.addEvent("inside");
    const { traceparent, baggage, own } = ctx.meta;
    return JSON.stringify({ traceparent, baggage, own, seen: propagation.getActiveBaggage()?.getEntry("user")?.value });
  });
  app.tool("fails", {}, () => {
    throw new ToolError("no");
  });
  app.tool("says", {}, () => new ToolResult("no", { isError: true }));
  app.prompt("greet", {}, () => "hi");
  app.resource("t://about", {}, () => "x");
  return app;
}

async function spansOf(app, era, use) {
  exporter.reset();
  const client = await connect(app, { revision: era });
  const baggage = propagation.createBaggage({ user: { value: "ada" } });
  const span = tracer.startSpan("outer");
  try {
    const active = propagation.setBaggage(trace.setSpan(context.active(), span), baggage);
    const result = await context.with(active, () => use(client));
    return { outer: span.spanContext(), result, spans: [...exporter.getFinishedSpans()] };
  } finally {
    span.end();
    await client.close();
  }
}

for (const era of eras) {
  test(`a handler's span lies below the client's: ${era}`, async () => {
    const { outer, result, spans } = await spansOf(traced(), era, (client) => client.callTool("meta", {}, { meta: { own: 1 } }));
    // For the schema of the result, a client may ask for the list of tools first.
    const [span, ...others] = spans.filter(({ name }) => name !== "tools/list");
    assert.equal(others.length, 0);
    assert.equal(span.name, "tools/call meta");
    assert.equal(span.spanContext().traceId, outer.traceId);
    assert.equal(span.parentSpanContext.spanId, outer.spanId);
    assert.equal(span.attributes["mcp.method.name"], "tools/call");
    assert.equal(span.attributes["gen_ai.tool.name"], "meta");
    assert.equal(span.attributes["mcp.protocol.version"], era);
    assert.deepEqual(span.events.map(({ name }) => name), ["inside"]);
    const said = JSON.parse(result.text);
    assert.equal(said.traceparent, `00-${outer.traceId}-${outer.spanId}-01`);
    assert.deepEqual([said.baggage, said.own, said.seen], ["user=ada", 1, "ada"]);
  });
}

test("prompts, resources and failures have their spans", async () => {
  const app = traced();
  const { spans } = await spansOf(app, "2025-11-25", async (client) => {
    await client.getPrompt("greet");
    await client.readResource("t://about");
    await client.callTool("fails", {}, { throwOnError: false });
    await client.callTool("says", {}, { throwOnError: false });
  });
  assert.deepEqual(spans.map(({ name }) => name), ["prompts/get greet", "resources/read", "tools/call fails", "tools/call says"]);
  assert.deepEqual(spans.map(({ attributes }) => attributes["error.type"]), [undefined, undefined, "ToolError", "tool_error"]);
  assert.deepEqual(spans.map(({ status }) => status.code), [0, 0, 2, 2]);
});

test("requests that no handler answers have spans", async () => {
  const { outer, spans } = await spansOf(traced(), "2026-07-28", async (client) => {
    await client.listTools();
    await client.callTool("nil").catch(() => undefined);
    await client.callTool("meta", { more: 1 }, { throwOnError: false });
    // A request without a handler is told of after its answer.
    while (exporter.getFinishedSpans().length < 3) await sleep(5);
  });
  const told = spans.map(({ name, attributes, status, parentSpanContext }) => [name, attributes["error.type"], status.code, parentSpanContext.spanId]);
  assert.deepEqual(told, [
    ["tools/list", undefined, 0, outer.spanId],
    ["tools/call", "-32602", 2, outer.spanId],
    ["tools/call meta", "tool_error", 2, outer.spanId],
  ]);
});

/** Calls the tool `fails` over HTTP with this `_meta`. Returns the span of the server. */
async function ask(app, meta) {
  exporter.reset();
  const own = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, ...meta };
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "fails", _meta: own } };
  const request = new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call", "mcp-name": "fails", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    },
    body: JSON.stringify(body),
  });
  const response = await app.fetch(request);
  assert.equal(response.status, 200);
  await response.text();
  const [span] = exporter.getFinishedSpans();
  return span;
}

test("below a host, the parent is in _meta, or active, or in the headers", async () => {
  const app = traced();
  assert.equal((await ask(app, {})).parentSpanContext.spanId, "b7ad6b7169203331");
  const host = tracer.startSpan("POST /mcp");
  await context.with(trace.setSpan(context.active(), host), async () => {
    assert.equal((await ask(app, {})).parentSpanContext.spanId, host.spanContext().spanId);
    const span = await ask(app, { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" });
    assert.equal(span.parentSpanContext.spanId, "00f067aa0ba902b7");
    assert.deepEqual(span.links.map((link) => link.context.spanId), [host.spanContext().spanId]);
    assert.equal(span.attributes["mcp.session.id"], undefined);
  });
  host.end();
  await app.close();
});

for (const [title, ...parsers] of [["Express"], ["Express with express.json()", express.json()]]) {
  test(`the span of a tool lies below that of its request: ${title}`, async () => {
    exporter.reset();
    const app = traced();
    // What OpenTelemetry's instrumentation of HTTP does.
    const host = express().use((request, response, next) => {
      const span = tracer.startSpan(`${request.method} ${request.originalUrl}`, { kind: SpanKind.SERVER });
      response.once("close", () => span.end());
      context.with(trace.setSpan(context.active(), span), next);
    });
    for (const parser of parsers) host.use(parser);
    host.use("/deep/mcp", app.node);
    const server = host.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      for (const revision of eras) {
        const client = await Client.connect(`http://127.0.0.1:${server.address().port}/deep/mcp`, { revision });
        await client.callTool("meta");
        await client.close();
      }
      const tools = exporter.getFinishedSpans().filter(({ name }) => name === "tools/call meta");
      assert.equal(tools.length, eras.length);
      const requests = () => exporter.getFinishedSpans().filter(({ kind, name }) => kind === SpanKind.SERVER && name === "POST /deep/mcp");
      const parentOf = (tool) => requests().find((request) => request.spanContext().spanId === tool.parentSpanContext.spanId);
      // The span of a request ends after its answer was read.
      assert.ok(await eventually(() => tools.every(parentOf)), "each is below a request");
      for (const tool of tools) assert.equal(tool.spanContext().traceId, parentOf(tool).spanContext().traceId);
      assert.equal(new Set(tools.map((tool) => tool.parentSpanContext.spanId)).size, eras.length, "each has a request of its own");
    } finally {
      await app.close();
      server.close();
    }
  });
}

test("log events have the ids of the span", async () => {
  const events = [];
  const note = (_, detail) => void events.push(detail);
  const app = new Server("traced", { logger: { debug: note, info: note, warn: note, error: note } });
  app.tool("open", {}, () => "open");
  app.middleware(middleware.timing(), { on: "tools/call" });
  const { outer, spans } = await spansOf(app, "2026-07-28", async (client) => {
    await client.callTool("open");
    await client.callTool("nil").catch(() => undefined);
    for (const end = Date.now() + 10_000; Date.now() < end && !events.some(({ event }) => event === "call.rejected"); ) await sleep(10);
  });
  const timed = events.find(({ event }) => event === "request.timed");
  assert.deepEqual([timed.trace_id, timed.span_id], [outer.traceId, spans[0].spanContext().spanId]);
  const rejected = events.find(({ event }) => event === "call.rejected");
  assert.deepEqual([rejected.trace_id, rejected.span_id], [outer.traceId, outer.spanId]);
});

test("a request without a context begins a trace of its own, and no span stamps nothing", async () => {
  exporter.reset();
  const client = await connect(traced(), {});
  const said = JSON.parse((await client.callTool("meta")).text);
  await client.close();
  assert.equal(said.traceparent, undefined);
  const [span] = exporter.getFinishedSpans();
  assert.equal(span.parentSpanContext, undefined);
});

test("a program without OpenTelemetry never loads it", () => {
  const program = `
    import { createRequire } from "node:module";
    import { Server } from "gudgeon";
    import { connect } from "gudgeon/testing";
    const app = new Server("t");
    app.tool("meta", {}, (_, ctx) => String("traceparent" in ctx.meta));
    const client = await connect(app, { revision: "2025-11-25" });
    const said = (await client.callTool("meta")).text;
    await client.close();
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes("opentelemetry"));
    console.log(said, loaded.length);
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  assert.equal(stdout.trim(), "false 0", stderr);
});
