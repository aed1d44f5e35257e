import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client, ClientGroup, ConnectFailed, McpError, ProtocolError, ResourceNotFound, Server } from "gudgeon";

import { own } from "./fake-server.mjs";

const echo = { type: "object", properties: { text: { type: "string" } } };

function named(name) {
  const app = new Server(name);
  const scheme = name.replace("_", "-");
  app.tool("echo", { input: echo }, ({ text }) => `${name}: ${text}`);
  app.resource(`${scheme}://about`, {}, () => `About ${name}.`);
  app.resource(`${scheme}://items/{id}`, {}, ({ id }) => id);
  app.prompt("greet", {}, () => `Hello from ${name}`);
  return app;
}

// ── targets ─────────────────────────────────────────────────────────────────────────────────────────

test("a string that is not a URL is refused with the fix", async () => {
  await assert.rejects(Client.connect("npx -y thing"), (error) => {
    assert.ok(error instanceof TypeError);
    assert.match(error.message, /"npx -y thing" must be a URL \(http, https, ws, wss, tcp, unix, http\+unix\)/);
    assert.match(error.message, /\{ command: "npx", args: \["-y","thing"\] \}/);
    return true;
  });
  await assert.rejects(Client.connect("ftp://example.org"), TypeError);
  await assert.rejects(Client.connect(["npx", "-y"]), /a command must be an object; write \{ command: "npx", args: \["-y"\] \}/);
});

