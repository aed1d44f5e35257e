/** Clients of the two older descriptions of the protocol, against servers that understand them. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, McpError, ResourceNotFound, ToolError } from "gudgeon";

import { dialects, shelf } from "./dialect-shelf.mjs";

for (const dialect of dialects) {
  test(`everything is as in a revision: ${dialect}`, async (t) => {
    const client = await Client.connect(shelf({ dialects, pageSize: 1 }), { revision: dialect });
    t.after(() => client.close());
    assert.equal(client.revision, dialect);
    const tools = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), ["add", "spoken", "fail"]);
    assert.deepEqual(tools[0].inputSchema.required, ["a", "b"]);
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    assert.equal((await client.callTool("spoken")).text, dialect);
    await assert.rejects(client.callTool("fail"), ToolError);
    await assert.rejects(client.callTool("nothing"), McpError);
    assert.deepEqual((await client.listResourceTemplates()).map((template) => template.uriTemplate), ["shelf://items/{id}{?lang}"]);
    const read = await client.readResource("shelf://items/7?lang=de");
    assert.deepEqual(JSON.parse(read.contents[0].text), { id: "7", lang: "de" });
    await assert.rejects(client.readResource("shelf://nothing"), ResourceNotFound);
    const prompts = await client.listPrompts();
    assert.deepEqual(prompts[0].arguments.map((argument) => [argument.name, argument.required]), [["name", true], ["style", false]]);
    assert.equal((await client.getPrompt("greet", { name: "Ada" })).messages[0].content.text, "Greet Ada, warm.");
    await client.ping();
  });
}

test("structured values come as data", async (t) => {
  const client = await Client.connect(shelf({ dialects: ["0.7"] }), { revision: "0.7" });
  t.after(() => client.close());
  assert.equal((await client.callTool("add", { a: 1, b: 2 })).data, 3);
});

test("without the dialect a client of 0.7 is refused", async () => {
  await assert.rejects(Client.connect(shelf(), { revision: "0.7" }), /protocolVersion/);
});

test("dialects have names", () => {
  assert.throws(() => shelf({ dialects: ["0.8"] }), /0\.7 and bare/);
  return assert.rejects(Client.connect(shelf(), { revision: ["0.7", "2025-11-25"] }), /revision must be "auto", one or more of .*, or one of 0\.7 and bare by itself, not \["0\.7","2025-11-25"\]/);
});
