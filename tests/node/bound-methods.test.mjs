/** Methods work apart from their object. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ClientGroup, Server } from "gudgeon";

test("methods of a server, a context, a client and a group can be taken out of them", async () => {
  const app = new Server("shelf");
  const { tool, resource, close } = app;
  const seen = [];
  tool("find", {}, async (_, { log, progress, step }) => {
    await log("info", "looking");
    await progress(1);
    return step("once", () => "found");
  });
  resource("shelf://about", {}, () => "about");
  const { callTool, readResource, listTools, close: leave } = await Client.connect(app, { onLog: ({ data }) => seen.push(data) });
  assert.equal((await callTool("find")).text, "found");
  assert.equal((await readResource("shelf://about")).text, "about");
  assert.deepEqual([(await listTools()).length, seen], [1, ["looking"]]);
  await leave();
  const { callTool: call, close: leaveAll } = await ClientGroup.connect({ a: app });
  assert.equal((await call("a_find")).text, "found");
  await leaveAll();
  await close();
});

test("a subclass and a test may replace a method", async () => {
  class Loud extends Server {
    tool(name, ...rest) {
      return super.tool(name.toUpperCase(), ...rest);
    }
  }
  const app = new Loud("loud").tool("find", {}, () => "found");
  const client = await Client.connect(app);
  assert.deepEqual((await client.listTools()).map(({ name }) => name), ["FIND"]);
  client.callTool = async () => "replaced";
  assert.equal(await client.callTool("FIND"), "replaced");
  assert.equal(typeof Client.prototype.callTool, "function");
  await client.close();
});