test("anything else is refused at its place", async () => {
  for (const [target, message] of [
    [undefined, /the target must be a URL, a command .*, not undefined/],
    [3, /the target must be a URL, a command .*, not 3/],
    [{}, /the target must be a URL, a command .*, not an empty object/],
    [{ command: "" }, /command must be a program's name/],
    [{ command: "a", args: ["b", 3] }, /args must be a list of strings, but args\[1\] is a number/],
    [{ command: "a", env: { B: [3] } }, /env\.B must be a string/],
    [{ command: "a", type: "http" }, /the type of a command must be "stdio", not "http"/],
    [{ mcpServers: {} }, /pass it to ClientGroup\.connect\(\)/],
  ]) {
    await assert.rejects(Client.connect(target), (error) => error instanceof TypeError && message.test(error.message));
  }
  const app = named("a");
  await assert.rejects(Client.connect(app, { revision: "2023-01-01" }), (error) => error instanceof TypeError && /Client\.connect\(\): revision must be "auto", one or more of 2024-11-05, .* not "2023-01-01"/.test(error.message));
  await assert.rejects(Client.connect(app, { timeoutMs: -5 }), /timeoutMs must be a number of milliseconds above 0/);
  await assert.rejects(Client.connect(app, { roots: [3] }), /^TypeError: Client\.connect\(\): roots\[0\] must be a file:\/\/ URI .* not 3$/);
  await assert.rejects(Client.connect(app, { roots: ["/a", "http://b"] }), /roots\[1\] must be a file:\/\/ URI .* not "http:\/\/b"/);
});

/** Two ends, each a Transport. */
function wire() {
  const ends = [0, 1].map(() => ({ waiting: [], wake: () => {}, isClosed: false }));
  return ends.map((mine, at) => ({
    async receive() {
      while (mine.waiting.length === 0 && !mine.isClosed) await new Promise((resolve) => (mine.wake = resolve));
      return mine.waiting.shift();
    },
    async send(message) {
      ends[1 - at].waiting.push(message);
      ends[1 - at].wake();
    },
    async close() {
      for (const end of ends) {
        end.isClosed = true;
        end.wake();
      }
    },
  }));
}

test("a wire of one's own carries a client and a server", async () => {
  const [ours, theirs] = wire();
  const served = named("own").serve(theirs);
  const client = await Client.connect(ours);
  const texts = await Promise.all(Array.from({ length: 100 }, (_, at) => client.callTool("echo", { text: `${at}\nü` })));
  assert.deepEqual(texts.map((one) => one.text), texts.map((_, at) => `own: ${at}\nü`));
  await client.close();
  await served;
});

test("a wire that ends or fails is a lost connection", async () => {
  const [ours, theirs] = wire();
  const served = named("own").serve(theirs);
  const client = await Client.connect(ours);
  await theirs.close();
  await served;
  await assert.rejects(client.callTool("echo", { text: "" }), (error) => error.kind === "lost");
  await client.close();
  const broken = { receive: () => Promise.reject(new Error("cable cut")), send: async () => {}, close: async () => {} };
  await assert.rejects(Client.connect(broken), /cable cut/);
});

// ── groups ──────────────────────────────────────────────────────────────────────────────────────────

test("a group has the tools of all its servers under their names", async () => {
  const group = await ClientGroup.connect({ a: named("a"), a_b: named("a_b"), gone: { command: "gudgeon-no-such-program" }, bare: new Server("bare") });
  assert.deepEqual([...group.clients.keys()], ["a", "a_b", "bare"]);
  assert.ok(group.errors.get("gone") instanceof ConnectFailed);
  assert.deepEqual((await group.listTools()).map((tool) => tool.name), ["a_echo", "a_b_echo"]);
  assert.deepEqual((await group.listPrompts()).map((prompt) => prompt.name), ["a_greet", "a_b_greet"]);
  assert.deepEqual((await group.listResources()).map((one) => one.uri), ["a://about", "a-b://about"]);
  assert.equal((await group.listResourceTemplates()).length, 2);
  assert.equal((await group.callTool("a_echo", { text: "x" })).text, "a: x");
  assert.equal((await group.callTool("a_b_echo", { text: "x" })).text, "a_b: x");
  assert.equal((await group.getPrompt("a_b_greet")).messages[0].text, "Hello from a_b");
  assert.equal((await group.readResource("a-b://about")).text, "About a_b.");
  assert.equal((await group.readResource("a-b://items/7")).text, "7");
  assert.equal((await group.readResource("a://about", { server: "a" })).text, "About a.");
  await assert.rejects(group.readResource("c://about"), (error) => error instanceof ResourceNotFound && /not reached: gone/.test(error.message));
  await assert.rejects(group.readResource("a://about", { server: "c" }), /no server 'c'/);
  await assert.rejects(group.callTool("gone_x"), ConnectFailed);
  await assert.rejects(group.callTool("other_x"), (error) => error instanceof McpError && /<server>_<tool>/.test(error.hint));
  await group[Symbol.asyncDispose]();
});

test("names that servers of a group have in common are an error that names both, and others find their server", async () => {
  const a = new Server("a");
  for (const name of ["b_x", "b_y"]) a.tool(name, {}, () => `${name} of a`).prompt(name, {}, () => "");
  const b = new Server("b").tool("x", {}, () => "x of a_b").prompt("x", {}, () => "");
  const group = await ClientGroup.connect({ a, a_b: b });
  const both = (kind) => new RegExp(`^ClientGroup: 'a_b_x' is the ${kind} '.*' of server 'a.*' and the ${kind} '.*' of server 'a.*'$`);
  const isBoth = (kind) => (error) => error instanceof McpError && both(kind).test(error.message) && /give one of the servers another name/.test(error.hint);
  await assert.rejects(group.listTools(), isBoth("tool"));
  await assert.rejects(group.callTool("a_b_x"), isBoth("tool"));
  await assert.rejects(group.listPrompts(), isBoth("prompt"));
  await assert.rejects(group.getPrompt("a_b_x"), isBoth("prompt"));
  assert.equal((await group.callTool("a_b_y")).text, "b_y of a");
  await assert.rejects(group.callTool("a_b_z"), /Unknown tool: z/);
  await group.close();
});

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`callbacks of a group get the name of the server that asks, in ${revision}`, async () => {
    const asking = new Server("x");
    asking.tool("ask", {}, async (_, ctx) => `${await ctx.elicit("Who?", { type: "string" })}, ${(await ctx.sample("?", { maxTokens: 5 })).text}`);
    const options = { revision, onElicit: ({ server }) => server, onSample: ({ server }) => server };
    const group = await ClientGroup.connect({ a: asking, b: asking }, options);
    assert.equal((await group.callTool("a_ask")).text, "a, a");
    assert.equal((await group.callTool("b_ask")).text, "b, b");
    await group.close();
  });
}

test("a group takes a host's configuration", async () => {
  const group = await ClientGroup.connect({ mcpServers: { shelf: own(`app.tool("hi", {}, () => "hi");`) } }, { revision: "2025-11-25" });
  assert.equal((await group.callTool("shelf_hi")).text, "hi");
  assert.equal(group.clients.get("shelf").revision, "2025-11-25");
  await group.close();
});

