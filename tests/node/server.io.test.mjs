import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, Server } from "gudgeon";

import { MODERN, withServer } from "./child.mjs";

const text = (reply) => reply.result?.content?.[0]?.text;

const ADD = `
  const app = new Server("shelf", { version: "1.2.3", instructions: "Add." });
  app.tool("add", { input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] } }, ({ a, b }) => a + b);
`;

test("a tool answers in every legacy revision and in the modern one, on one stream", async () => {
  for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
    await withServer(`${ADD} await app.run();`, async (child) => {
      const { result } = await child.initialize(revision);
      assert.equal(result.protocolVersion, revision);
      assert.equal(result.serverInfo.name, "shelf");
      assert.equal(result.instructions, "Add.");
      child.call(1, "add", { a: 1, b: 2 });
      child.call(2, "add", { a: 3, b: 4 }, MODERN);
      assert.equal(text(await child.reply(1)), "3");
      const modern = await child.reply(2);
      assert.equal(text(modern), "7");
      assert.equal(modern.result.structuredContent, 7);
      assert.equal(modern.result.resultType, "complete");
    });
  }
});

test("arguments are checked before the handler runs", async () => {
  await withServer(`${ADD} await app.run();`, async (child) => {
    await child.initialize();
    child.call(1, "add", { a: "x" });
    child.call(2, "nope");
    const wrong = await child.reply(1);
    assert.equal(wrong.result.isError, true);
    assert.match(text(wrong), /"add"/);
    assert.equal((await child.reply(2)).error.code, -32602);
  });
});

