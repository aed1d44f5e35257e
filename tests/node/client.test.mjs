import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { Cancelled, Client, McpError, NotSupported, ProtocolError, ResourceNotFound, Server, ToolError, image, user } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import * as z from "zod";

const cjs = createRequire(import.meta.url)("gudgeon");

const sum = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["a", "b"] };

function shelf(options = {}) {
  const app = new Server("shelf", { version: "1.2", instructions: "Ask.", ...options });
  app.tool("add", { input: sum, output: { type: "integer" }, annotations: { readOnly: true } }, ({ a, b }) => a + b);
  app.tool("book", { output: z.object({ title: z.string() }) }, () => ({ title: "Dune" }));
  app.tool("odd", { output: { type: "object" } }, () => ({ title: 3 }));
  app.tool("cover", {}, () => ["Here", image(new Uint8Array([1, 2]), "png")]);
  app.tool("fail", {}, () => {
    throw new ToolError("none left");
  });
  app.tool("refuse", {}, () => {
    throw new ProtocolError(1234, "Refused.", { why: "because" });
  });
  app.tool("count", {}, async (_, ctx) => {
    for (let step = 1; step <= 3; step++) await ctx.progress(step, { total: 3, message: `step ${step}` });
    await ctx.warning({ done: true });
    return "counted";
  });
  app.resource("shelf://about", { mimeType: "text/plain" }, () => "A shelf.");
  app.resource("shelf://bytes", {}, () => new Uint8Array([0, 255]));
  app.resource("shelf://books/{id}{?lang}", {}, ({ id, lang }) => ({ id, lang }));
  app.prompt("greet", { args: z.object({ name: z.string() }) }, ({ name }) => [user(`Greet ${name}`)]);
  app.complete("greet", "name", (prefix) => ["Ada", "Alan"].filter((name) => name.startsWith(prefix)));
  app.complete("shelf://books/{id}{?lang}", "lang", (prefix, given) => [`${given.id}-${prefix}`]);
  app.method("acme/echo", { params: z.object({ text: z.string() }) }, ({ text }) => ({ echo: text }));
  return app;
}

for (const era of eras) {
  test(`everything a client does, in ${era}`, async () => {
    const heard = [];
    const client = await Client.connect(shelf({ pageSize: 2 }), {
      revision: era,
      onLog: ({ level, data }) => heard.push([level, data]),
    });
    assert.equal(client.revision, era);
    assert.deepEqual([client.server.name, client.server.version, client.instructions], ["shelf", "1.2", "Ask."]);
    assert.ok(client.capabilities.tools);

    const tools = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), ["add", "book", "odd", "cover", "fail", "refuse", "count"]);
    // 2024-11-05 has no annotations.
    assert.deepEqual(tools[0].annotations, era === "2024-11-05" ? undefined : { readOnly: true });
    const first = await client.listToolsPage();
    assert.equal(first.items.length, 2);
    assert.equal((await client.listToolsPage(first.nextCursor)).items[0].name, "odd");

    const added = await client.callTool("add", { a: 1, b: 2 }, { output: z.number() });
    assert.equal(added.data, 3);
    assert.equal(added.text, "3");
    assert.deepEqual((await client.callTool("book", {}, { output: z.object({ title: z.string() }) })).data, { title: "Dune" });
    const cover = await client.callTool("cover");
    assert.deepEqual(cover.content[1].data, new Uint8Array([1, 2]));

    await assert.rejects(client.callTool("fail"), (error) => error instanceof ToolError && error.text === "none left" && error.kind === "tool");
    const failed = await client.callTool("fail", {}, { throwOnError: false });
    assert.deepEqual([failed.isError, failed.text], [true, "none left"]);
    await assert.rejects(client.callTool("refuse"), (error) => {
      assert.ok(error instanceof ProtocolError);
      assert.deepEqual([error.code, error.message, error.data], [1234, "Refused.", { why: "because" }]);
      assert.match(error.target, /"shelf" in memory/);
      return true;
    });

    const steps = [];
    if (era !== "2026-07-28") await client.setLogLevel("info");
    await client.callTool("count", {}, { onProgress: ({ progress, total }) => steps.push([progress, total]) });
    assert.deepEqual(steps, [[1, 3], [2, 3], [3, 3]]);
    assert.deepEqual(heard, [["warning", { done: true }]]);

    assert.deepEqual((await client.listResources()).map((one) => one.uri), ["shelf://about", "shelf://bytes"]);
    assert.deepEqual((await client.listResourceTemplates()).map((one) => one.uriTemplate), ["shelf://books/{id}{?lang}"]);
    assert.equal((await client.readResource("shelf://about")).text, "A shelf.");
    assert.deepEqual((await client.readResource("shelf://bytes")).blob, new Uint8Array([0, 255]));
    const book = await client.readResource("shelf://books/{id}{?lang}", { variables: { id: "a b", lang: "en" } });
    assert.deepEqual(JSON.parse(book.text), { id: "a b", lang: "en" });
    await assert.rejects(client.readResource("shelf://nowhere"), (error) => error instanceof ResourceNotFound && error.kind === "notFound");
    await assert.rejects(client.readResource("shelf://books/{id}", { variables: { no: 1 } }), /no variable "no"/);

    assert.deepEqual((await client.listPrompts())[0].arguments, [{ name: "name", required: true }]);
    assert.equal((await client.getPrompt("greet", { name: "Ada" })).messages[0].text, "Greet Ada");
    assert.deepEqual((await client.complete("greet", "name", "Al")).values, ["Alan"]);
    if (era !== "2024-11-05" && era !== "2025-03-26") {
      const given = { arguments: { id: "7" } };
      assert.deepEqual((await client.complete("shelf://books/{id}{?lang}", "lang", "e", given)).values, ["7-e"]);
    }

    assert.equal((await client.request("acme/echo", { text: "hi" })).echo, "hi");
    await client.notify("acme/heard", { a: 1 });
    assert.ok((await client.ping()) >= 0);
    await client.close();
    await client.close();
    await assert.rejects(client.ping(), (error) => error.kind === "lost" && /closed/.test(error.message));
  });
}

