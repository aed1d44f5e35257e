/** Names that do not exist are refused with the one that was probably meant; names from other SDKs say what to write here. */
import assert from "node:assert/strict";
import { test } from "node:test";

import * as gudgeon from "gudgeon";
import * as z from "zod";

import { closing } from "./closing.mjs";

const { Client, ClientGroup, PromptResult, ResourceResult, Server, ToolResult } = gudgeon;
const refused = (message) => ({ name: "TypeError", message });
const ok = () => "ok";

test("a tool's annotations take their names here and those of the specification", async () => {
  const app = new Server("t");
  app.tool("ours", { annotations: { title: "T", readOnly: true, openWorld: false } }, ok);
  app.tool("theirs", { annotations: { title: "T", readOnlyHint: true, openWorldHint: false } }, ok);
  app.tool("late", {}, ok);
  app.tools.update("late", { annotations: { title: "T", readOnlyHint: true, openWorld: false } });
  await closing(Client.connect(app), async (client) => {
    const listed = (await client.request("tools/list")).tools.map(({ annotations }) => annotations);
    assert.deepEqual(listed, Array(3).fill({ title: "T", readOnlyHint: true, openWorldHint: false }));
  });
  const cases = [
    [{ readonly: true }, `tool "x": annotations: unknown member 'readonly'; did you mean 'readOnly'?`],
    [{ colour: 1 }, `tool "x": annotations: unknown member 'colour'; it takes title, readOnly, destructive, idempotent, openWorld`],
    [{ readOnlyHint: "yes" }, 'tool "x": annotations: readOnly must be true or false, not "yes"'],
    [{ readOnly: true, readOnlyHint: true }, 'tool "x": annotations: readOnly and readOnlyHint are one hint; give one of them'],
    ["read", 'tool "x": annotations must be an object, not "read"'],
  ];
  for (const [annotations, message] of cases) assert.throws(() => app.tool("x", { annotations }, ok), refused(message));
  const resource = (annotations) => () => app.resource("a://b", { annotations }, ok);
  assert.throws(resource({ audiance: ["user"] }), refused(`resource "a://b": annotations: unknown member 'audiance'; did you mean 'audience'?`));
  assert.throws(resource({ audience: ["model"] }), refused(/annotations: audience must be a list of "user" and "assistant", not \["model"\]/));
  assert.throws(resource({ priority: 2 }), refused(/annotations: priority must be a number from 0 to 1, not 2/));
});