test("a Standard Schema fills in defaults and transforms, on both sides", async () => {
  const source = `
    import * as z from "zod";
    const app = new Server("t");
    const input = z.object({ a: z.number(), b: z.number().default(5), c: z.string().trim().optional() });
    app.tool("add", { input, output: z.object({ sum: z.number(), extra: z.string().default("e") }) }, async ({ a, b }) => ({ sum: a + b }));
    app.tool("short", { input: z.object({ s: z.string().refine((s) => s.length < 3, "too long") }) }, ({ s }) => s);
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "add", { a: 1 });
    assert.deepEqual((await child.reply(1)).result.structuredContent, { sum: 6, extra: "e" });
    child.call(2, "short", { s: "long" });
    const refused = await child.reply(2);
    assert.equal(refused.result.isError, true);
    assert.match(text(refused), /argument 's': too long/);
  });
});

test("every kind of component is listed and answers", async () => {
  const source = `
    const app = new Server("t");
    app.resource("shelf://about", { description: "d" }, () => "A shelf.");
    app.resource("shelf://raw", { mimeType: "image/png" }, () => new Uint8Array([1, 2, 3]));
    app.resource("shelf://books/{id}{?lang}", { name: "book", mimeType: "application/json" }, async ({ id, lang }) => ({ id, lang: lang ?? null }));
    app.prompt("review", { args: { type: "object", properties: { code: { type: "string" }, n: { type: "integer" } }, required: ["code"] } }, ({ code, n }) => \`Review \${code} \${typeof n}\`);
    app.prompt("talk", {}, () => ["a", g.assistant("b")]);
    app.complete("review", "code", (prefix, given) => [prefix + "!", given.n ?? "none"]);
    app.complete("shelf://books/{id}{?lang}", "id", async (prefix) => ({ values: [prefix + "1"], total: 3, hasMore: true }));
    app.method("acme/double", { params: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } }, ({ n }) => ({ n: n * 2 }));
    app.tool("cover", {}, () => ["Here", g.image(new Uint8Array([1]), "png")]);
    app.tool("all", {}, () => new g.ToolResult(["all"], { structuredContent: { a: 1 }, meta: { k: 1 } }));
    app.tool("nothing", {}, () => {});
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    let id = 0;
    const ask = async (method, params = {}) => {
      child.send({ id: ++id, method, params });
      return child.reply(id);
    };
    assert.equal((await ask("resources/read", { uri: "shelf://about" })).result.contents[0].text, "A shelf.");
    assert.equal((await ask("resources/read", { uri: "shelf://raw" })).result.contents[0].blob, "AQID");
    const book = (await ask("resources/read", { uri: "shelf://books/a%20b" })).result.contents[0];
    assert.deepEqual([JSON.parse(book.text), book.mimeType], [{ id: "a b", lang: null }, "application/json"]);
    assert.equal((await ask("resources/templates/list")).result.resourceTemplates[0].name, "book");
    assert.deepEqual((await ask("prompts/get", { name: "review", arguments: { code: "x", n: "3" } })).result.messages, [
      { role: "user", content: { type: "text", text: "Review x number" } },
    ]);
    assert.deepEqual((await ask("prompts/get", { name: "talk" })).result.messages.map((message) => message.role), ["user", "assistant"]);
    assert.equal((await ask("prompts/get", { name: "review" })).error.code, -32602);
    const ref = { type: "ref/prompt", name: "review" };
    const completed = await ask("completion/complete", { ref, argument: { name: "code", value: "a" }, context: { arguments: { n: "7" } } });
    assert.deepEqual(completed.result.completion.values, ["a!", "7"]);
    const books = { type: "ref/resource", uri: "shelf://books/{id}{?lang}" };
    const suggested = await ask("completion/complete", { ref: books, argument: { name: "id", value: "b" } });
    assert.deepEqual(suggested.result.completion, { values: ["b1"], total: 3, hasMore: true });
    assert.deepEqual((await ask("acme/double", { n: 4 })).result, { n: 8 });
    assert.equal((await ask("acme/double", { n: "x" })).error.code, -32602);
    const cover = (await ask("tools/call", { name: "cover" })).result.content;
    assert.deepEqual(cover, [{ type: "text", text: "Here" }, { type: "image", data: "AQ==", mimeType: "image/png" }]);
    const all = (await ask("tools/call", { name: "all" })).result;
    assert.deepEqual([all.structuredContent, all._meta.k], [{ a: 1 }, 1]);
    assert.deepEqual((await ask("tools/call", { name: "nothing" })).result.content, []);
  });
});

test("each failure gives exactly one reply, with what the caller may know", async () => {
  const source = `
    class Shy extends Error {}
    const app = new Server("t", { exposeErrors: [RangeError] });
    app.tool("tool", {}, () => { throw new g.ToolError("mend it", { k: 1 }); });
    app.tool("throws", {}, () => { throw new Shy("secret"); });
    app.tool("rejects", {}, async () => { await null; throw new Shy("secret"); });
    app.tool("exposed", {}, () => { throw new RangeError("seen"); });
    app.tool("protocol", {}, () => { throw new g.ProtocolError(-32050, "own", { d: 1 }); });
    app.tool("cycle", {}, () => { const a = {}; a.a = a; return a; });
    app.tool("map", {}, async () => ({ n: new Map() }));
    app.tool("undefined thrown", {}, () => { throw undefined; });
    app.tool("fits", { output: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } }, () => ({ a: "x" }));
    app.resource("shelf://{id}", {}, ({ id }) => { throw new g.ResourceNotFound("shelf://" + id); });
    await app.run();`.replace('"undefined thrown"', '"undefined"');
  await withServer(source, async (child) => {
    await child.initialize();
    const names = ["tool", "throws", "rejects", "exposed", "cycle", "map", "undefined", "fits"];
    for (const name of names) child.call(name, name);
    child.call("protocol", "protocol");
    child.send({ id: "missing", method: "resources/read", params: { uri: "shelf://7" } });
    const replies = await Promise.all(names.map((name) => child.reply(name)));
    for (const reply of replies) assert.equal(reply.result?.isError, true, JSON.stringify(reply));
    const [tool, throws, rejects, exposed, cycle] = replies.map(text);
    assert.equal(tool, "mend it");
    assert.equal(replies[0].result._meta.k, 1);
    assert.match(throws, /Shy.*reference/);
    assert.doesNotMatch(throws + rejects, /secret/);
    assert.equal(exposed, "seen");
    assert.match(cycle, /reference/);
    assert.deepEqual((await child.reply("protocol")).error, { code: -32050, message: "own", data: { d: 1 } });
    assert.equal((await child.reply("missing")).error.code, -32002);
    assert.equal((await child.end()).code, 0);
    assert.equal(new Set(child.frames.map((frame) => frame.id)).size, child.frames.length);
    assert.match(child.stderr, /secret/);
    assert.match(child.stderr, /contains itself/);
  });
});

test("text of any size and shape comes through", async () => {
  const source = `
    const app = new Server("t");
    const input = { type: "object", properties: { s: { type: "string" } }, required: ["s"] };
    app.tool("echo", { input }, ({ s }) => s);
    app.tool("late", { input }, async ({ s }) => ({ s }));
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    const texts = ["", "a\nb\r\n", "\u2028 \u0000 \"\\ 7 8\n", "é漢😀".repeat(5_000), "x".repeat(3_000_000), "7 4 fake\n8 4 fake"];
    texts.forEach((s, id) => child.call(id, "echo", { s }));
    texts.forEach((s, id) => child.call(`late ${id}`, "late", { s }));
    for (const [id, s] of texts.entries()) {
      assert.ok(text(await child.reply(id)) === s, `text ${id}`);
      assert.ok(JSON.parse(text(await child.reply(`late ${id}`))).s === s, `late text ${id}`);
    }
  });
});

