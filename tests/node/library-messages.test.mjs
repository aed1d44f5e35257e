// What a schema library says of wrong arguments, as the schema's author wrote it.
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