test("update changes members that exist and can change", () => {
  const app = new Server("t");
  app.tool("a", {}, ok);
  app.resource("a://b", {}, ok);
  app.resource("a://{c}", {}, ok);
  app.prompt("p", {}, ok);
  const cases = [
    ["tools", "a", { titel: "A" }, `tools.update("a"): unknown member 'titel'; did you mean 'title'?`],
    ["tools", "a", { size: 3 }, `tools.update("a"): unknown member 'size'; it takes title, description, icons, meta, annotations`],
    ["tools", "a", { title: 5 }, 'tools.update("a"): title must be a string, not 5'],
    ["tools", "a", { input: {} }, `tools.update("a"): input can't be changed; remove this tool and register it again`],
    ["tools", "a", { enabled: false }, `tools.update("a"): enabled can't be changed here; call enable(name) or disable(name)`],
    ["resources", "a://b", { mimetype: "a/b" }, `resources.update("a://b"): unknown member 'mimetype'; did you mean 'mimeType'?`],
    ["resourceTemplates", "a://{c}", { uriTemplate: "b://{c}" }, /uriTemplate can't be changed/],
    ["prompts", "p", { arguments: [] }, /arguments can't be changed/],
  ];
  for (const [list, key, changes, message] of cases) assert.throws(() => app[list].update(key, changes), refused(message));
  app.resources.update("a://b", { title: "B", mimeType: "a/b", size: 2 });
  app.resources.update("a://b", { title: undefined });
  const { title, mimeType, size } = app.resources.get("a://b");
  assert.deepEqual([title, mimeType, size], [undefined, "a/b", 2]);
});

test("options of results, middleware and methods are known", () => {
  const app = new Server("t");
  assert.throws(() => new ToolResult("a", { _meta: {} }), refused("ToolResult: unknown option '_meta'; did you mean 'meta'?"));
  assert.throws(() => new ResourceResult("a", { mimetype: "a/b" }), refused("ResourceResult: unknown option 'mimetype'; did you mean 'mimeType'?"));
  assert.throws(() => new PromptResult(["a"], { title: "T" }), refused("PromptResult: unknown option 'title'; it takes description"));
  assert.throws(() => app.middleware((_, next) => next(), { only: "ping" }), refused("middleware(): unknown option 'only'; did you mean 'on'?"));
  assert.throws(() => app.method("acme/a", { input: {} }, ok), refused(`method "acme/a": unknown option 'input'; did you mean 'params'?`));
});

test("options of questions, requests and the context are known", async () => {
  const app = new Server("t", { exposeErrors: [TypeError] });
  const calls = {
    progress: (ctx) => ctx.progress(1, { totl: 2 }),
    log: (ctx) => ctx.log("info", 1, { loger: "a" }),
    closeStream: (ctx) => ctx.closeStream({ retry: 1 }),
    elicit: (ctx) => ctx.elicit("Sure?", { type: "boolean" }, { keys: "a" }),
    roots: (ctx) => ctx.roots({ name: "a" }),
  };
  for (const [name, call] of Object.entries(calls)) app.tool(name, {}, async (_, ctx) => call(ctx));
  await closing(Client.connect(app), async (client) => {
    for (const [name, message] of Object.entries({
      progress: "progress(): unknown option 'totl'; did you mean 'total'?",
      log: "log(): unknown option 'loger'; did you mean 'logger'?",
      closeStream: "closeStream(): unknown option 'retry'; did you mean 'retryMs'?",
      elicit: "elicit(): unknown option 'keys'; did you mean 'key'?",
      roots: "roots(): unknown option 'name'; it takes key",
    })) {
      await assert.rejects(client.callTool(name), { message });
    }
    assert.throws(() => client.subscribe({ uri: ["a://b"] }), refused("subscribe(): unknown option 'uri'; did you mean 'uris'?"));
    await assert.rejects(client.complete("p", "a", "", { args: {} }), refused(`complete("p"): unknown option 'args'; did you mean 'arguments'?`));
  });
  await closing(ClientGroup.connect({ here: app }), (group) =>
    assert.rejects(group.readResource("a://b", { from: "here" }), refused(`readResource("a://b"): unknown option 'from'; it takes server`)));
});

test("a resource's result is a string, bytes or contents", async () => {
  for (const wrong of [5, null, { uri: "a://b" }, { text: "a" }, { uri: "a://b", text: 5 }, { uri: "a://b", blob: "AA==" }, ["a", 5]]) {
    assert.throws(() => new ResourceResult(wrong), refused(/^ResourceResult: contents must be a string, a Uint8Array, \{ uri, text \}, \{ uri, blob \} or a list of these, not /));
  }
  assert.throws(() => new PromptResult("a"), refused(/^PromptResult: messages must be a list of strings, .* not "a"$/));
  const app = new Server("t", { exposeErrors: [TypeError] });
  app.resource("a://b", {}, () => undefined);
  await closing(Client.connect(app), (client) =>
    assert.rejects(client.readResource("a://b"), /the result is undefined: a resource returns a string, bytes, JSON or new ResourceResult/));
});

test("names and shapes of other SDKs work or fail with the name here", async () => {
  const app = new Server("t");
  app.tool("add", { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
  assert.throws(() => app.tool("x", { input: {}, inputSchema: {} }, ok), refused('tool "x": input and inputSchema are one option; give one of them'));
  assert.throws(() => app.tool("x", { outputSchema: {} }, ok), refused(`tool "x": unknown option 'outputSchema'; did you mean 'output'?`));
  assert.throws(() => app.tool("x", { execute: ok }, ok), refused(/unknown option 'execute'; pass the function as the third argument: app\.tool\(name, options, handler\)/));
  assert.throws(() => app.prompt("x", { argsSchema: {} }, ok), refused(`prompt "x": unknown option 'argsSchema'; did you mean 'args'?`));
  assert.throws(() => app.registerTool("x", {}, ok), refused(/'registerTool': here it is app\.tool\(name, options, handler\)/));
  assert.throws(() => app.addMiddleware(ok), refused(/'addMiddleware': here it is app\.middleware\(handler\)/));
  assert.throws(() => app.node({ allowedHosts: ["*"] }), refused(/^app\.node is the handler itself: createServer\(app\.node\); its options are new Server\(name, \{ http: \{ … \} \}\)$/));
  assert.throws(() => new gudgeon.McpServer({ name: "x", version: "1" }), refused(/'McpServer': here it is Server/));
  await assert.rejects(app.run({ transport: "stdio" }), refused(/^run\(\{"transport":"stdio"\}\): the address must be a string .*; run\(\) without an address serves stdin and stdout$/));
  await assert.rejects(app.listen("http://127.0.0.1:0/mcp", { port: 80 }), refused(/unknown option 'port'; write the address: app\.run\("http:/));
  await closing(Client.connect(app), async (client) => {
    assert.equal((await client.callTool({ name: "add", arguments: { a: 1, b: 2 } })).text, "3");
    assert.equal((await client.callTool({ name: "add", arguments: { a: 1, b: 2 } }, { output: z.number() })).data, 3);
    await assert.rejects(client.callTool({ name: "add", args: {} }), refused("callTool(): unknown member 'args'; did you mean 'arguments'?"));
    await assert.rejects(client.callTool({ name: "add" }, { timout: 3 }), refused(`callTool("add"): unknown option 'timout'; did you mean 'timeoutMs'?`));
  });
  await closing(ClientGroup.connect({ here: app }), async (group) => {
    assert.equal((await group.callTool({ name: "here_add", arguments: { a: 1, b: 2 } })).text, "3");
  });
});

test("mount takes the prefix and the server in either order", async () => {
  const other = new Server("other");
  other.tool("a", {}, ok);
  const names = (app) => [...app.tools].map(({ name }) => name);
  assert.deepEqual(names(new Server("t").mount("x", other)), ["x_a"]);
  assert.deepEqual(names(new Server("t").mount(other, "x")), ["x_a"]);
  for (const given of [[other], [other, other], ["x", "y"]]) assert.throws(() => new Server("t").mount(...given), TypeError);
});
