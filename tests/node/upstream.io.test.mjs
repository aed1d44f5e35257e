// Upstream servers of a server in Node: that what passes in Rust passes here too, and the middleware around it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, Server, ToolError, upstream } from "gudgeon";

import { eventually } from "./http.mjs";

const SHELF = { command: process.execPath, args: [fileURLToPath(new URL("upstream-shelf.mjs", import.meta.url))] };
const GONE = { command: "no-such-program-7" };
const REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"];
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const YES = { onElicit: () => true };

function desk(options) {
  const app = new Server("desk");
  app.tool("open", {}, () => "open");
  app.mount(upstream(SHELF, options), "shelf");
  return app;
}

async function withClient(app, options, use) {
  const client = await Client.connect(app, options);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

test("everything is offered under the prefix", async () => {
  await withClient(desk(), {}, async (client) => {
    const names = (await client.listTools()).map(({ name }) => name);
    assert.deepEqual(names, ["open", "shelf_greet", "shelf_fail", "shelf_book", "shelf_count", "shelf_wait", "shelf_grow", "shelf_touch", "shelf_pid", "shelf_end"]);
    assert.equal((await client.callTool("open")).text, "open");
    assert.equal((await client.callTool("shelf_greet", { name: "Ada" })).text, "Hello, Ada!");
    assert.equal((await client.readResource("shelf://about")).text, "two books");
    assert.equal((await client.readResource("shelf://books/7")).text, "book 7");
    assert.equal((await client.getPrompt("shelf_review", { name: "Dune" })).messages[0].content.text, "Review Dune.");
    assert.deepEqual((await client.complete("shelf_review", "name", "D")).values, ["Dune"]);
    await assert.rejects(client.callTool("shelf_fail"), (error) => error instanceof ToolError && error.message === "it is broken");
    const steps = [];
    await client.callTool("shelf_count", {}, { onProgress: ({ progress }) => steps.push(progress) });
    assert.deepEqual(steps, [1, 2, 3]);
  });
});

for (const below of REVISIONS) {
  for (const above of REVISIONS) {
    test(`questions of ${below} reach clients of ${above} while many calls run`, async () => {
      const onElicit = ({ message }) => message.includes("3");
      await withClient(desk({ revision: below }), { revision: above, onElicit }, async (client) => {
        const rooms = [0, 1, 2, 3, 4, 5];
        const results = await Promise.all(rooms.map((room) => client.callTool("shelf_book", { name: `room ${room}` })));
        assert.deepEqual(results.map(({ text }) => text), rooms.map((room) => `room ${room}: ${room === 3}`));
      });
    });
  }
}

for (const isWrapped of [false, true]) {
  test(`cancellation passes ${isWrapped ? "through" : "without"} middleware`, async () => {
    const app = desk();
    if (isWrapped) app.middleware((_, next) => next());
    await withClient(app, {}, async (client) => {
      const controller = new AbortController();
      const call = client.callTool("shelf_wait", {}, { signal: controller.signal });
      await client.callTool("shelf_greet", { name: "Ada" });
      controller.abort();
      await assert.rejects(call, { name: "AbortError" });
      assert.equal((await client.callTool("shelf_greet", { name: "Eve" })).text, "Hello, Eve!");
    });
  });
}

for (const above of ["2025-11-25", "2026-07-28"]) {
  test(`middleware runs around calls of clients of ${above} and sees its own names`, async () => {
    const app = desk();
    const seen = [];
    app.middleware(async ({ method, params }, next) => {
      seen.push([method, params.name ?? params.uri ?? params.ref?.name]);
      if (params.name === "shelf_fail") throw new ToolError("it is locked");
      if (params.arguments?.name === "Ada") params.arguments.name = "Countess";
      return next();
    });
    const house = new Server("house");
    house.mount(app, "desk");
    const outer = [];
    house.middleware(async ({ params }, next) => {
      outer.push(params.name);
      return next();
    }, { on: "tools/call" });
    await withClient(house, { revision: above, ...YES }, async (client) => {
      assert.equal((await client.callTool("desk_shelf_greet", { name: "Ada" })).text, "Hello, Countess!");
      assert.equal((await client.callTool("desk_shelf_book", { name: "7" })).text, "7: true");
      assert.equal((await client.readResource("shelf://books/7")).text, "book 7");
      assert.equal((await client.readResource("shelf://about")).text, "two books");
      assert.equal((await client.getPrompt("desk_shelf_review", { name: "Dune" })).messages[0].content.text, "Review Dune.");
      assert.deepEqual((await client.complete("desk_shelf_review", "name", "D")).values, ["Dune"]);
      await assert.rejects(client.callTool("desk_shelf_fail"), { message: "it is locked" });
      await assert.rejects(client.readResource("shelf://books/../7"), { kind: "notFound" });
    });
    assert.deepEqual(outer, ["desk_shelf_greet", "desk_shelf_book", "desk_shelf_fail"]);
    assert.deepEqual(seen.filter(([, subject]) => subject).slice(0, 7), [
      ["tools/call", "shelf_greet"],
      ["tools/call", "shelf_book"],
      ["resources/read", "shelf://books/7"],
      ["resources/read", "shelf://about"],
      ["prompts/get", "shelf_review"],
      ["completion/complete", "shelf_review"],
      ["tools/call", "shelf_fail"],
    ]);
  });
}

for (const above of ["2025-11-25", "2026-07-28"]) {
  test(`handlers of clients of ${above} read resources of upstream servers, several at once`, async () => {
    const app = desk();
    app.tool("many", {}, async (_, ctx) => {
      const found = await Promise.all(["shelf://books/1", "shelf://about", "shelf://books/3"].map((uri) => ctx.readResource(uri)));
      return found.map(({ text }) => text).join(", ");
    });
    app.tool("none", {}, (_, ctx) => ctx.readResource("none://x"));
    await withClient(app, { revision: above }, async (client) => {
      assert.equal((await client.callTool("many")).text, "book 1, two books, book 3");
      await assert.rejects(client.callTool("none"), /none:\/\/x/);
    });
  });
}

test("changes of lists and updates of resources pass, also to the second that is served", async () => {
  const app = desk();
  const first = await Client.connect(app);
  await withClient(app, {}, async (client) => {
    await first.close();
    const changes = await client.subscribe({ tools: true, uris: ["shelf://about"] }).open();
    await client.callTool("shelf_grow");
    assert.deepEqual((await changes.next()).value, { kind: "tools" });
    assert.equal((await client.callTool("shelf_added")).text, "it is here");
    await client.callTool("shelf_touch");
    assert.deepEqual((await changes.next()).value, { kind: "updated", uri: "shelf://about" });
    await changes.return();
  });
});

test("a failure that middleware lets pass stays what it is", async () => {
  const messages = [];
  for (const isWrapped of [false, true]) {
    const app = desk();
    if (isWrapped) app.middleware((_, next) => next());
    await withClient(app, {}, async (client) => {
      const { text, isError } = await client.callTool("shelf_end", {}, { throwOnError: false });
      assert.ok(isError);
      messages.push(text);
    });
  }
  assert.match(messages[0], /^the upstream server "shelf" failed: /);
  assert.equal(messages[1], messages[0]);
});

test("a server that is down takes nobody else down", async () => {
  const app = new Server("desk");
  app.mount("gone", upstream(GONE));
  app.mount("shelf", upstream(SHELF));
  await withClient(app, {}, async (client) => {
    assert.equal((await client.callTool("shelf_greet", { name: "Ada" })).text, "Hello, Ada!");
  });
});

test("several servers of a configuration, which is read once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "upstream-"));
  const path = join(folder, "mcp.json");
  writeFileSync(path, JSON.stringify({ mcpServers: { a: SHELF, b: SHELF } }));
  const targets = [upstream(path), upstream({ a: SHELF, b: SHELF }), upstream({ mcpServers: { a: SHELF, b: SHELF } })];
  rmSync(folder, { recursive: true });
  for (const one of targets) {
    assert.equal(one.servers.length, 2);
    const app = new Server("desk");
    app.mount("all", one);
    await withClient(app, {}, async (client) => {
      assert.equal((await client.callTool("all_a_greet", { name: "Ada" })).text, "Hello, Ada!");
      assert.equal((await client.callTool("all_b_greet", { name: "Eve" })).text, "Hello, Eve!");
    });
  }
});