test("ids come back exactly, and as the handler sees them", async () => {
  const source = `
    const app = new Server("t");
    app.tool("id", {}, (_, ctx) => [typeof ctx.requestId, String(ctx.requestId), ctx.revision, ctx.client.name, ctx.meta.mine ?? null]);
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.send('{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"id","_meta":{"mine":5}}}');
    child.send('{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"id"}}');
    child.call("x", "id", {}, { ...MODERN, mine: 6 });
    const reply = await child.frame((frame) => frame.id === 12345678901234567890);
    assert.deepEqual(JSON.parse(text(reply)), ["string", "12345678901234567890", "2025-11-25", "test", 5]);
    assert.deepEqual(JSON.parse(text(await child.reply(42))), ["number", "42", "2025-11-25", "test", null]);
    assert.deepEqual(JSON.parse(text(await child.reply("x"))), ["string", "x", "2026-07-28", "test", 6]);
  });
});

test("progress and log messages are sent while the handler runs, a sync one as well", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const told = join(folder, "told");
  const source = `
    import { existsSync } from "node:fs";
    const app = new Server("t");
    app.tool("work", {}, (_, ctx) => {
      ctx.progress(1, { total: 2, message: "half" });
      ctx.info({ at: "half" });
      const end = Date.now() + 60_000;
      while (Date.now() < end && !existsSync(${JSON.stringify(told)}));
      return "done";
    });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "work", {}, { progressToken: "p" });
    const progress = await child.frame((frame) => frame.method === "notifications/progress");
    assert.deepEqual(progress.params, { progressToken: "p", progress: 1, total: 2, message: "half" });
    assert.ok(!child.frames.some((frame) => frame.id === 1), "the progress comes before the handler has ended");
    const log = await child.frame((frame) => frame.method === "notifications/message");
    assert.deepEqual([log.params.level, log.params.data], ["info", { at: "half" }]);
    writeFileSync(told, "");
    assert.equal(text(await child.reply(1)), "done");
  });
  rmSync(folder, { recursive: true });
});

test("sync handlers answer in order; async ones when they are done, those that never waited with them", async () => {
  const source = `
    const app = new Server("t");
    app.tool("sync", {}, () => "s");
    app.tool("async", {}, async () => "a");
    let finish;
    app.tool("slow", {}, () => new Promise((resolve) => (finish = resolve)));
    app.tool("finish", {}, () => finish("late"));
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "slow");
    for (let id = 2; id < 12; id++) child.call(id, id % 2 ? "sync" : "async");
    for (let id = 2; id < 12; id++) await child.reply(id);
    child.call("finish", "finish");
    await child.reply(1);
    const ids = child.frames.map((frame) => frame.id).filter((id) => typeof id === "number");
    assert.equal(ids.at(-1), 1);
    assert.deepEqual(ids.filter((id) => id % 2 && id > 1), [3, 5, 7, 9, 11]);
    assert.deepEqual(ids.filter((id) => id % 2 === 0), [2, 4, 6, 8, 10]);
  });
});

test("20,000 concurrent handlers each find their own context", async () => {
  const source = `
    const app = new Server("t");
    const input = { type: "object", properties: { n: { type: "integer" } } };
    app.tool("mine", { input }, async ({ n }, ctx) => {
      await new Promise((resolve) => setTimeout(resolve, 1 + (n % 7)));
      await null;
      return [g.currentContext() === ctx, g.currentContext().requestId === n];
    });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    const count = 20_000;
    for (let n = 0; n < count; n++) child.call(n, "mine", { n });
    await child.frame(() => child.frames.length > count, 300_000);
    assert.ok(child.frames.every((frame) => frame.id === "init" || text(frame) === "[true,true]"));
  });
});