test("a target that is none fails the whole group, and closes the others", async () => {
  await assert.rejects(ClientGroup.connect({ a: named("a"), b: "npx thing" }), (error) => error instanceof TypeError && /must be a URL/.test(error.message));
});

test("what one server of a group refuses another may have", async () => {
  const refusing = new Server("refuses");
  refusing.resource("shop://{item}", {}, () => {
    throw new ProtocolError(-32602, "not today");
  });
  const having = new Server("has");
  having.resource("shop://{item}", {}, ({ item }) => {
    if (item === "7") return "seven";
    throw new ResourceNotFound(`shop://${item}`);
  });
  const group = await ClientGroup.connect({ refusing, having });
  assert.equal((await group.readResource("shop://7")).text, "seven");
  await assert.rejects(group.readResource("shop://8"), (error) => error instanceof ProtocolError && error.message === "not today");
  await group.close();
});

// ── the tables of cases that Python runs as well ────────────────────────────────────────────────────

for (const { case: title, given, file, servers, error, shown = "" } of JSON.parse(readFileSync(new URL("../client_group_targets.json", import.meta.url), "utf8"))) {
  test(`the targets of a group: ${title}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "mcp.json");
    if (file !== undefined) writeFileSync(path, file);
    const group = ClientGroup.connect(file === undefined ? given : path);
    if (error !== undefined) return assert.rejects(group, (thrown) => thrown instanceof TypeError && thrown.message.includes(error));
    assert.deepEqual([...(await group).errors.keys()], servers);
    for (const { message } of (await group).errors.values()) assert.ok(message.includes(shown), message);
    await (await group).close();
  });
}

test("a file of targets that can't be read fails with the error of the system", async () => {
  await assert.rejects(ClientGroup.connect("no-such-folder/mcp.json"), { code: "ENOENT" });
});

const CASES = JSON.parse(readFileSync(new URL("../client_groups.json", import.meta.url), "utf8"));

/** A server with these components; each answers with the server's name. */
function having(name, { tools = [], resources = [], templates = [], refuses = false }) {
  const app = new Server(name);
  const read = () => {
    if (refuses) throw new ProtocolError(-32000, `${name} refuses`);
    return name;
  };
  for (const tool of tools) app.tool(tool, {}, () => name);
  for (const uri of [...resources, ...templates]) app.resource(uri, {}, read);
  return app;
}

for (const { case: title, servers, names, call = {}, read = {} } of CASES) {
  test(title, async () => {
    const targets = Object.entries(servers).map(([name, components]) => [name, components ? having(name, components) : { command: "gudgeon-no-such-program" }]);
    const group = await ClientGroup.connect(Object.fromEntries(targets));
    const outcomeOf = async (answer) => {
      try {
        return await answer();
      } catch (error) {
        return { error: error.message };
      }
    };
    const check = async (expected, answer) => {
      const outcome = await outcomeOf(answer);
      if (expected.error) assert.ok(outcome.error?.includes(expected.error), JSON.stringify(outcome));
      else assert.deepEqual(outcome, expected);
    };
    if (names) await check(names, async () => (await group.listTools()).map(({ name }) => name));
    for (const [name, server] of Object.entries(call)) await check(server, async () => (await group.callTool(name)).text);
    for (const [uri, server] of Object.entries(read)) await check(server, async () => (await group.readResource(uri)).text);
    await group.close();
  });
}

test("neither errors nor inspected clients show passwords", async () => {
  for (const url of ["ftp://me:s3cret@host/mcp?key=s3cret", "http:/me:s3cret@host", "https://me:s3cret@host", "tcp://h?s3cret"]) {
    await assert.rejects(Client.connect(url), (error) => !inspect(error, { depth: 10 }).includes("s3cret"));
  }
  const app = new Server("t");
  const here = await app.listen("http://127.0.0.1:0/mcp");
  const client = await Client.connect(`${here.url}?key=s3cret`, { headers: { "X-Token": "s3cret" } });
  assert.ok(!inspect(client, { depth: 10, showHidden: true }).includes("s3cret"));
  await client.close();
  await here.close();
  await assert.rejects(client.ping(), (error) => !inspect(error, { depth: 10 }).includes("s3cret"));
});
