// Results of servers that can't be read whole.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, McpError, Server } from "gudgeon";

/** Returns a transport to a server of 2025-11-25 that answers each method with the given result. */
function scripted(results) {
  const queue = [];
  let take;
  const put = (message) => {
    queue.push(message);
    take?.();
  };
  const say = (message) => put(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const answered = [];
  return {
    answered,
    say,
    async receive() {
      while (queue.length === 0) await new Promise((resolve) => (take = resolve));
      return queue.shift();
    },
    async send(line) {
      const message = JSON.parse(line);
      const { id, method } = message;
      if (method === undefined) return void answered.push(message);
      if (id === undefined) return undefined;
      const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {} };
      const server = { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "scripted", version: "1" } };
      return say({ id, result: method === "initialize" ? server : (results[method] ?? {}) });
    },
    async close() {
      put(undefined);
    },
  };
}

async function connected(t, results, options = {}) {
  const transport = scripted(results);
  const client = await Client.connect(transport, { revision: "2025-11-25", ...options });
  t.after(() => client.close());
  return client;
}

test("bytes that are not base64 fail when they are read", async (t) => {
  const broken = { type: "image", data: "%%%", mimeType: "image/png" };
  const blob = { type: "resource", resource: { uri: "a://b", blob: "A" } };
  const content = [broken, { type: "text", text: "right" }, { ...broken, data: "AAE" }, { ...broken, data: "-_8=\n" }, blob];
  const contents = [{ uri: "a://b", text: "right" }, { uri: "a://c", blob: "%%%" }];
  const client = await connected(t, { "tools/call": { content }, "resources/read": { contents } });
  const result = await client.callTool("any");
  assert.equal(result.text, "right");
  assert.equal(result.content[0].mimeType, "image/png");
  const invalid = { name: "McpError", kind: "protocol", message: /^the base64 that was received is invalid/ };
  for (let at = 0; at < 2; at++) assert.throws(() => result.content[0].data, invalid);
  assert.throws(() => result.content[4].resource.blob, invalid);
  assert.deepEqual(result.content.slice(2, 4).map(({ data }) => [...data]), [[0, 1], [251, 255]]);
  const read = await client.readResource("a://b");
  assert.equal(read.text, "right");
  assert.throws(() => read.contents[1].blob, invalid);
  assert.throws(() => read.blob, invalid);
});

test("a server that passes on what it received sends bytes that are not base64 unchanged", async (t) => {
  const content = [{ type: "image", data: "%%%", mimeType: "image/png" }, { type: "resource", resource: { uri: "a://b", blob: "%%%" } }];
  const behind = await connected(t, { "tools/call": { content } });
  const proxy = new Server("proxy");
  proxy.tool("any", {}, () => behind.callTool("any"));
  const client = await Client.connect(proxy);
  t.after(() => client.close());
  const result = await client.callTool("any");
  assert.throws(() => result.content[0].data, McpError);
  assert.throws(() => result.content[1].resource.blob, McpError);
});