test("what several servers offer is listed in the order in which they were mounted, whoever answers first", async () => {
  const app = new Server("desk");
  for (const name of ["slow", "fast"]) {
    const args = [...SHELF.args, ...(name === "slow" ? ["1000"] : [])];
    app.mount(name, upstream({ ...SHELF, args }));
  }
  await withClient(app, {}, async (client) => {
    const servers = (await client.listTools()).map((tool) => tool.name.split("_")[0]);
    assert.deepEqual([...new Set(servers)], ["slow", "fast"]);
    assert.equal(servers.lastIndexOf("slow") + 1, servers.indexOf("fast"));
  });
});

test("a prefix that is taken is refused, and its server stays", async () => {
  const app = desk();
  assert.throws(() => app.mount("shelf", upstream(GONE)), { name: "TypeError", message: /^mount\("shelf"\): .*another/ });
  await withClient(app, {}, async (client) => {
    assert.equal((await client.callTool("shelf_greet", { name: "Ada" })).text, "Hello, Ada!");
  });
});

test("over HTTP, listening and mounted", async () => {
  const app = desk();
  const listening = await app.listen("http://127.0.0.1:0/mcp");
  const host = createServer(app.node).listen(0, "127.0.0.1");
  await eventually(() => host.listening);
  for (const url of [listening.url, `http://127.0.0.1:${host.address().port}/mcp`]) {
    await withClient(url, YES, async (client) => {
      assert.equal((await client.callTool("shelf_greet", { name: "Ada" })).text, "Hello, Ada!");
      assert.equal((await client.callTool("shelf_book", { name: "7" })).text, "7: true");
    });
  }
  await listening.close();
  host.close();
  host.closeAllConnections();
  await app.close();
});

