/** Integers that a number can't hold are BigInts in both directions, and others stay numbers. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ProtocolError, Server, ToolResult } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import * as z from "zod";

import { closing } from "./closing.mjs";

const BIG = 2n ** 53n + 1n;
const VALUES = [BIG, -BIG, 2n ** 53n, 2n ** 64n + 1n, 10n ** 40n, Number.MAX_SAFE_INTEGER, -1, 1.5, 1e300, String(BIG), `"${BIG}`, { [BIG]: [BIG] }];

function echoing(schema) {
  const app = new Server("echo");
  app.tool("echo", { input: schema }, ({ value }) => ({ value }));
  return app;
}

for (const revision of eras) {
  test(`arguments and data keep their integers, in ${revision}`, async () => {
    await closing(connect(echoing(z.object({ value: z.any() })), { revision }), async (client) => {
      for (const value of VALUES) {
        const result = await client.callTool("echo", { value });
        assert.deepEqual(result.data, { value });
        if (result.structuredContent !== undefined) assert.deepEqual(result.structuredContent, { value });
      }
    });
  });

  test(`a small BigInt is an integer, in ${revision}`, async () => {
    await closing(connect(echoing(z.object({ value: z.number() })), { revision }), async (client) => {
      assert.deepEqual((await client.callTool("echo", { value: 3n })).data, { value: 3 });
    });
  });

  test(`a schema of numbers refuses larger integers by name, in ${revision}`, async () => {
    const plain = { type: "object", properties: { value: { type: ["integer", "string"] } } };
    for (const [schema, problem] of [
      [z.object({ value: z.number() }), /argument 'value': .*expected number, received bigint/],
      [z.object({ value: z.int() }), /argument 'value': /],
      [plain, /argument 'value': expected an integer or a string from -\(2\^53 - 1\) to 2\^53 - 1, got 9007199254740993/],
    ]) {
      await closing(connect(echoing(schema), { revision }), async (client) => {
        await assert.rejects(client.callTool("echo", { value: BIG }), problem);
        assert.deepEqual((await client.callTool("echo", { value: 9007199254740991 })).data, { value: 9007199254740991 });
      });
    }
  });

  test(`middleware of both sides, logs and results of steps round nothing, in ${revision}`, async () => {
    const seen = [];
    const app = new Server("s");
    app.tool("give", { input: z.object({ value: z.any() }) }, async ({ value }, ctx) => {
      await ctx.log("info", { value });
      return new ToolResult("given", { structuredContent: { value: await ctx.step("once", () => value) } });
    });
    app.middleware(async (request, next) => {
      seen.push(request.params.arguments.value);
      return next();
    }, { on: "tools/call" });
    const around = async ({ method, params }, next) => {
      const result = await next();
      if (method === "tools/call") seen.push(params.arguments.value);
      return result;
    };
    const options = { revision, middleware: [around], onLog: ({ data }) => seen.push(data.value) };
    await closing(Client.connect(app, options), async (client) => {
      const { data, text } = await client.callTool("give", { value: BIG });
      if (revision >= "2025-06-18") assert.deepEqual(data, { value: BIG });
      else assert.equal(text, "given");
      assert.deepEqual(seen, [BIG, BIG, BIG]);
    });
  });

  test(`an answer of the user keeps its integers, in ${revision}`, async () => {
    if (revision < "2025-06-18") return;
    const app = new Server("s");
    app.tool("ask", {}, async (_, ctx) => ({ given: (await ctx.elicit("How many?", { type: "object", properties: { n: { type: "integer" } } })).n }));
    await closing(Client.connect(app, { revision, onElicit: () => ({ n: BIG }) }), async (client) => {
      assert.deepEqual((await client.callTool("ask")).data, { given: BIG });
    });
  });
}

test("the data of an error keeps its integers", async () => {
  const app = new Server("s");
  app.tool("fail", {}, () => { throw new ProtocolError(-32000, "full", { left: BIG }); });
  await closing(connect(app), async (client) => {
    await assert.rejects(client.callTool("fail"), (error) => error.data.left === BIG);
  });
});

test("a default or a limit of a schema may be a BigInt, and a listed schema can be written as JSON", async () => {
  const app = echoing({ type: "object", properties: { value: { type: "integer", default: 5n, maximum: 2n ** 63n - 1n } } });
  await closing(connect(app), async (client) => {
    assert.deepEqual((await client.callTool("echo")).data, { value: 5 });
    const [{ inputSchema }] = await client.listTools();
    assert.equal(typeof inputSchema.properties.value.maximum, "number");
    JSON.stringify(inputSchema);
  });
});

test("an integer in a prompt's argument, which is a text, is not rounded", async () => {
  const app = new Server("s");
  app.prompt("count", { args: z.object({ n: z.number() }) }, ({ n }) => String(n));
  await closing(connect(app), async (client) => {
    await assert.rejects(client.getPrompt("count", { n: String(BIG) }), /expected number, received bigint/);
  });
});