test("data that the given output schema refuses is an error", async () => {
  const client = await connect(shelf());
  const wrong = /tool "odd" returned a result that the given output schema refuses/;
  await assert.rejects(client.callTool("odd", {}, { output: z.object({ title: z.string() }) }), wrong);
  const plain = { type: "object", properties: { title: { type: "string" } } };
  await assert.rejects(client.callTool("odd", {}, { output: plain }), (error) => error instanceof McpError && wrong.test(error.message));
  assert.deepEqual((await client.callTool("book", {}, { output: plain })).data, { title: "Dune" });
  await client.close();
});

test("many calls at once each get their own answer", async () => {
  const client = await connect(shelf());
  const calls = Array.from({ length: 5_000 }, (_, at) => client.callTool("add", { a: at, b: 1 }));
  assert.deepEqual((await Promise.all(calls)).map((result) => result.data), Array.from({ length: 5_000 }, (_, at) => at + 1));
  await client.close();
});

test("large values arrive whole", async () => {
  const app = new Server("echo");
  app.tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text);
  const client = await connect(app);
  const text = "ü\"\n".repeat(1_000_000);
  const [one, other] = await Promise.all([client.callTool("echo", { text }), client.callTool("echo", { text: "small" })]);
  assert.equal(one.text, text);
  assert.equal(other.text, "small");
  await client.close();
});

test("a signal cancels the call and its handler", async () => {
  const app = new Server("slow");
  let cancelled;
  const heard = new Promise((resolve) => (cancelled = resolve));
  const abort = new AbortController();
  app.tool("wait", {}, (_, ctx) => new Promise((_, reject) => {
    ctx.signal.addEventListener("abort", () => {
      cancelled();
      reject(ctx.signal.reason);
    });
    abort.abort(new Error("enough"));
  }));
  const client = await connect(app);
  const call = client.callTool("wait", {}, { signal: abort.signal });
  await assert.rejects(call, (error) => error.kind === "cancelled" && error.cause.message === "enough");
  await heard;
  await assert.rejects(client.callTool("wait", {}, { signal: AbortSignal.abort() }), (error) => error.kind === "cancelled");
  await assert.rejects(client.callTool("wait", {}, { timeoutMs: 50 }), (error) => error.kind === "timeout" && /50|0\.05/.test(error.message));
  await client.close();
});

test("an aborted call fails as the platform's own do", async () => {
  const client = await connect(new Server("slow").tool("wait", {}, () => new Promise(() => {})));
  for (const signal of [AbortSignal.abort(), AbortSignal.abort("enough"), AbortSignal.timeout(20)]) {
    await assert.rejects(client.callTool("wait", {}, { signal }), (error) => {
      assert.equal(error.name, "AbortError");
      assert.ok(error instanceof Cancelled);
      assert.equal(error.cause, signal.reason);
      return true;
    });
  }
  await client.close();
});

