/** Arguments that a tool's input schema does not name are refused, unless the tool says otherwise. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonSchema, Server } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import { type } from "arktype";
import * as z from "zod";

import { closing } from "./closing.mjs";

const input = z.object({ query: z.string(), limit: z.number().optional(), page: z.object({ size: z.number() }).optional() });
const echo = (args) => Object.keys(args).sort().join();

function search() {
  const app = new Server("t");
  app.tool("search", { input }, echo);
  app.tool("lenient", { input, unknownArguments: "ignore" }, echo);
  app.tool("strict", { input: z.strictObject({ a: z.number().optional() }) }, echo);
  app.tool("loose", { input: z.looseObject({ a: z.number().optional() }) }, echo);
  app.tool("ark", { input: type({ "query?": "string" }) }, echo);
  app.tool("plain", { input: { type: "object", properties: { query: { type: "string" } } } }, echo);
  app.tool("typed", { input: jsonSchema({ type: "object", properties: {}, additionalProperties: false }) }, echo);
  app.tool("bare", {}, () => "ok");
  return app;
}

for (const revision of eras) {
  test(`unknown arguments are refused by name, in ${revision}`, () =>
    closing(connect(search(), { revision }), async (client) => {
      const text = async (name, args) => (await client.callTool(name, args)).text;
      const refused = (name, args, message) => assert.rejects(client.callTool(name, args), message);
      await refused("search", { query: "a", limt: 3 }, /unknown argument 'limt'; did you mean 'limit'\?/);
      await refused("search", { query: "a", colour: 3 }, /unknown argument 'colour'; this tool takes: query, limit, page/);
      await refused("strict", { b: 1 }, /Unrecognized key: "b"/); // zod's own message
      await refused("ark", { qery: "a" }, /unknown argument 'qery'; did you mean 'query'\?/);
      await refused("typed", { a: 1 }, /unknown argument 'a'/);
      await refused("bare", { a: 1 }, /unknown argument 'a'/);
      assert.equal(await text("search", { query: "a", limit: 3 }), "limit,query");
      assert.equal(await text("lenient", { query: "a", limt: 3 }), "query");
      assert.equal(await text("loose", { a: 1, b: 2 }), "a,b");
      assert.equal(await text("plain", { query: "a", limt: 3 }), "limt,query");
      assert.equal(await text("bare", {}), "ok");
    }));
}

test("listed schemas show which tools are closed", () =>
  closing(connect(search()), async (client) => {
    const closed = (await client.listTools()).filter(({ inputSchema }) => inputSchema.additionalProperties === false).map(({ name }) => name);
    assert.deepEqual(closed, ["search", "strict", "ark", "typed", "bare"]);
  }));
