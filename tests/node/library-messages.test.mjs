// Messages of schema libraries about wrong arguments, as the schema's author wrote them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { Client, Server } from "gudgeon";
import { eras } from "gudgeon/testing";
import * as v from "valibot";
import * as z from "zod";

const isbn = /^\d{13}$/;
const inputs = {
  zod: z.object({ isbn: z.string().regex(isbn, "an ISBN has 13 digits"), n: z.number().max(3, "three at most").optional() }),
  valibot: toStandardJsonSchema(v.object({ isbn: v.pipe(v.string(), v.regex(isbn, "an ISBN has 13 digits")) })),
  arktype: type({ isbn: type(isbn).describe("an ISBN of 13 digits") }),
};

for (const revision of eras) {
  test(`the library's message wins over the JSON Schema's, in ${revision}`, async (t) => {
    const app = new Server("s");
    let calls = 0;
    for (const [name, input] of Object.entries(inputs)) app.tool(name, { input }, () => ++calls);
    const client = await Client.connect(app, { revision });
    t.after(() => client.close());
    const refusal = (name, args) => client.callTool(name, args).then(() => assert.fail("not refused"), (error) => error.message);
    assert.match(await refusal("zod", { isbn: "1" }), /argument 'isbn': an ISBN has 13 digits$/);
    assert.match(await refusal("zod", { isbn: "1", n: 4 }), /argument 'isbn': an ISBN has 13 digits; argument 'n': three at most$/);
    assert.match(await refusal("valibot", { isbn: "1" }), /argument 'isbn': an ISBN has 13 digits$/);
    assert.match(await refusal("arktype", { isbn: "1" }), /argument 'isbn': must be an ISBN of 13 digits/);
    assert.match(await refusal("zod", { isbn: "1234567890123", m: 1 }), /unknown argument 'm'/);
    assert.equal(calls, 0);
    // A number in quotes is still read as the number that the schema wants.
    await client.callTool("zod", { isbn: "1234567890123", n: "2" });
    assert.equal(calls, 1);
  });
}

for (const revision of eras) {
  test(`a vendor method fails with the library's message, in ${revision}`, async (t) => {
    const app = new Server("s");
    let calls = 0;
    for (const [name, params] of Object.entries(inputs)) app.method(`acme/${name}`, { params }, () => ({ calls: ++calls }));
    app.method("acme/plain", { params: { type: "object", properties: { n: { type: "integer" } } } }, () => ({ calls: ++calls }));
    const client = await Client.connect(app, { revision });
    t.after(() => client.close());
    const refusal = (name, params) => client.request(`acme/${name}`, params).then(() => assert.fail("not refused"), (error) => error);
    for (const name of ["zod", "valibot"]) {
      const { code, message } = await refusal(name, { isbn: "1" });
      assert.equal(code, -32602);
      assert.match(message, /parameter 'isbn': an ISBN has 13 digits$/);
    }
    assert.match((await refusal("zod", { isbn: "1", n: 4 })).message, /parameter 'isbn': an ISBN has 13 digits; parameter 'n': three at most$/);
    assert.match((await refusal("zod", undefined)).message, /parameter 'isbn': /);
    assert.match((await refusal("arktype", { isbn: "1" })).message, /parameter 'isbn': must be an ISBN of 13 digits/);
    const { code, message } = await refusal("plain", { n: "x" });
    assert.equal(code, -32602);
    assert.match(message, /parameter 'n'/);
    assert.equal(calls, 0);
    assert.equal((await client.request("acme/zod", { isbn: "1234567890123" })).calls, 1);
  });
}

test("a vendor notification fails with the library's message", async (t) => {
  const app = new Server("s");
  app.notification("acme/lent", { params: inputs.zod }, () => assert.fail("called"));
  app.method("acme/done", { params: { type: "object" } }, () => ({}));
  const failures = [];
  t.mock.method(console, "error", (_, error) => failures.push(error.message));
  const client = await Client.connect(app);
  t.after(() => client.close());
  await client.notify("acme/lent", { isbn: "1" });
  await client.request("acme/done");
  assert.deepEqual(failures, ["parameter 'isbn': an ISBN has 13 digits"]);
});