test("over stdio, and servers that do not end by themselves are ended with the process", async () => {
  const folder = mkdtempSync(join(tmpdir(), "upstream-"));
  const pid = join(folder, "pid");
  const stays = { command: process.execPath, args: [fileURLToPath(new URL("upstream-stays.mjs", import.meta.url)), pid] };
  const program = `import { Server, upstream } from "gudgeon";
    const app = new Server("desk");
    app.mount("shelf", upstream(${JSON.stringify(SHELF)}));
    app.mount("stays", upstream(${JSON.stringify(stays)}));
    await app.run();`;
  const command = { command: process.execPath, args: ["--input-type=module", "-e", program], cwd: ROOT };
  const process_ = await withClient(command, YES, async (client) => {
    assert.equal((await client.callTool("shelf_greet", { name: "Ada" })).text, "Hello, Ada!");
    assert.equal((await client.callTool("shelf_book", { name: "7" })).text, "7: true");
    return Number(readFileSync(pid, "utf8"));
  });
  await eventually(() => !isRunning(process_));
  rmSync(folder, { recursive: true });
});

function isRunning(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

test("a token comes from a function, and requests go through fetch", async () => {
  const shelf = new Server("shelf", { auth: (token) => ({ subject: token, scopes: new Set(), claims: {} }) });
  shelf.tool("who", {}, (_, ctx) => ctx.principal.subject);
  const listening = await shelf.listen("http://127.0.0.1:0/mcp");
  const app = new Server("desk");
  const fetched = [];
  app.mount("shelf", upstream(listening.url, {
    auth: async () => "ada",
    fetch: (url, init) => {
      fetched.push(new URL(url).pathname);
      return fetch(url, init);
    },
  }));
  await withClient(app, {}, async (client) => {
    assert.equal((await client.callTool("shelf_who")).text, "ada");
  });
  assert.ok(fetched.includes("/mcp"), fetched.join());
  await listening.close();
});

test("the connections are closed with the last that serves, and opened with the next", async () => {
  const app = desk();
  const pids = [];
  for (const name of ["Ada", "Eve"]) {
    await withClient(app, {}, async (client) => {
      assert.equal((await client.callTool("shelf_greet", { name })).text, `Hello, ${name}!`);
      pids.push(Number((await client.callTool("shelf_pid")).text));
    });
    await eventually(() => !isRunning(pids.at(-1)));
  }
  assert.notEqual(pids[0], pids[1]);
});

test("mistakes are named", () => {
  for (const [make, says] of [
    [() => upstream(new Server("x")), /^upstream\(\): "x" is a server of this program: mount it without upstream\(\)/],
    [() => upstream(SHELF, { onLog: console.log }), /leave onLog out/],
    [() => upstream(SHELF, { middleware: [] }), /leave middleware out/],
    [() => upstream(SHELF, { timeoutM: 3 }), /^upstream\(\): .*timeoutMs/],
    [() => upstream(["x"]), /a command must be an object/],
    [() => upstream("x"), /URL/],
    [() => upstream({ a: 3 }), /^upstream\(\): "a": the target must be/],
    [() => upstream({ receive() {}, send() {}, close() {} }), /a transport of your own opens once/],
    [() => new Server("x").mount(upstream(GONE)), /prefix/],
    [() => new Server("x").mount(GONE, "p"), /mounted as upstream\(target\)/],
    [() => new Server("x").mount("a b", upstream(GONE)), /prefix/],
  ]) {
    assert.throws(make, (error) => error instanceof TypeError && says.test(error.message), String(says));
  }
});
