/** A result's data is the same in every revision. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server, text } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import * as z from "zod";

import { closing } from "./closing.mjs";

const VALUES = {
  number: [3, 3],
  fraction: [0.5, 0.5],
  yes: [true, true],
  nothing: [null, null],
  list: [[1, "a"], [1, "a"]],
  object: [{ a: [1] }, { a: [1] }],
  string: ["three", "three"],
  quoted: ['"three"', '"three"'],
  digits: ["3", "3"],
  yesInText: ["true", "true"],
  listInText: ["[1]", "[1]"],
  padded: ["007", "007"],
  date: [new Date(0), "1970-01-01T00:00:00.000Z"],
  url: [new URL("http://a/b"), "http://a/b"],
  integer: [42n, 42],
  content: [[text("1"), "2"], "1\n2"],
};

for (const revision of eras) {
  test(`data of a tool without an output schema, in ${revision}`, async () => {
    const app = new Server("t");
    for (const [name, [value]] of Object.entries(VALUES)) app.tool(name, {}, () => value);
    await closing(connect(app, { revision }), async (client) => {
      for (const [name, [, data]] of Object.entries(VALUES)) assert.deepEqual((await client.callTool(name)).data, data, name);
      assert.equal((await client.callTool("digits", {}, { output: z.string() })).data, "3");
      assert.equal((await client.callTool("digits", {}, { output: z.any() })).data, "3");
      assert.equal((await client.callTool("digits", {}, { output: z.number() })).data, 3);
      assert.deepEqual((await client.callTool("listInText", {}, { output: z.array(z.number()) })).data, [1]);
      assert.equal((await client.callTool("number", {}, { output: z.number() })).data, 3);
      assert.equal((await client.callTool("number", {}, { output: z.number().transform((value) => value + 1) })).data, 4);
      for (const [name, said] of [["date", "1970-01-01T00:00:00.000Z"], ["url", "http://a/b"], ["integer", "42"], ["string", "three"]]) {
        assert.equal((await client.callTool(name)).text, said);
      }
    });
  });

  test(`data of a tool with an output schema, in ${revision}`, async () => {
    const app = new Server("t");
    app.tool("count", { output: z.number() }, () => 3);
    app.tool("title", { output: z.string() }, () => "Dune");
    app.tool("book", { output: z.object({ title: z.string() }) }, () => ({ title: "Dune" }));
    await closing(connect(app, { revision }), async (client) => {
      assert.equal((await client.callTool("count")).data, 3);
      assert.equal((await client.callTool("title")).data, "Dune");
      assert.deepEqual((await client.callTool("book")).data, { title: "Dune" });
    });
  });

  test(`dates are strings that a schema may convert, in ${revision}`, async () => {
    const moment = z.iso.datetime();
    const app = new Server("t");
    app.tool("now", { output: moment }, () => "2026-11-22T19:30:00Z");
    app.tool("loan", { output: z.object({ due: z.array(moment) }) }, () => ({ due: ["2026-11-22T19:30:00Z"] }));
    const date = moment.transform((value) => new Date(value));
    await closing(connect(app, { revision }), async (client) => {
      for (let listed = 0; listed < 2; listed++) {
        assert.equal((await client.callTool("now")).data, "2026-11-22T19:30:00Z");
        assert.deepEqual((await client.callTool("loan")).data, { due: ["2026-11-22T19:30:00Z"] });
        assert.deepEqual((await client.callTool("now", {}, { output: date })).data, new Date("2026-11-22T19:30:00Z"));
        const loan = await client.callTool("loan", {}, { output: z.object({ due: z.array(date) }) });
        assert.deepEqual(loan.data, { due: [new Date("2026-11-22T19:30:00Z")] });
        await client.listTools();
      }
    });
  });
}
