/** Middleware around handlers and around what the core answers, the ready-made ones, and methods in the core's place. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";

import { ask, middleware, ProtocolError, ResourceNotFound, Server, ToolError, ToolResult } from "gudgeon";
import { connect, eras } from "gudgeon/testing";

import { closing } from "./closing.mjs";
import { call } from "./http.mjs";

const title = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

function shelf() {
  const app = new Server("shelf");
  app.tool("open", { description: "Opens a book.", input: title }, ({ title }) => `open ${title}`);
  return app;
}

const using = (app, options, use) => closing(connect(app, options), use);

function noting(app, on) {
  const noted = [];
  app.middleware(async ({ method, params }, next) => {
    const result = await next();
    noted.push([method, params, result]);
    return result;
  }, { on });
  return noted;
}

for (const era of eras) {
  test(`every request passes: ${era}`, async () => {
    const app = shelf();
    app.prompt("review", { args: title }, ({ title }) => `Review ${title}`);
    app.complete("review", "title", () => ["Dune"]);
    app.resource("shelf://about", {}, () => "about");
    const seen = noting(app);
    await using(app, { revision: era }, async (client) => {
      await client.listTools();
      await client.callTool("open", { title: "Dune" });
      await client.getPrompt("review", { title: "Dune" });
      await client.readResource("shelf://about");
      await client.complete("review", "title", "D");
      await client.ping();
    });
    const of = (method) => seen.find(([name]) => name === method) ?? [];
    assert.ok(of(era === "2026-07-28" ? "server/discover" : "initialize").length > 0);
    assert.equal(of("tools/list")[2].items[0].description, "Opens a book.");
    assert.deepEqual(of("tools/call").slice(1), [{ name: "open", arguments: { title: "Dune" } }, "open Dune"]);
    assert.equal(of("prompts/get")[2], "Review Dune");
    assert.equal(of("resources/read")[2], "about");
    const [, params, completion] = of("completion/complete");
    assert.deepEqual(params.ref, { type: "ref/prompt", name: "review" });
    assert.deepEqual(params.argument, { name: "title", value: "D" });
    assert.deepEqual(completion, ["Dune"]);
    assert.equal(of("ping").length > 0, era !== "2026-07-28");
  });
}

test("changed lists are sent in the client's revision", async () => {
  const app = shelf();
  app.middleware(async (_, next) => {
    const page = await next();
    const shut = { name: "shut", title: "Shut", inputSchema: { type: "object" }, annotations: { readOnly: true } };
    return { ...page, items: [shut, ...page.items] };
  }, { on: "tools/list" });
  for (const [era, title] of [["2024-11-05", undefined], ["2026-07-28", "Shut"]]) {
    const tools = await using(app, { revision: era }, (client) => client.listTools());
    assert.deepEqual(tools.map(({ name }) => name), ["shut", "open"]);
    assert.equal(tools[0].title, title);
    if (title) assert.deepEqual(tools[0].annotations, { readOnly: true });
  }
});

test("results that are changed in place are sent changed", async () => {
  const app = shelf();
  app.middleware(async ({ method }, next) => {
    const result = await next();
    if (method === "initialize" || method === "server/discover") result.instructions = "Changed.";
    return result;
  });
  for (const era of eras) assert.equal(await using(app, { revision: era }, (client) => client.instructions), "Changed.");
});

for (const { case: name, method, params, changes = {}, returns, result, error } of JSON.parse(
  readFileSync(new URL("../middleware_results.json", import.meta.url), "utf8"),
)) {
  test(`results of the core as middleware changes them: ${name}`, async () => {
    const app = new Server("shelf", { listTtlMs: 5000, debug: true });
    app.tool("open", {}, () => undefined);
    app.prompt("review", { args: { type: "object", properties: { title: {}, other: {} } } }, () => "Review");
    app.complete("review", "title", () => []);
    app.resource("shelf://about", {}, () => "about");
    app.middleware(async (request, next) => {
      Object.assign(request.params, changes);
      const given = await next();
      return returns === undefined ? given : (returns ?? undefined);
    }, { on: method });
    await using(app, { revision: "2026-07-28" }, async (client) => {
      if (error === undefined) {
        const sent = await client.request(method, params);
        assert.deepEqual({ ...sent, ...result }, sent);
      } else {
        await assert.rejects(client.request(method, params), (thrown) => thrown.message.includes(error) || assert.equal(thrown.message, error));
      }
    });
  });
}

test("what the core refuses passes as its error", async () => {
  const app = shelf();
  app.resource("shelf://about", {}, () => "about");
  const noted = [];
  app.middleware(async ({ method, params }, next) => {
    try {
      return await next();
    } catch (error) {
      noted.push([method, error.code]);
      if (params.name === "lost") return new ToolResult("found");
      throw error;
    }
  });
  await using(app, { revision: "2025-11-25" }, async (client) => {
    assert.equal((await client.callTool("lost")).text, "found");
    await assert.rejects(client.callTool("none"), /Unknown tool: none/);
    await assert.rejects(client.readResource("shelf://none"), (error) => error instanceof ResourceNotFound && error.code === -32002);
  });
  assert.deepEqual(noted, [["tools/call", -32602], ["tools/call", -32602], ["resources/read", -32602]]);
});

test("arguments that are changed in place or replaced are given changed, and a template's URI is the one that is read", async () => {
  const app = shelf();
  app.resource("shelf://books/{id}", {}, ({ id }) => id);
  const seen = [];
  app.middleware(({ method, params }, next) => {
    seen.push(params.uri ?? params.name);
    if (method === "resources/read") params.variables.id = "8";
    else if (params.arguments.title === "dune") params.arguments.title = "emma";
    else params.arguments = { title: "other" };
    return next();
  }, { on: ["tools/call", "resources/read"] });
  const house = new Server("house");
  house.mount("shelf", app);
  for (const [served, before] of [[app, ""], [house, "shelf_"]]) {
    await using(served, {}, async (client) => {
      assert.equal((await client.callTool(`${before}open`, { title: "dune" })).text, "open emma");
      assert.equal((await client.callTool(`${before}open`, { title: "x" })).text, "open other");
      assert.equal((await client.readResource("shelf://books/7")).text, "8");
    });
  }
  assert.deepEqual(seen, ["open", "open", "shelf://books/7", "open", "open", "shelf://books/7"]);
});

test("a result that is not returned is the middleware's fault, and params of what the core answers stay", async () => {
  const app = shelf();
  app.method("acme/nothing", { params: { type: "object" } }, () => undefined);
  app.middleware(async (_, next) => void (await next()), { on: ["tools/call", "prompts/list", "acme/nothing"] });
  app.middleware((request, next) => {
    request.params["cursor"] = "x";
    return next();
  }, { on: "tools/list" });
  app.prompt("review", {}, () => "Review.");
  await using(app, { revision: "2025-11-25" }, async (client) => {
    assert.match((await client.callTool("open", { title: "dune" }, { throwOnError: false })).text, /failed: TypeError/);
    await assert.rejects(client.listPrompts(), /prompts\/list failed: TypeError/);
    await assert.rejects(client.listTools(), /tools\/list failed: TypeError/);
    assert.deepEqual(await client.request("acme/nothing"), {}, "there was nothing to return");
  });
});

for (const era of ["2025-06-18", "2025-11-25", "2026-07-28"]) {
  test(`a handler in the core's place asks as a tool does: ${era}`, async () => {
    const app = new Server("gateway");
    const boolean = { type: "boolean" };
    app.method("tools/call", { params: { type: "object" } }, async ({ name }, ctx) => {
      const sure = await ctx.elicit(`${name}?`, boolean);
      return new ToolResult(`${name} ${sure} ${await ctx.elicit("Really?", boolean)}`);
    });
    app.method("tools/list", { params: { type: "object" } }, () => ({ tools: [{ name: "any", inputSchema: { type: "object" } }] }));
    for (const replay of [false, true]) {
      await using(app, { revision: era, replay, answers: { "any?": true, "Really?": false } }, async (client) => {
        assert.equal((await client.callTool("any")).text, "any true false");
      });
    }
  });
}

test("questions pass as handlers return them", async () => {
  const app = new Server("t");
  app.tool("remove", {}, (_, ctx) => {
    const sure = ask.elicit("Sure?", { type: "boolean" });
    const answer = ctx.answer(sure);
    return answer === undefined ? sure : String(answer);
  });
  const noted = noting(app, "tools/call");
  app.middleware(middleware.responseLimit(200));
  for (const era of ["2025-06-18", "2026-07-28"]) {
    await using(app, { revision: era, answers: { "Sure?": true } }, async (client) => {
      assert.equal((await client.callTool("remove")).text, "true");
    });
  }
  assert.equal(noted.at(-1)[2], "true");
});

test("a method of the specification's is replaced", async () => {
  const app = new Server("gateway");
  const cursor = { type: "object", properties: { cursor: { type: "string" } } };
  app.method("tools/list", { params: cursor }, ({ cursor = "first" }) => ({
    tools: [{ name: cursor, title: "T", inputSchema: { type: "object" } }],
  }));
  app.method("tools/call", { params: { type: "object" } }, ({ name, arguments: args }) => new ToolResult(`${name} ${JSON.stringify(args)}`));
  for (const era of eras) {
    await using(app, { revision: era }, async (client) => {
      assert.ok("tools" in client.capabilities);
      assert.deepEqual((await client.listTools()).map(({ name }) => name), ["first"]);
      assert.equal((await client.listToolsPage("second")).items[0].name, "second");
      assert.equal((await client.callTool("any", { a: 1 })).text, 'any {"a":1}');
    });
  }
  for (const name of ["initialize", "subscriptions/listen", "sampling/createMessage"]) {
    assert.throws(() => app.method(name, { params: cursor }, () => ({})), new RegExp(name));
  }
});

// ── ready-made ──────────────────────────────────────────────────────────────────────────────────────

async function linesOf(run) {
  const written = mock.method(console, "error", () => {});
  try {
    await run();
    return written.mock.calls.map(({ arguments: [line] }) => String(line));
  } finally {
    written.mock.restore();
  }
}

test("timing writes the duration", async () => {
  const app = shelf();
  app.middleware(middleware.timing(), { on: ["tools/call", "tools/list"] });
  const lines = await linesOf(() =>
    using(app, {}, async (client) => {
      await client.listTools();
      await client.callTool("open", { title: "x" });
    }),
  );
  assert.ok(lines.some((line) => /^tools\/list took \d+\.\d ms$/.test(line)), lines.join());
  assert.ok(lines.some((line) => /^tools\/call open took \d+\.\d ms$/.test(line)), lines.join());
});

test("logging writes the request and its outcome", async () => {
  const app = shelf();
  app.tool("fails", {}, () => {
    throw new ToolError("no");
  });
  app.middleware(middleware.logging({ params: true }), { on: "tools/call" });
  const lines = await linesOf(() =>
    using(app, {}, async (client) => {
      await client.callTool("open", { title: "x" });
      await client.callTool("fails", {}, { throwOnError: false });
    }),
  );
  assert.deepEqual(lines, [
    'tools/call open {"name":"open","arguments":{"title":"x"}}',
    "tools/call open is done",
    'tools/call fails {"name":"fails","arguments":{}}',
    "tools/call fails failed: ToolError: no",
  ]);
});

test("a string from a client stays on its line", async () => {
  const app = shelf();
  app.middleware(middleware.timing(), { on: "tools/call" });
  app.middleware(middleware.logging({ params: true }), { on: "tools/call" });
  const lines = await linesOf(() =>
    using(app, {}, async (client) => {
      await assert.rejects(client.callTool("open\nERROR \x1b[2J\u2028", { title: "\x1b\x9b" }));
    }),
  );
  assert.ok(lines.length >= 3, lines.join());
  for (const line of lines) {
    assert.match(line, /^[ -~]+$/);
    assert.ok(line.startsWith("tools/call open\\nERROR \\u{1b}[2J\\u{2028} "), line);
  }
});

test("rates are limited and the handshake is not counted", async (t) => {
  let now = 1_000;
  t.mock.method(performance, "now", () => now);
  for (const era of eras) {
    const app = shelf();
    app.middleware(middleware.rateLimit(0.01, { burst: 3 }));
    await using(app, { revision: era }, async (client) => {
      for (let n = 0; n < 3; n++) await client.ping();
      await client.listTools();
      assert.equal((await client.callTool("open", { title: "x" })).text, "open x");
      await client.request("tools/list");
      now += 500;
      const refused = await client.callTool("open", { title: "x" }, { throwOnError: false });
      assert.equal(refused.text, "too many requests: at most 0.01 per second are allowed; try again in 99.5 s");
      await assert.rejects(client.request("tools/list"), (error) => error instanceof ProtocolError && error.code === 429);
    });
  }
});

test("notifications of vendors pass middleware and are not counted", async () => {
  const app = shelf();
  const heard = [];
  app.middleware(middleware.rateLimit(0.01));
  app.middleware((request, next) => {
    request.params["x"] *= 10;
    return next();
  }, { on: "acme/poke" });
  app.notification("acme/poke", { params: { type: "object" } }, ({ x }) => void heard.push(x));
  await using(app, {}, async (client) => {
    for (const x of [0, 1, 2]) await client.notify("acme/poke", { x });
    assert.equal((await client.callTool("open", { title: "x" })).text, "open x");
  });
  assert.deepEqual(heard, [0, 10, 20]);
});

test("rates come back with time, and a principal counts by itself", async (t) => {
  let now = 1_000;
  t.mock.method(performance, "now", () => now);
  const limit = middleware.rateLimit(2);
  const request = (principal) => ({ method: "tools/list", params: {}, ctx: { principal, client: { name: "c" } } });
  const go = (principal) => limit(request(principal), async () => "ok");
  assert.equal(await go(), "ok");
  await assert.rejects(go(), /at most 2 per second are allowed; try again in 0\.5 s/);
  now += 500;
  assert.equal(await go(), "ok");
  assert.equal(await go({ subject: "ada" }), "ok");
});

test("responses are limited", async () => {
  const app = shelf();
  app.resource("shelf://{id}", {}, ({ id }) => id.repeat(100));
  app.middleware(middleware.responseLimit(150));
  await using(app, { revision: "2025-11-25" }, async (client) => {
    assert.equal((await client.callTool("open", { title: "x" })).text, "open x");
    const refused = await client.callTool("open", { title: "x".repeat(200) }, { throwOnError: false });
    assert.match(refused.text, /^the result of tools\/call open has \d+ bytes, more than the limit of 150; request less$/);
    await assert.rejects(client.readResource("shelf://xx"), (error) => error.code === 413 && /resources\/read/.test(error.message));
  });
});

test("middleware that would never run is refused", async () => {
  const app = shelf();
  for (const [on, mend] of [
    ["tools/cal", /did you mean "tools\/call"\?/],
    [["tools/list", "prompt/get"], /did you mean "prompts\/get"\?/],
    ["call_tool", /such as "tools\/call"/],
    ["notifications/initialized", /such as "tools\/call"/],
    [[], /no methods are named/],
    [5, /a method such as "tools\/call"/],
  ]) {
    assert.throws(() => app.middleware((_, next) => next(), { on }), (error) => error instanceof TypeError && mend.test(error.message));
  }
  await using(app, {}, async (client) => assert.equal((await client.callTool("open", { title: "x" })).text, "open x"));
});

test("middleware of a vendor's method may come first, and params are checked before it", async () => {
  const app = new Server("t");
  const noted = noting(app, "acme/echo");
  const text = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  app.method("acme/echo", { params: text }, ({ text }) => ({ echo: text }));
  app.method("reindex", { params: { type: "object" } }, () => ({}));
  const more = noting(app, "reindex");
  await using(app, {}, async (client) => {
    assert.equal((await client.request("acme/echo", { text: "hello" })).echo, "hello");
    await client.request("reindex");
    assert.deepEqual([...noted, ...more].map(([method]) => method), ["acme/echo", "reindex"]);
    await assert.rejects(client.request("acme/echo", {}), /Invalid params: missing parameter 'text'/);
    await assert.rejects(client.request("acme/echo", { text: 5 }), /Invalid params: parameter 'text': expected a string, got 5/);
  });
});

test("invalid numbers are refused", () => {
  assert.throws(() => middleware.rateLimit(0), /above 0/);
  assert.throws(() => middleware.rateLimit(1, { burst: 0 }), /at least 1/);
  assert.throws(() => middleware.rateLimit(1, { by: "moon" }), /"principal", "client" or "server"/);
  assert.throws(() => middleware.responseLimit(0), /above 0/);
});
