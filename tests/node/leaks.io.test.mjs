/** Calls, sessions and clients leave nothing behind. */
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import v8 from "node:v8";

import { Client, Server } from "gudgeon";

import { eventually } from "./http.mjs";

const MANY = 200;

const app = new Server("t");
app.tool("echo", { input: { type: "object" } }, (args) => args);
app.resource("t://a", {}, () => "a");

// It collects garbage before it counts.
const promises = () => v8.queryObjects(Promise, { format: "count" });

async function leavesNothing(act) {
  await act();
  await turn();
  const before = promises();
  for (let at = 0; at < MANY; at++) await act();
  let left;
  await eventually(() => (left = promises() - before) < MANY / 4);
  assert.ok(left < MANY / 4, `${left} promises are left of ${MANY} times`);
}

test("connections in memory", () =>
  leavesNothing(async () => {
    const client = await Client.connect(app);
    await client.callTool("echo", { n: 1 });
    await client.close();
  }));

test("calls that could have been cancelled, and subscriptions", async () => {
  const client = await Client.connect(app);
  const { signal } = new AbortController();
  await leavesNothing(() => client.callTool("echo", { n: 1 }, { signal, onProgress: () => {} }));
  await leavesNothing(async () => {
    const changes = await client.subscribe({ uris: ["t://a"] }).open();
    app.notifyUpdated("t://a");
    for await (const _ of changes) break;
  });
  await client.close();
});

test("servers that listen, and their clients", () =>
  leavesNothing(async () => {
    const listening = await app.listen("http://127.0.0.1:0/mcp");
    const client = await Client.connect(listening.url, { revision: "2025-11-25" });
    await client.callTool("echo", { n: 1 });
    await client.close();
    await listening.close();
  }));
