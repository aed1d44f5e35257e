/** Arguments that a model quoted by mistake are decoded at every depth, unless the server or the tool says otherwise. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { connect } from "gudgeon/testing";
import * as z from "zod";

import { closing } from "./closing.mjs";

const input = z.object({ limit: z.number().optional(), ids: z.array(z.number()).optional() });

for (const [server, tool, converts] of [[{}, {}, true], [{ convertArguments: false }, {}, false], [{ convertArguments: false }, { convertArguments: true }, true], [{}, { convertArguments: false }, false]]) {
  test(`quoted arguments, ${JSON.stringify(server)} and ${JSON.stringify(tool)}`, () => {
    const app = new Server("t", server).tool("page", { input, ...tool }, (args) => JSON.stringify(args));
    return closing(connect(app), async (client) => {
      for (const [args, decoded] of [[{ limit: " 3 " }, { limit: 3 }], [{ ids: "[1, 2]" }, { ids: [1, 2] }], [{ ids: ["1"] }, { ids: [1] }]]) {
        const call = client.callTool("page", args);
        if (converts) assert.equal((await call).text, JSON.stringify(decoded));
        else await assert.rejects(call, new RegExp(`'${Object.keys(args)[0]}`));
      }
    });
  });
}

test("the profile of schemas may be a tool's own", () => {
  const schema = { type: "object", properties: { a: { $ref: "#/$defs/A" } }, $defs: { A: { type: "string" } } };
  const app = new Server("t", { schemaProfile: "full" }).tool("full", { input: schema }, () => "").tool("portable", { input: schema, schemaProfile: "portable" }, () => "");
  return closing(connect(app), async (client) => {
    const found = (await client.listTools()).map(({ name, inputSchema }) => [name, JSON.stringify(inputSchema).includes("$ref")]);
    assert.deepEqual(found, [["full", true], ["portable", false]]);
  });
});
