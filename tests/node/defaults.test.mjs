// Defaults of plain JSON Schemas.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, jsonSchema, Server } from "gudgeon";
import { connect } from "gudgeon/testing";

const input = {
  type: "object",
  properties: {
    limit: { type: "integer", default: 10 },
    tags: { type: "array", items: { type: "string" }, default: ["new"] },
    page: { type: "object", properties: { size: { type: "integer", default: 5 } }, default: {} },
    books: { type: "array", items: { type: "object", properties: { lent: { type: "boolean", default: false } } } },
    name: { type: "string" },
  },
};

test("a tool's handler gets the defaults, at any depth, and what was given stays", async (t) => {
  const seen = [];
  const app = new Server("s");
  app.tool("t", { input }, (args) => void seen.push(args));
  app.tool("typed", { input: jsonSchema(input) }, (args) => void seen.push(args));
  const client = await Client.connect(app);
  t.after(() => client.close());
  await client.callTool("t");
  await client.callTool("t", { limit: 1, tags: [], page: { size: 2 }, books: [{}, { lent: true }], name: "a" });
  await client.callTool("typed", { page: { other: 1 } });
  assert.deepEqual(seen, [
    { limit: 10, tags: ["new"], page: { size: 5 } },
    { limit: 1, tags: [], page: { size: 2 }, books: [{ lent: false }, { lent: true }], name: "a" },
    { limit: 10, tags: ["new"], page: { other: 1, size: 5 } },
  ]);
});

test("a handler that changes a default changes it for its own call only", async (t) => {
  const app = new Server("s");
  app.tool("t", { input }, ({ tags }) => tags.push("x") && tags.join());
  const client = await Client.connect(app);
  t.after(() => client.close());
  assert.equal((await client.callTool("t")).text, "new,x");
  assert.equal((await client.callTool("t")).text, "new,x");
});

test("references are followed, and one that never ends does", async (t) => {
  const app = new Server("s", { schemaProfile: "full" });
  const node = { type: "object", properties: { n: { type: "integer", default: 1 }, next: { $ref: "#/$defs/node" } } };
  app.tool("t", { input: { type: "object", $defs: { node }, properties: { first: { $ref: "#/$defs/node" } } } }, ({ first }) => first);
  const endless = { type: "object", properties: { inner: { $ref: "#", default: {} } } };
  app.tool("endless", { input: endless }, (args) => typeof args.inner);
  const client = await Client.connect(app);
  t.after(() => client.close());
  assert.deepEqual((await client.callTool("t", { first: { next: {} } })).data, { n: 1, next: { n: 1 } });
  assert.equal((await client.callTool("endless")).text, "object");
});

test("prompts, methods and forms have their defaults as well", async (t) => {
  const app = new Server("s");
  const schema = { type: "object", properties: { tone: { type: "string", default: "kind" }, count: { type: "integer", default: 2 } } };
  app.prompt("p", { args: schema }, ({ tone, count }) => `${tone} ${count}`);
  app.method("acme/m", { params: schema }, (params) => params);
  app.tool("ask", {}, async (_, ctx) => JSON.stringify(await ctx.elicit("How?", schema)));
  const client = await connect(app, { answers: { "How?": { count: 3 } } });
  t.after(() => client.close());
  assert.equal((await client.getPrompt("p")).messages[0].text, "kind 2");
  const { tone, count } = await client.request("acme/m", { tone: "dry" });
  assert.deepEqual({ tone, count }, { tone: "dry", count: 2 });
  assert.equal((await client.callTool("ask")).text, '{"count":3,"tone":"kind"}');
});

test("data that is read by an output schema has its defaults", async (t) => {
  const app = new Server("s");
  app.tool("t", {}, () => ({ n: 1 }));
  const client = await Client.connect(app);
  t.after(() => client.close());
  const output = { type: "object", properties: { n: { type: "integer" }, unit: { type: "string", default: "kg" } } };
  assert.deepEqual((await client.callTool("t", {}, { output })).data, { n: 1, unit: "kg" });
});
