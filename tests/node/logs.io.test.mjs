import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { test } from "node:test";

import { Client, Server } from "gudgeon";

import { eventually } from "./http.mjs";

const run = promisify(execFile);

// Answers what a client asks at the start, and sends a malformed notification before each response.
const SERVER = `
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  console.log(JSON.stringify({ jsonrpc: "2.0", method: 3 }));
  const opened = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "odd", version: "1" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: method === "initialize" ? opened : {} }));
});
`;
const TARGET = { command: process.execPath, args: ["-e", SERVER] };
const PROBLEM = "gudgeon.session: dropped a malformed frame of the server";

function recorder() {
  const lines = [];
  const at = (level) => (message, detail) => void lines.push([level, message, detail]);
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

async function stderrOf(program, env = {}) {
  const script = `import { Client, Server } from "gudgeon"; const TARGET = ${JSON.stringify(TARGET)}; ${program}`;
  const { stderr } = await run(process.execPath, ["--input-type=module", "-e", script], { env: { ...process.env, ...env } });
  return stderr;
}

test("an event of the core reaches a client's logger with its level and fields", async () => {
  const logger = recorder();
  const client = await Client.connect(TARGET, { revision: "2025-06-18", logger });
  await client.ping();
  await client.close();
  assert.ok(await eventually(() => logger.lines.length > 0));
  const [level, message, fields] = logger.lines[0];
  assert.deepEqual([level, message], ["warn", PROBLEM]);
  assert.equal(typeof fields.problem, "string");
});

test("an event just before the end of the process is logged, by default to stderr", async () => {
  const connect = `const client = await Client.connect(TARGET, { revision: "2025-06-18" }); await client.ping(); await client.close();`;
  const stderr = await stderrOf(`${connect} process.exit(0);`);
  assert.equal(stderr.split(PROBLEM).length - 1, 2, stderr);
});

test("a server's reports go to its own logger only", async () => {
  const [first, second] = [recorder(), recorder()];
  const app = new Server("shelf", { logger: first });
  app.tool("break", {}, () => { throw new RangeError("no such row"); });
  new Server("other", { logger: second });
  const client = await Client.connect(app);
  await client.callTool("break", {}, { throwOnError: false });
  assert.ok(await eventually(() => first.lines.length > 0));
  assert.equal(first.lines[0][0], "error");
  assert.match(first.lines[0][1], /no such row/);
  assert.match(first.lines[0][1], /throw new ToolError\(text\) to say it, or list the class in exposeErrors\n/);
  await client.close();
  assert.deepEqual(second.lines, []);
});

test("the errors of a client's callbacks go to its logger", async () => {
  const logger = recorder();
  const app = new Server("shelf");
  app.tool("count", {}, async (_, ctx) => { await ctx.progress(1); return 1; });
  const client = await Client.connect(app, { logger, onProgress: () => { throw new Error("no room"); } });
  await client.callTool("count");
  assert.ok(await eventually(() => logger.lines.length > 0));
  await client.close();
  assert.deepEqual([logger.lines[0][0], logger.lines[0][1]], ["error", "onProgress failed:"]);
  assert.match(String(logger.lines[0][2]), /no room/);
});

test("a failing logger stops neither the others nor the process", async () => {
  const stderr = await stderrOf(`
    const fail = () => { throw new Error("disk full"); };
    const logger = { debug: fail, info: fail, warn: fail, error: fail };
    const lines = [];
    const other = { debug() {}, info() {}, warn: (line) => lines.push(line), error() {} };
    new Server("other", { logger: other });
    const client = await Client.connect(TARGET, { revision: "2025-06-18", logger });
    await client.ping();
    await client.close();
    process.on("exit", () => console.error("lines", lines.length));
  `);
  assert.match(stderr, /the logger failed: Error: disk full/);
  assert.match(stderr, /lines 2/);
});

test("a logger without the methods of console is refused", () => {
  const message = /logger must have the methods debug, info, warn and error, as console has/;
  assert.throws(() => new Server("shelf", { logger: { log() {} } }), message);
  assert.throws(() => new Server("shelf", { logger: "console" }), message);
  new Server("shelf", { logger: console });
});

test("the reason of a cancellation is a detail, which is written if NODE_DEBUG names gudgeon", () => {
  const server = `
    import { Server } from "gudgeon";
    const app = new Server("shelf");
    app.tool("wait", {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
    app.run();
  `;
  const opened = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const frames = [
    { id: 1, method: "initialize", params: opened },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/call", params: { name: "wait", arguments: {} } },
    { method: "notifications/cancelled", params: { requestId: 2, reason: "lunch" } },
  ];
  const input = frames.map((frame) => `${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`).join("");
  const stderrWith = (env) =>
    spawnSync(process.execPath, ["--input-type=module", "-e", server], { input, encoding: "utf8", env: { ...process.env, ...env } }).stderr;
  assert.equal(stderrWith({}), "");
  assert.match(stderrWith({ NODE_DEBUG: "gudgeon" }), /GUDGEON \d+: .*lunch/);
});