test("lists change while the server runs, and clients are notified", async () => {
  const source = `
    const app = new Server("t");
    app.tool("extra", { tags: ["x"], enabled: false }, () => "e");
    app.tool("set", { input: { type: "object", properties: { how: { type: "string" } } } }, ({ how }) => {
      if (how === "enable") app.tools.enable({ tags: ["x"] });
      if (how === "disable") app.tools.disable("extra");
      if (how === "update") app.tools.update("extra", { description: "new", annotations: { readOnly: true } });
      if (how === "add") app.tool("added", {}, () => "added");
      if (how === "remove") app.tools.remove("added");
      return [[...app.tools].map((tool) => tool.name), app.tools.size, app.tools.has("extra"), app.tools.get("extra").annotations ?? null];
    });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    let id = 0;
    const set = async (how) => {
      child.call(++id, "set", { how });
      return JSON.parse(text(await child.reply(id)));
    };
    const listed = async () => {
      child.send({ id: ++id, method: "tools/list" });
      return (await child.reply(id)).result.tools;
    };
    const told = () => child.frames.filter((frame) => frame.method === "notifications/tools/list_changed").length;
    assert.deepEqual((await listed()).map((tool) => tool.name), ["set"]);
    await set("enable");
    assert.deepEqual((await listed()).map((tool) => tool.name), ["extra", "set"]);
    assert.deepEqual(await set("update"), [["extra", "set"], 2, true, { readOnly: true }]);
    assert.equal((await listed())[0].description, "new");
    assert.deepEqual((await set("add"))[0], ["extra", "set", "added"]);
    child.call("added", "added");
    assert.equal(text(await child.reply("added")), "added");
    await set("remove");
    await set("disable");
    assert.deepEqual((await listed()).map((tool) => tool.name), ["set"]);
    assert.equal(told(), 5);
  });
});

test("middleware goes around handlers, and a mounted server keeps its own", async () => {
  const source = `
    const inner = new Server("inner", { lifespan: () => ({ value: "inner life", close: () => console.log("inner closed") }) });
    inner.middleware(async (request, next) => "i(" + (await next()) + ")");
    inner.tool("life", {}, (_, ctx) => ctx.lifespan + " " + ctx.server.name);
    inner.prompt("ask", {}, () => "asked");
    const app = new Server("outer", { lifespan: async () => ({ value: 7, close: async () => console.log("outer closed") }) });
    app.middleware(async ({ method, params }, next) => method + " " + params.name + " o(" + (await next()) + ")", { on: "tools/call" });
    app.middleware(g.middleware.rateLimit(0.01, { burst: 8 }));
    app.mount("in", inner);
    inner.tool("later", {}, () => "later");
    app.tool("own", {}, (_, ctx) => String(ctx.lifespan));
    app.tool("read", {}, async (_, ctx) => (await ctx.readResource("shelf://x")).text);
    app.resource("shelf://x", {}, () => "x");
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "in_life");
    assert.equal(text(await child.reply(1)), "tools/call in_life o(i(inner life inner))");
    child.call(2, "in_later");
    assert.equal(text(await child.reply(2)), "tools/call in_later o(i(later))");
    child.call(3, "own");
    assert.equal(text(await child.reply(3)), "tools/call own o(7)");
    child.call(4, "read");
    assert.equal(text(await child.reply(4)), "tools/call read o(x)");
    child.send({ id: 5, method: "prompts/get", params: { name: "in_ask" } });
    assert.match(JSON.stringify(await child.reply(5)), /i\(asked\)/);
    for (let id = 10; id < 20; id++) child.call(id, "own");
    assert.match(text(await child.reply(19)), /too many requests: at most 0\.01 per second/);
    assert.equal((await child.end()).code, 0);
    assert.match(child.stderr, /inner closed\nouter closed/);
  });
});

test("a question without the client's capability fails with the capability's name", async () => {
  const source = `
    const app = new Server("t");
    app.tool("asks", {}, async (_, ctx) => ctx.elicit("Sure?", { type: "boolean" }));
    app.tool("returns", {}, () => g.ask.roots());
    app.tool("catches", {}, async (_, ctx) => ctx.sample("x").catch((error) => [error instanceof g.NotSupported, error.message]));
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    for (const name of ["asks", "returns", "catches"]) child.call(name, name);
    assert.match(text(await child.reply("asks")), /declare elicitation/);
    assert.match(text(await child.reply("returns")), /declare roots/);
    assert.match(text(await child.reply("catches")), /^\[true,.*sampling/);
  });
});

test("notifications reach who listens to them", async () => {
  const source = `
    const app = new Server("t");
    const heard = [];
    app.notification("acme/ping", { params: { type: "object", properties: { n: { type: "integer" } } } }, ({ n }) => void heard.push(n));
    app.onRootsChanged(async () => void heard.push("roots"));
    app.tool("heard", {}, () => heard);
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.send({ method: "acme/ping", params: { n: 1 } }, { method: "acme/ping", params: { n: "x" } });
    child.send({ method: "notifications/roots/list_changed" }, { method: "acme/unknown" });
    child.call(1, "heard");
    assert.equal(text(await child.reply(1)), '[1,"roots"]');
    assert.match(child.stderr, /Invalid params/);
  });
});

test("a pattern with look-ahead is checked before the handler, and lets what matches pass", async () => {
  const app = new Server("vault");
  const password = { type: "string", pattern: "(?=.*\\d)(?=.*[a-z]).{8,}" };
  app.tool("store", { input: { type: "object", properties: { password }, required: ["password"] } }, () => "stored");
  const client = await Client.connect(app);
  assert.equal((await client.callTool("store", { password: "abcdefgh1" })).text, "stored");
  await assert.rejects(client.callTool("store", { password: "abc" }), /expected a string that matches/);
  await assert.rejects(client.callTool("store", { password: "a".repeat(100_000) }), /takes too many steps/);
  await client.close();
});
