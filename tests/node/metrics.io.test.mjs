/** Metrics through OpenTelemetry. Their names and rules are tested in core/tests/sans_io/metrics.rs. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { metrics } from "@opentelemetry/api";
import { Client, Server } from "gudgeon";

import { eventually } from "./http.mjs";

/** A meter provider that keeps what it is given; `collect` is what a reader does. */
class Provider {
  recorded = [];
  callbacks = [];

  getMeter(name) {
    assert.equal(name, "gudgeon");
    const observable = (kind) => (instrument, { unit }) => ({ instrument, kind, unit });
    return {
      createHistogram: (instrument, { advice }) => ({
        record: (value, attributes) => this.recorded.push({ instrument, value, attributes, bounds: advice.explicitBucketBoundaries }),
      }),
      createObservableCounter: observable("counter"),
      createObservableGauge: observable("gauge"),
      addBatchObservableCallback: (callback) => this.callbacks.push(callback),
    };
  }

  collect() {
    const observed = [];
    for (const callback of this.callbacks) {
      callback({ observe: ({ instrument, kind }, value, attributes) => observed.push({ instrument, kind, value, attributes }) });
    }
    return observed;
  }
}

function shelf(name) {
  const app = new Server(name);
  app.tool("one", {}, () => "1");
  app.tool("fail", {}, () => {
    throw new Error("no");
  });
  return app;
}

test("without a meter provider nothing is counted, with one calls and amounts are", async () => {
  const silent = await Client.connect(shelf("silent"));
  await silent.callTool("one");
  await silent.close();
  const provider = new Provider();
  metrics.setGlobalMeterProvider(provider);
  const client = await Client.connect(shelf("counted"));
  for (let number = 0; number < 3; number++) await client.callTool("one");
  await client.callTool("fail", {}, { throwOnError: false });
  await assert.rejects(client.callTool("nil"), /Unknown tool/);
  const observed = provider.collect();
  const calls = provider.recorded.filter(({ attributes }) => attributes["mcp.method.name"] === "tools/call");
  const described = calls.map(({ attributes }) => [attributes["gen_ai.tool.name"], attributes["error.type"]]);
  assert.deepEqual(described.sort(), [["fail", "tool_error"], ["one", undefined], ["one", undefined], ["one", undefined], [undefined, "invalid"]].sort());
  for (const { instrument, value, attributes, bounds } of calls) {
    assert.equal(instrument, "mcp.server.operation.duration");
    assert.equal(attributes["gudgeon.server"], "counted");
    assert.ok(value >= 0 && value < 60);
    assert.deepEqual(bounds.slice(0, 2), [0.01, 0.02]);
  }
  const [inFlight] = observed.filter(({ instrument }) => instrument === "gudgeon.in_flight");
  assert.deepEqual(inFlight, { instrument: "gudgeon.in_flight", kind: "gauge", value: 0, attributes: { "gudgeon.server": "counted" } });
  const before = provider.recorded.length;
  provider.collect();
  assert.equal(provider.recorded.length, before, "what was recorded is not recorded again");
  await client.callTool("one");
  assert.ok(await eventually(() => provider.recorded.length > before), "a timer records as well");
  await client.close();
});
