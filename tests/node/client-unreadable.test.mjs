// Results of servers whose members do not have the types that the specification gives them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ClientGroup, McpError, Server, ToolError } from "gudgeon";

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

const BLOCKS = [
  [{ text: "a" }, "content[0].type is missing"],
  [{ type: 3 }, "content[0].type must be a string, not a number"],
  [3, "content[0] must be an object, not a number"],
  [null, "content[0] must be an object, not null"],
  [{ type: "text" }, "content[0].text is missing"],
  [{ type: "text", text: 3 }, "content[0].text must be a string, not a number"],
  [{ type: "text", text: "a", annotations: [] }, "content[0].annotations must be an object, not a list"],
  [{ type: "text", text: "a", annotations: { audience: "user" } }, 'content[0].annotations.audience must be a list of "user" and "assistant", not a string'],
  [{ type: "text", text: "a", annotations: { priority: "1" } }, "content[0].annotations.priority must be a number, not a string"],
  [{ type: "text", text: "a", _meta: 3 }, "content[0]._meta must be an object, not a number"],
  [{ type: "image", data: 3, mimeType: "image/png" }, "content[0].data must be a string, not a number"],
  [{ type: "audio", data: "" }, "content[0].mimeType is missing"],
  [{ type: "resource_link", uri: "a://b" }, "content[0].name is missing"],
  [{ type: "resource_link", uri: "a://b", name: "b", title: {} }, "content[0].title must be a string, not an object"],
  [{ type: "resource_link", uri: "a://b", name: "b", icons: [{}] }, "content[0].icons[0].src is missing"],
  [{ type: "resource" }, "content[0].resource is missing"],
  [{ type: "resource", resource: { text: "a" } }, "content[0].resource.uri is missing"],
  [{ type: "resource", resource: { uri: "a://b", blob: 3 } }, "content[0].resource.blob must be a string, not a number"],
  [{ type: "tool_use", id: "1", name: "a", input: [] }, "content[0].input must be an object, not a list"],
  [{ type: "tool_result", toolUseId: "1", content: [{}] }, "content[0].content[0].type is missing"],
];

