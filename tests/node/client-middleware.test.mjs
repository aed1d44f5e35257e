// Middleware of clients.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";

import { Client, ClientGroup, McpError, ProtocolError, Server, ToolError } from "gudgeon";
import * as z from "zod";

import { closing } from "./closing.mjs";

const eras = ["2024-11-05", "2025-11-25", "2026-07-28"];
const tenant = new AsyncLocalStorage();

function shelf() {
  const app = new Server("shelf");
  app.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
  app.tool("broken", {}, () => {
    throw new ToolError("out of paper");
  });
  app.tool("slow", {}, async (_, ctx) => {
    for (let step = 1; step <= 3; step++) await ctx.progress(step, { total: 3 });
    return "done";
  });
  app.resource("shelf://about", {}, () => "two books");
  app.prompt("greet", {}, () => "hello");
  return app;
}

/** Records the requests that pass, each with the caller's tenant. */
function recorder() {
  const seen = [];
  const record = async (request, next) => {
    seen.push([request.method, tenant.getStore()]);
    return next();
  };
  return { seen, record };
}

const using = (options, use) => closing(Client.connect(shelf(), { timeoutMs: 60_000, ...options }), use);

for (const revision of eras) {
  test(`every request runs inside middleware, in the context of its caller: ${revision}`, async () => {
    const [outer, inner] = [recorder(), recorder()];
    await using({ revision, middleware: [outer.record, inner.record] }, (client) =>
      tenant.run("ada", async () => {
        assert.equal((await client.listTools()).length, 3);
        assert.equal((await client.callTool("add", { a: 1, b: 2 })).data, 3);
        assert.equal((await client.readResource("shelf://about")).text, "two books");
        await client.getPrompt("greet");
        await client.ping();
        await assert.rejects(client.request("x/y", { a: 1 }), ProtocolError);
      }),
    );
    const methods = ["tools/list", "tools/call", "resources/read", "prompts/get", "ping", "x/y"];
    assert.deepEqual(outer.seen, methods.map((method) => [method, "ada"]));
    assert.deepEqual(inner.seen, outer.seen);
  });
}

test("params and results can be changed, answered and sent again", async () => {
  let attempts = 0;
  const change = async (request, next) => {
    if (request.method === "tools/list") {
      const result = await next();
      return { ...result, tools: result.tools.filter(({ name }) => name === "add") };
    }
    if (request.params.name === "answered") return { content: [{ type: "text", text: "answered" }] };
    const changed = { ...request, params: { ...request.params, arguments: { a: 1, b: 10 } } };
    let result;
    for (; attempts < 3; attempts++) result = await next(changed);
    return result;
  };
  await using({ middleware: [change] }, async (client) => {
    assert.deepEqual((await client.listTools()).map(({ name }) => name), ["add"]);
    assert.equal((await client.callTool("answered")).text, "answered");
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).data, 11);
  });
  assert.equal(attempts, 3);
});

test("errors are thrown as they are", async () => {
  class Refused extends Error {}
  const refused = new Refused("not today");
  const results = [];
  const guard = async (request, next) => {
    if (request.params.name === "refused") throw refused;
    try {
      results.push(await next());
    } catch (error) {
      results.push(error);
      throw error;
    }
    return results.at(-1);
  };
  await using({ middleware: [guard] }, async (client) => {
    await assert.rejects(client.callTool("refused"), (error) => error === refused);
    await assert.rejects(client.callTool("broken"), (error) => error instanceof ToolError && error.message === "out of paper");
    assert.equal(results.at(-1).isError, true);
    assert.equal((await client.callTool("broken", {}, { throwOnError: false })).isError, true);
    await assert.rejects(client.callTool("nothing"), (error) => error instanceof ProtocolError && error === results.at(-1));
  });
});

test("progress arrives, and an aborted call ends what its middleware sent", async () => {
  const { record } = recorder();
  let sent;
  const wait = (request, next) => {
    sent = next();
    return sent;
  };
  const app = shelf();
  const stopping = new AbortController();
  app.tool("forever", {}, (_, ctx) =>
    new Promise((resolve) => {
      ctx.signal.addEventListener("abort", resolve);
      stopping.abort();
    }),
  );
  await closing(Client.connect(app, { middleware: [record, wait] }), async (client) => {
    const steps = [];
    await client.callTool("slow", {}, { onProgress: ({ progress }) => steps.push(progress) });
    assert.deepEqual(steps, [1, 2, 3]);
    const call = client.callTool("forever", {}, { signal: stopping.signal });
    await assert.rejects(call, { name: "AbortError" });
    await assert.rejects(sent, { name: "AbortError" });
  });
});

test("a group runs the middleware of its clients, in the context of its caller", async () => {
  const { seen, record } = recorder();
  // Two servers may have the tool, so that it is looked for in their lists.
  const group = await ClientGroup.connect({ a: shelf(), a_b: shelf() }, { middleware: [record] });
  const run = (who, use) => tenant.run(who, use);
  const [tools, found, read] = await Promise.all([
    run("ada", () => group.listTools()),
    run("bob", () => group.callTool("a_b_add", { a: 1, b: 2 })),
    run("eve", () => group.readResource("shelf://about", { server: "a_b" })),
  ]);
  assert.deepEqual([tools.length, found.data, read.text], [6, 3, "two books"]);
  assert.deepEqual(seen.map(([method, who]) => `${who} ${method}`).sort(), [
    "ada tools/list",
    "ada tools/list",
    "bob tools/call",
    "bob tools/list",
    "bob tools/list",
    "eve resources/read",
  ]);
  assert.equal(tenant.getStore(), undefined);
  await group.close();
});

test("wrong middleware is named", async () => {
  for (const middleware of [() => 1, ["log"], "log"]) {
    await assert.rejects(Client.connect(shelf(), { middleware }), { name: "TypeError", message: /middleware must be an array of functions/ });
  }
  async function nothing(_, next) {
    await next();
  }
  await using({ middleware: [nothing] }, (client) =>
    assert.rejects(client.callTool("add", { a: 1, b: 2 }), { name: "TypeError", message: /"nothing" returned nothing/ }),
  );
  const unnamed = (request, next) => next({ ...request, params: {} });
  await using({ middleware: [unnamed] }, (client) =>
    assert.rejects(client.callTool("add", { a: 1, b: 2 }), (error) => !(error instanceof McpError) && /"name" of tools\/call: it is missing/.test(error.message)),
  );
});
