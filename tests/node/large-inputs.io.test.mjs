/** Large strings of arguments reach a handler beside the other arguments: it sees them as if they were small. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { connect } from "gudgeon/testing";

import { CallScheduler } from "../../bindings-node/dist/modules/call/scheduler.js";
import { MODERN } from "./child.mjs";

const SIZE = 100_000;
const OPEN = { type: "object", properties: {}, additionalProperties: true };

/** Calls a tool with arguments given as JSON text; returns what its handler saw. */
async function seen(text) {
  const app = new Server("t");
  let arrived;
  app.tool("take", { input: OPEN }, (args) => void (arrived = args));
  const listening = await app.listen("http://127.0.0.1:0/mcp");
  try {
    const params = `{"name":"take","arguments":${text},"_meta":${JSON.stringify(MODERN)}}`;
    const response = await fetch(listening.url, {
      method: "POST",
      headers: {
        "content-type": "application/json", accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "take",
      },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
    });
    assert.equal(response.status, 200, await response.text());
    return arrived;
  } finally {
    await listening.close();
  }
}

for (const [what, size] of [["small", 1], ["large", SIZE]]) {
  const plain = "x".repeat(size);
  const special = "ü\"\\\n\u0000😀".repeat(size);

  test(`${what}: names, order and characters stay`, async () => {
    const args = { b: plain, a: { deep: plain, list: [special] }, "é\"": special, n: 1, c: plain };
    const arrived = await seen(JSON.stringify(args));
    assert.deepEqual(arrived, args);
    assert.equal(JSON.stringify(arrived), JSON.stringify(args));
  });

  test(`${what}: of arguments with one name the last counts`, async () => {
    assert.deepEqual(await seen(`{"a":"${plain}","a":null}`), { a: null });
    assert.deepEqual(await seen(`{"a":1,"b":2,"\\u0061":"${plain}"}`), { a: plain, b: 2 });
    assert.deepEqual(await seen(`{"a":{"x":"${plain}"},"a":{"x":"y"}}`), { a: { x: "y" } });
  });

  test(`${what}: a name like a property of all objects is an argument`, async () => {
    const arrived = await seen(`{"__proto__":"${plain}","constructor":"${plain}"}`);
    assert.deepEqual(Object.entries(arrived), [["__proto__", plain], ["constructor", plain]]);
    assert.equal(Object.getPrototypeOf(arrived), Object.prototype);
  });
}

test("prompts and middleware see them as well", async () => {
  const app = new Server("t");
  const large = "é".repeat(SIZE);
  const lengths = [];
  app.middleware(({ params }, next) => {
    lengths.push(params.arguments.text.length);
    return next();
  }, { on: ["prompts/get"] });
  app.prompt("review", { args: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } }, ({ text }) => [text]);
  const client = await connect(app);
  const { messages } = await client.getPrompt("review", { text: large });
  assert.equal(messages[0].content.text, large);
  assert.deepEqual(lengths, [SIZE]);
  await client.close();
});

test("a handler does not run for a call that was cancelled before its large arguments were taken", () => {
  let runs = 0;
  const run = [0, 0, 0, { text: "" }, "2026-07-28", 1, ["text"]];
  const batches = [JSON.stringify([run, [3, 0]]), JSON.stringify([run.with(1, 1)])];
  const taken = [null, "x"];
  const queue = { takeBatch: () => batches.shift() ?? null, takeText: () => taken.shift(), reply: () => {} };
  const plan = { kind: "tool", invoke: ({ text }) => (runs += text.length) };
  const scheduler = new CallScheduler({ plans: [plan], logger: console }, () => queue);
  scheduler.start();
  assert.equal(runs, 0);
  scheduler.drain();
  assert.equal(runs, 1);
});