test("content of a tool's result", async (t) => {
  for (const [block, problem] of BLOCKS) {
    const client = await connected(t, { "tools/call": { content: [block] } });
    const message = `tools/call "any": the server's result is invalid: ${problem}`;
    await assert.rejects(client.callTool("any"), { name: "McpError", kind: "protocol", phase: "call", message });
  }
  for (const content of [null, {}, 3]) {
    const client = await connected(t, { "tools/call": { content } });
    await assert.rejects(client.callTool("any"), { kind: "protocol", message: /^tools\/call.*: the server's result is invalid: / });
  }
});

test("what is null is left out, and members and types that nobody knows stay", async (t) => {
  const block = { type: "text", text: "a", annotations: null, _meta: null, "acme/x": 1 };
  const tool = { name: "a", inputSchema: {}, title: null, description: null, annotations: null, icons: null, "acme/x": 1 };
  const client = await connected(t, {
    "tools/call": { content: [block, { type: "hologram", text: 3 }] },
    "tools/list": { tools: [tool] },
  });
  const { content } = await client.callTool("any");
  assert.deepEqual({ ...content[0] }, { type: "text", text: "a", "acme/x": 1 });
  assert.deepEqual({ ...content[1] }, { type: "other", raw: { type: "hologram", text: 3 } });
  assert.deepEqual(await client.listTools(), [{ name: "a", inputSchema: {}, "acme/x": 1 }]);
});

test("a tool that failed is a ToolError, although its content can't be read", async (t) => {
  const client = await connected(t, { "tools/call": { isError: true, content: [{ type: "text", text: {} }] } });
  const error = await client.callTool("any").catch((reason) => reason);
  assert.ok(error instanceof ToolError && error.result.isError);
  assert.equal(error.text, 'tool "any" failed without a message');
});

const LISTS = [
  ["listTools", "tools/list", "tools", { name: "a", inputSchema: {} }, [
    [{ name: 3 }, "tools[1].name must be a string, not a number"],
    [{ description: 3 }, "tools[1].description must be a string, not a number"],
    [{ title: [] }, "tools[1].title must be a string, not a list"],
    [{ inputSchema: undefined }, "tools[1].inputSchema is missing"],
    [{ inputSchema: 3 }, "tools[1].inputSchema must be an object, not a number"],
    [{ outputSchema: [] }, "tools[1].outputSchema must be an object, not a list"],
    [{ icons: {} }, "tools[1].icons must be a list, not an object"],
    [{ icons: [{ src: "a", sizes: [1] }] }, "tools[1].icons[0].sizes must be a list of strings, not a list"],
    [{ annotations: { readOnlyHint: "yes" } }, "tools[1].annotations.readOnlyHint must be a boolean, not a string"],
    [{ annotations: { title: 1 } }, "tools[1].annotations.title must be a string, not a number"],
  ]],
  ["listResources", "resources/list", "resources", { uri: "a://b", name: "b" }, [
    [{ uri: undefined }, "resources[1].uri is missing"],
    [{ size: "3" }, "resources[1].size must be a number, not a string"],
    [{ mimeType: 3 }, "resources[1].mimeType must be a string, not a number"],
    [{ annotations: { lastModified: 3 } }, "resources[1].annotations.lastModified must be a string, not a number"],
  ]],
  ["listResourceTemplates", "resources/templates/list", "resourceTemplates", { uriTemplate: "a://{b}", name: "b" }, [
    [{ uriTemplate: 3 }, "resourceTemplates[1].uriTemplate must be a string, not a number"],
  ]],
  ["listPrompts", "prompts/list", "prompts", { name: "a" }, [
    [{ arguments: {} }, "prompts[1].arguments must be a list, not an object"],
    [{ arguments: [3] }, "prompts[1].arguments[0] must be an object, not a number"],
    [{ arguments: [{ name: "b" }, {}] }, "prompts[1].arguments[1].name is missing"],
    [{ arguments: [{ name: "b", required: "yes" }] }, "prompts[1].arguments[0].required must be a boolean, not a string"],
  ]],
];

for (const [list, method, member, entry, cases] of LISTS) {
  test(`entries of ${method}`, async (t) => {
    for (const [change, problem] of cases) {
      const results = { [method]: { [member]: [entry, { ...entry, name: "other", ...change }] } };
      const expected = { name: "McpError", kind: "protocol", phase: "call", message: `${method}: the server's result is invalid: ${problem}` };
      const client = await connected(t, results);
      await assert.rejects(client[list](), expected);
      await assert.rejects(client[`${list}Page`](), expected);
      // A group leaves out what has no name.
      if ("name" in change) continue;
      const group = await ClientGroup.connect({ a: scripted(results) }, { revision: "2025-11-25" });
      t.after(() => group.close());
      await assert.rejects(group[list](), { kind: "protocol", message: expected.message });
    }
  });
}

test("contents of a resource", async (t) => {
  for (const [contents, problem] of [
    [[{ uri: "a://b", text: "a" }, 3], "contents[1] must be an object, not a number"],
    [[{ uri: 3, text: "a" }], "contents[0].uri must be a string, not a number"],
    [[{ uri: "a://b", text: 3 }], "contents[0].text must be a string, not a number"],
    [[{ uri: "a://b" }], "contents[0] must have text or blob"],
    [{}, "contents must be a list, not an object"],
    [undefined, "contents is missing"],
  ]) {
    const client = await connected(t, { "resources/read": { contents } });
    const message = `resources/read: the server's result is invalid: ${problem}`;
    await assert.rejects(client.readResource("a://b"), { name: "McpError", kind: "protocol", message });
  }
});

test("messages of a prompt", async (t) => {
  for (const [result, problem] of [
    [{ messages: [3] }, "messages[0] must be an object, not a number"],
    [{ messages: [{ content: { type: "text", text: "a" } }] }, "messages[0].role is missing"],
    [{ messages: [{ role: "system", content: { type: "text", text: "a" } }] }, 'messages[0].role must be "user" or "assistant", not a string'],
    [{ messages: [{ role: "user" }] }, "messages[0].content is missing"],
    [{ messages: [{ role: "user", content: "a" }] }, "messages[0].content must be an object, not a string"],
    [{ messages: [{ role: "user", content: { type: "text" } }] }, "messages[0].content.text is missing"],
    [{}, "messages is missing"],
    [{ messages: [], description: 3 }, "description must be a string, not a number"],
  ]) {
    const client = await connected(t, { "prompts/get": result });
    const message = `prompts/get: the server's result is invalid: ${problem}`;
    await assert.rejects(client.getPrompt("any"), { name: "McpError", kind: "protocol", message });
  }
});

test("values of a completion", async (t) => {
  for (const completion of [{ values: [3] }, { values: ["a"], total: "1" }, {}]) {
    const client = await connected(t, { "completion/complete": { completion } });
    await assert.rejects(client.complete("any", "a", ""), { kind: "protocol", message: /^completion\/complete: the server's result is invalid: / });
  }
});

test("a question of the server is refused, and its callback not called", async (t) => {
  const transport = scripted({});
  const asked = [];
  const client = await Client.connect(transport, { revision: "2025-11-25", onSample: (request) => void asked.push(request) });
  t.after(() => client.close());
  const messages = [{ role: "user", content: { type: "text", text: 3 } }];
  transport.say({ id: "q", method: "sampling/createMessage", params: { messages, maxTokens: 1 } });
  while (transport.answered.length === 0) await client.ping();
  const { error } = transport.answered[0];
  assert.equal(error.code, -32602);
  assert.match(error.message, /messages\[0\]\.content\.text must be a string, not a number/);
  assert.deepEqual(asked, []);
});

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