test("validate refuses arguments before they are sent", async () => {
  const client = await Client.connect(shelf(), { validate: true });
  await assert.rejects(client.callTool("add", { a: 1 }), (error) => error instanceof TypeError && /'b'/.test(error.message));
  await client.close();
});

test("a capability that was not declared is an error before anything is sent", async () => {
  const client = await connect(new Server("bare"));
  await assert.rejects(client.listTools(), (error) => error instanceof NotSupported && /tools/.test(error.message));
  await client.close();
});

test("errors of misuse contain the fix", async () => {
  const client = await connect(shelf());
  await assert.rejects(client.callTool("add", [1, 2]), /the arguments of tool "add" must be an object/);
  await assert.rejects(client.callTool("add", { a: new Map() }), /callTool\(\)\.arguments\.a is a Map/);
  await assert.rejects(client.callTool("add", {}, { timeoutMs: 0 }), /timeoutMs must be a number of milliseconds above 0, or Infinity for no limit, not 0/);
  await assert.rejects(client.setLogLevel("loud"), /"loud" is not a log level/);
  assert.throws(() => client.subscribe({}), /subscribe\(\): nothing to subscribe to; give/);
  assert.throws(() => client.subscribe({ uris: [3] }), /^TypeError: subscribe\(\): uris must be a list of strings such as "file:\/\/\/shelf", not \[3\]$/);
  await client.close();
});

test("a changed list is reported, and a tool called after it uses its new schema", async () => {
  const app = shelf();
  let changed;
  const heard = new Promise((resolve) => (changed = resolve));
  const client = await Client.connect(app, { revision: "2025-11-25", onListChanged: changed });
  await client.listTools();
  app.tool("late", { output: z.number() }, () => 5);
  assert.equal(await heard, "tools");
  assert.equal((await client.callTool("late")).data, 5);
  await client.close();
});

test("a subscription receives changed lists until it is left or the client is closed", async () => {
  const app = shelf();
  const client = await connect(app, { revision: "2025-11-25" });
  const changes = client.subscribe({ tools: true });
  const first = changes.next();
  await client.ping();
  app.tools.disable("add");
  assert.deepEqual(await first, { done: false, value: { kind: "tools" } });
  setTimeout(() => app.tools.enable("add"), 20);
  for await (const change of changes) {
    assert.deepEqual(change, { kind: "tools" });
    break;
  }
  assert.deepEqual(await changes.next(), { done: true, value: undefined });
  const last = client.subscribe({ prompts: true }).next();
  await client.ping();
  await client.close();
  assert.deepEqual(await last, { done: true, value: undefined });
});

test("a subscription that the server does not support is an error", async () => {
  const legacy = await connect(new Server("bare"), { revision: "2025-11-25" });
  await assert.rejects(legacy.subscribe({ tools: true }).next(), /did not declare tools\.listChanged/);
  await assert.rejects(legacy.subscribe({ uris: ["a://b"] }).next(), NotSupported);
  await legacy.close();
  const modern = await connect(new Server("bare"));
  await assert.rejects(modern.subscribe({ tools: true }).next(), /did not declare tools\.listChanged/);
  await modern.close();
});

test("a callback that throws does not keep others from being called", async (t) => {
  const told = t.mock.method(console, "error", () => {});
  const client = await connect(shelf());
  const result = await client.callTool("count", {}, {
    onProgress: () => {
      throw new Error("mine");
    },
  });
  assert.equal(result.text, "counted");
  assert.equal(told.mock.callCount(), 3);
  await client.close();
});

test("the CommonJS client talks to a server of the ESM copy", async () => {
  const client = await cjs.Client.connect(shelf());
  await assert.rejects(client.callTool("fail"), (error) => error instanceof ToolError && error instanceof cjs.ToolError);
  await client.close();
});

test("a server whose lifespan fails reports the reason", async () => {
  const app = new Server("broken", {
    lifespan: () => {
      throw new Error("no database");
    },
  });
  await assert.rejects(Client.connect(app), /no database/);
});

test("the lifespan is left when the client is closed", async () => {
  const order = [];
  const app = new Server("life", { lifespan: () => ({ value: order.push("in"), close: () => void order.push("out") }) });
  const client = await Client.connect(app);
  await client[Symbol.asyncDispose]();
  assert.deepEqual(order, ["in", "out"]);
});
