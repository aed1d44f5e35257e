import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, ClientGroup, ConnectFailed, ConnectionLost, McpError, ProtocolError, UrlElicitationRequired } from "gudgeon";
import { eras } from "gudgeon/testing";

import { closing } from "./closing.mjs";
import { withEnoughTime } from "./enough-time.mjs";
import { fake, own } from "./fake-server.mjs";
import { eventually } from "./http.mjs";

const ADD = `app.tool("add", { input: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } }, output: { type: "integer" } }, ({ a, b }) => a + b);`;

for (const era of eras) {
  test(`a server of ours in a child process, in ${era}`, async () => {
    const client = await Client.connect(own(ADD), { revision: era });
    assert.equal(client.revision, era);
    const calls = Array.from({ length: 200 }, (_, at) => client.callTool("add", { a: at, b: 1 }));
    assert.deepEqual((await Promise.all(calls)).map((result) => Number(result.data)), calls.map((_, at) => at + 1));
    await client.close();
  });
}

test("the newest revision that both sides speak is found by itself", async () => {
  const newest = await Client.connect(own(ADD));
  assert.equal(newest.revision, "2026-07-28");
  await newest.close();
  const older = await Client.connect(own(ADD, `{ revisions: ["2025-03-26", "2025-06-18"] }`));
  assert.equal(older.revision, "2025-06-18");
  await older.close();
  const chosen = await Client.connect(own(ADD), { revision: ["2024-11-05", "2025-11-25"] });
  assert.equal(chosen.revision, "2025-11-25");
  await chosen.close();
  await assert.rejects(
    Client.connect(own(ADD, `{ revisions: ["2025-03-26"] }`), { revision: "2026-07-28" }),
    (error) => error instanceof McpError && /2026-07-28/.test(error.message),
  );
});

test("what is given with the command reaches the server", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const { command, args } = fake(`
    if (!legacy(message) && message.id) answer(message, text(process.env.SHELF, process.cwd(), process.argv.at(-1)));
  `);
  const client = await Client.connect({ command, args: [...args, "last one"], env: { SHELF: "oak" }, cwd: folder }, { revision: "2025-11-25" });
  const [env, cwd, last] = (await client.callTool("any")).content.map((one) => one.text);
  assert.deepEqual([env, last], ["oak", "last one"]);
  assert.ok(cwd.endsWith(folder.split("/").at(-1)));
  await client.close();
  rmSync(folder, { recursive: true });
});

test("a server inherits few variables", async (t) => {
  process.env.GUDGEON_SECRET = "1";
  process.env.TERM = "dumb";
  t.after(() => delete process.env.GUDGEON_SECRET);
  const server = fake("if (!legacy(message) && message.id) answer(message, text(...Object.keys(process.env)));");
  const connect = (env) => Client.connect({ ...server, env }, { revision: "2025-11-25" });
  const namesIn = async (client) => {
    const names = (await client.callTool("any")).content.map((one) => one.text);
    await client.close();
    return names;
  };
  const byDefault = await namesIn(await connect());
  assert.ok(byDefault.includes("PATH") && byDefault.includes("TERM"));
  assert.deepEqual(byDefault.filter((name) => !["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"].includes(name)), []);
  const withOne = await namesIn(await connect({ SHELF: "oak" }));
  assert.deepEqual(withOne.filter((name) => !byDefault.includes(name)), ["SHELF"]);
  assert.ok((await namesIn(await connect("inherit"))).includes("GUDGEON_SECRET"));
  const group = await ClientGroup.connect({ mcpServers: { a: server } }, { revision: "2025-11-25" });
  assert.ok(!(await namesIn(group.clients.get("a"))).includes("GUDGEON_SECRET"));
  await group.close();
  await assert.rejects(Client.connect({ command: "a", env: "PATH" }), /env must be an object of strings, or "inherit"/);
});

test("a server that refuses the probe is spoken to in its own revision", async () => {
  for (const version of ["2024-11-05", "2025-06-18"]) {
    const client = await Client.connect(fake(`legacy(message, "${version}")`));
    assert.equal(client.revision, version);
    await client.close();
  }
});

test("a server that dies of the probe is started afresh", async () => {
  const client = await Client.connect(fake(`if (message.method === "server/discover") process.exit(3); legacy(message)`));
  assert.equal(client.revision, "2025-11-25");
  await client.close();
});

test("a server that is silent about the probe counts as legacy", async () => {
  const client = await Client.connect(fake(`if (message.method !== "server/discover") legacy(message)`));
  assert.equal(client.revision, "2025-11-25");
  await client.close();
});

test("a server that never answers is given up", () => {
  const target = { command: "sh", args: ["-c", "echo thinking >&2; sleep 600"] };
  return withEnoughTime((timeoutMs) =>
    assert.rejects(
      Client.connect(target, { revision: "2025-11-25", timeoutMs }),
      (error) => error.kind === "timeout" && error.phase === "negotiate" && /thinking/.test(error.message),
    ),
  );
});

test("a command that can't be started fails with the reason", async () => {
  await assert.rejects(Client.connect({ command: "gudgeon-no-such-program" }), (error) => {
    assert.ok(error instanceof ConnectFailed);
    assert.match(error.message, /command not found: gudgeon-no-such-program/);
    assert.match(error.hint, /PATH/);
    assert.deepEqual([error.kind, error.phase, error.target], ["connect", "connect", "gudgeon-no-such-program"]);
    return true;
  });
  await assert.rejects(Client.connect({ command: "node", cwd: "/no/such/folder" }), /\/no\/such\/folder .*does not exist/);
});

test("a server that dies at once leaves its last words", async () => {
  await assert.rejects(Client.connect({ command: "node", args: ["-e", `console.error("no config"); process.exit(7)`] }), (error) => {
    assert.ok(error instanceof ConnectFailed);
    assert.equal(error.exitStatus, 7);
    assert.match(error.stderr, /no config/);
    assert.match(error.message, /no config/);
    return true;
  });
});

test("a server that dies during a call fails every call, and later ones at once", async () => {
  const client = await Client.connect(fake(`
    if (legacy(message) || !message.id) return;
    console.error("out of memory");
    process.exit(9);
  `), { revision: "2025-11-25" });
  const outcomes = await Promise.allSettled([client.callTool("a"), client.callTool("b")]);
  for (const { reason } of outcomes) {
    assert.ok(reason instanceof ConnectionLost);
    assert.equal(reason.exitStatus, 9);
    assert.match(reason.stderr, /out of memory/);
  }
  await assert.rejects(client.callTool("c"), (error) => error instanceof ConnectionLost && /status 9/.test(error.message));
  await client.close();
});

test("a server that may be restarted is: what only reads is asked again, the rest is the caller's to repeat", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const server = fake(`
    if (legacy(message) || !message.id) return;
    const list = (...tools) => answer(message, { tools });
    if (message.method === "logging/setLevel") { level = message.params.level; return answer(message, {}); }
    if (message.method === "tools/list") return list({ name: "safe", inputSchema: {}, annotations: { readOnlyHint: true } }, { name: "unsafe", inputSchema: {} });
    if (message.params.name === "die" || (!fs.existsSync(mark) && message.params.name !== "any")) { fs.writeFileSync(mark, ""); process.exit(4); }
    answer(message, text(level));
  `, `const fs = require("node:fs"); const mark = ${JSON.stringify(join(folder, "died"))}; let level = "none";`);
  const reconnects = [];
  const client = await Client.connect({ ...server, restart: true }, {
    revision: "2025-11-25",
    onReconnect: ({ attempt, reason }) => reconnects.push([attempt, reason.message.includes("status 4")]),
  });
  await client.listTools();
  await client.setLogLevel("error");
  assert.equal((await client.callTool("safe")).text, "error");
  assert.deepEqual(reconnects, [[2, true]]);
  await assert.rejects(client.callTool("die"), ConnectionLost);
  const texts = await Promise.all([client.callTool("unsafe"), client.callTool("any")]);
  assert.deepEqual(texts.map((one) => one.text), ["error", "error"]);
  assert.equal(reconnects.length, 2);
  await client.close();
  await assert.rejects(client.callTool("safe"), ConnectionLost);
  rmSync(folder, { recursive: true });
});

test("an error names the signal that ended a child", async () => {
  const dying = (when) => fake(`if (${when}) process.kill(process.pid, "SIGKILL"); else legacy(message);`);
  await assert.rejects(Client.connect(dying("true")), (error) => {
    assert.ok(error instanceof ConnectFailed, String(error));
    assert.deepEqual([error.signal, error.exitStatus], ["SIGKILL", -9]);
    return true;
  });
  const client = await Client.connect(dying('message.method === "tools/call"'), { revision: "2025-11-25" });
  await assert.rejects(client.callTool("die"), (error) => error instanceof ConnectionLost && error.signal === "SIGKILL");
  await client.close();
  await assert.rejects(Client.connect({ command: process.execPath, args: ["-e", "process.exit(3)"] }), (error) => error.exitStatus === 3 && error.signal === undefined);
});

test("an aborted call is cancelled at the server", async () => {
  const abort = new AbortController();
  const client = await Client.connect(fake(`
    if (legacy(message)) return;
    if (message.method === "notifications/cancelled") cancelled.push(message.params.requestId);
    else if (message.params?.name === "wait") {
      waiting = message.id;
      send({ method: "notifications/message", params: { level: "info", data: "waiting" } });
    }
    else if (message.id) answer(message, text(cancelled.includes(waiting)));
  `, `const cancelled = []; let waiting;`), { revision: "2025-11-25", onLog: () => abort.abort() });
  await assert.rejects(client.callTool("wait", {}, { signal: abort.signal }), (error) => error.kind === "cancelled");
  assert.equal((await client.callTool("witness")).text, "true");
  await client.close();
});

test("progress extends a call's time up to the cap", () => {
  const slow = fake(`
    if (legacy(message) || message.method !== "tools/call") return;
    const { arguments: { answersAfter }, _meta: { progressToken } } = message.params;
    let step = 0;
    setInterval(() => send({ method: "notifications/progress", params: { progressToken, progress: ++step } }), 50);
    if (answersAfter) setTimeout(() => answer(message, text("done")), answersAfter);
  `);
  return withEnoughTime((timeoutMs) => {
    const maxTimeoutMs = 3 * timeoutMs;
    const cap = new RegExp(`${maxTimeoutMs / 1_000} s in all`);
    return closing(Client.connect(slow, { revision: "2025-11-25", maxTimeoutMs, connectTimeoutMs: 60_000 }), async (client) => {
      assert.equal((await client.callTool("slow", { answersAfter: 1.2 * timeoutMs }, { timeoutMs })).text, "done");
      await assert.rejects(client.callTool("never", {}, { timeoutMs }), (error) => error.kind === "timeout" && cap.test(error.message));
    });
  });
});

/** Sends 2,000 log messages, and the result after them if asked for. */
const FLOOD = fake(`
  if (legacy(message) || message.method !== "tools/call") return;
  for (let n = 0; n < 2_000; n++) send({ method: "notifications/message", params: { level: "info", data: n } });
  if (message.params.arguments.answers) answer(message, text("flooded"));
`);

for (const answers of [true, false]) {
  test(`a slow callback does not keep a client from ${answers ? "its result" : "its time limit"} and other tasks`, async () => {
    const seen = [];
    let isSlow = true;
    const onLog = ({ data }) => {
      seen.push(data);
      if (isSlow) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    };
    const client = await Client.connect(FLOOD, { revision: "2025-11-25", connectTimeoutMs: 60_000, onLog });
    const call = client.callTool("flood", { answers }, { timeoutMs: answers ? 60_000 : 1_000 });
    const outcome = call.then((result) => result.text, (error) => error.kind);
    assert.ok(await eventually(() => seen.length > 0));
    assert.ok(seen.length < 1_000, "other tasks run between callbacks");
    assert.equal(await outcome, answers ? "flooded" : "timeout");
    await client.close();
    // The other callbacks run before the process ends.
    isSlow = false;
    assert.deepEqual(seen, Array.from(seen, (_, at) => at), "in their order");
    assert.ok(seen.length < 1_500, `${seen.length} of 2,000 callbacks, 40 s of them, ran first`);
  });
}

test("messages before a result are delivered before it", async () => {
  const seen = [];
  const client = await Client.connect(FLOOD, { revision: "2025-11-25", onLog: ({ data }) => void seen.push(data) });
  await client.callTool("flood", { answers: true });
  assert.equal(seen.length, 2_000);
  await client.close();
});

test("all pages of a list share one time limit", () => {
  const endless = fake(`
    if (legacy(message) || message.method !== "tools/list") return;
    setTimeout(() => answer(message, { tools: [], nextCursor: String(message.id) }), 20);
  `);
  return withEnoughTime((timeoutMs) =>
    closing(Client.connect(endless, { revision: "2025-11-25", timeoutMs, connectTimeoutMs: 60_000 }), (client) =>
      assert.rejects(client.listTools(), (error) => error.kind === "timeout" && /not all pages/.test(error.message)),
    ),
  );
});

test("a form whose check takes long does not stall other clients", async () => {
  const asker = fake(`
    if (legacy(message)) return;
    if (message.method === "tools/call") {
      call = message;
      // Each pattern reads the whole text, and all of them match.
      const allOf = Array.from({ length: 800 }, (_, n) => ({ pattern: "^(a|b|c" + n + ")*[^" + String.fromCharCode(100 + (n % 20)) + "]*b$" }));
      const requestedSchema = { type: "object", properties: { v: { type: "string", allOf, default: "ab".repeat(300_000) } } };
      send({ id: "e", method: "elicitation/create", params: { message: "Which?", requestedSchema } });
    } else if (message.id === "e") answer(call, text(message.result.content.v.length));
  `, "let call;");
  const client = await Client.connect(asker, { revision: "2025-11-25", onElicit: () => ({}) });
  const other = await Client.connect(own(""));
  const start = performance.now();
  let isRunning = true;
  const outcome = client.callTool("ask").finally(() => (isRunning = false));
  let longest = 0;
  while (isRunning) longest = Math.max(longest, await other.ping());
  const all = performance.now() - start;
  assert.equal((await outcome).text, "600000");
  assert.ok(longest * 2 < all, `a ping took ${longest} of ${all} ms`);
  await client.close();
  await other.close();
});

const ASKING_FORM = `{ mode: "form", message: "Sure?", requestedSchema: { type: "object", properties: { value: { type: "boolean" } }, required: ["value"] } }`;
const ASKING_MODEL = `{ messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 }`;
/** Asks all three questions, and returns the answers. */
const LEGACY_ASKER = fake(`
  if (legacy(message)) return;
  if (message.method === "tools/call") {
    call = message;
    send({ id: "e", method: "elicitation/create", params: ${ASKING_FORM} });
    send({ id: "s", method: "sampling/createMessage", params: ${ASKING_MODEL} });
    send({ id: "r", method: "roots/list" });
  } else if (message.result || message.error) {
    heard[message.id] = message.result ?? message.error;
    if (Object.keys(heard).length === 3) answer(call, text(JSON.stringify(heard)));
  }
`, `const heard = {}; let call;`);
const MODERN_ASKER = fake(`
  if (modern(message)) return;
  const { inputResponses, requestState } = message.params;
  if (inputResponses) return answer(message, text(JSON.stringify({ ...inputResponses, requestState })));
  answer(message, { resultType: "input_required", requestState: "sealed", inputRequests: {
    e: { method: "elicitation/create", params: ${ASKING_FORM} },
    s: { method: "sampling/createMessage", params: ${ASKING_MODEL} },
    r: { method: "roots/list" },
  } });
`);

for (const [era, asker] of [["2025-11-25", LEGACY_ASKER], ["2026-07-28", MODERN_ASKER]]) {
  test(`questions go to the callbacks, in ${era}`, async () => {
    const asked = [];
    const client = await Client.connect(asker, {
      revision: era,
      onElicit: (request) => {
        asked.push(request.message, request.mode, Object.keys(request.schema.properties));
        return true;
      },
      onSample: async (request) => `${request.messages[0].text} yourself`,
      roots: async () => ["file:///srv/shelf", "/srv/other"],
    });
    const { e, s, r } = JSON.parse((await client.callTool("ask")).text);
    assert.deepEqual(asked, ["Sure?", "form", ["value"]]);
    assert.deepEqual(e, { action: "accept", content: { value: true } });
    assert.equal(s.content.text, "Hi yourself");
    assert.deepEqual(r.roots.map((root) => root.uri), ["file:///srv/shelf", "file:///srv/other"]);
    await client.close();
  });
}

test("a callback that fails fails the question, not the client, and the server gets no details", async (t) => {
  const log = t.mock.method(console, "error", () => {});
  const client = await Client.connect(LEGACY_ASKER, {
    revision: "2025-11-25",
    onElicit: () => undefined,
    onSample: () => {
      throw new RangeError("no model at 10.0.0.7");
    },
    roots: () => {
      throw new ProtocolError(-1, "The user wants none to be known", { why: "asked" });
    },
  });
  const { e, s, r } = JSON.parse((await client.callTool("ask")).text);
  assert.equal(e.code, -32603);
  assert.match(e.message, /^onElicit returned nothing for "Sure\?"; return the answer itself, an object with value, declined, or cancelled$/);
  assert.deepEqual([s.code, s.message], [-32603, "the client could not answer: RangeError"]);
  assert.deepEqual(r, { code: -1, message: "The user wants none to be known", data: { why: "asked" } });
  const told = log.mock.calls.map(({ arguments: [what, error] }) => `${what} ${error.message}`).sort();
  assert.match(told[0], /^onElicit failed: onElicit returned nothing for "Sure\?"; return the answer itself, an object with value, declined, or cancelled/);
  assert.equal(told[1], "onSample failed: no model at 10.0.0.7");
  await client.close();
});

test("a round by hand gives the questions, and takes answers and state", async () => {
  const options = { revision: "2026-07-28", onElicit: () => true, onSample: () => "", roots: [] };
  const first = await Client.connect(MODERN_ASKER, options);
  const round = await first.callToolRound("ask", {});
  assert.equal(round.state, "sealed");
  assert.deepEqual(Object.entries(round.questions).map(([key, { kind }]) => [key, kind]), [["e", "elicit"], ["s", "sample"], ["r", "roots"]]);
  assert.equal(round.questions.e.message, "Sure?");
  await first.close();
  const second = await Client.connect(MODERN_ASKER, options);
  const answers = { e: { action: "accept", content: { value: false } } };
  const done = await second.callToolRound("ask", {}, { answers, state: round.state });
  assert.deepEqual(JSON.parse(done.text), { ...answers, requestState: "sealed" });
  await second.close();
});

test("a subscription to resources is asked for and taken back", async () => {
  const client = await Client.connect(fake(`
    const caps = { resources: { subscribe: true }, tools: {} };
    if (legacy(message, "2025-11-25", caps)) return;
    if (message.method === "resources/subscribe") {
      answer(message, {});
      for (const uri of ["a://other", message.params.uri, message.params.uri]) send({ method: "notifications/resources/updated", params: { uri } });
    } else if (message.method === "resources/unsubscribe") {
      taken.push(message.params.uri);
      answer(message, {});
    } else if (message.id) answer(message, text(taken));
  `, `const taken = [];`), { revision: "2025-11-25" });
  for await (const change of client.subscribe({ uris: ["a://b"] })) {
    assert.deepEqual(change, { kind: "updated", uri: "a://b" });
    break;
  }
  assert.equal((await client.callTool("taken")).text, "a://b");
  await client.close();
});

test("pages to visit first are an error of their own", async () => {
  const client = await Client.connect(fake(`
    if (legacy(message) || !message.id) return;
    const elicitations = [{ mode: "url", elicitationId: "1", message: "Sign in", url: "https://example.org" }];
    refuse(message, -32042, "Sign in first", { elicitations });
  `), { revision: "2025-11-25" });
  await assert.rejects(client.callTool("a"), (error) => {
    assert.ok(error instanceof UrlElicitationRequired);
    const { id, mode, url } = error.elicitations[0];
    assert.deepEqual([id, mode, url], ["1", "url", "https://example.org"]);
    return true;
  });
  await client.close();
});

test("nonsense from a server does no harm", async () => {
  const client = await Client.connect(fake(`
    if (legacy(message) || !message.id) return;
    process.stdout.write("{ not JSON\\n\\n[]\\n");
    send({ id: 999, result: {} });
    send({ method: "notifications/progress", params: { progressToken: 77, progress: 1 } });
    send({ method: "acme/unknown", params: [1] });
    process.stdout.write('{"jsonrpc":"2.0","id":5000,"result":' + "[".repeat(100000) + "]".repeat(100000) + "}\\n");
    const odd = message.params.name === "odd" ? [5, { type: "text" }] : [];
    answer(message, { content: [{ type: "acme/thing", data: 1 }, ...odd], extra: "\\ud800" });
  `), { revision: "2025-11-25" });
  await assert.rejects(client.callTool("odd"), { kind: "protocol", message: /content\[1\] must be an object/ });
  const { content } = await client.callTool("a");
  assert.deepEqual(content.map((one) => one.type), ["other"]);
  await client.close();
});

test("an answer over the limit is an error, and the client continues", async () => {
  const client = await Client.connect(fake(`
    if (legacy(message) || !message.id) return;
    answer(message, text("x".repeat(message.params.name === "big" ? 100_000 : 3)));
  `), { revision: "2025-11-25", maxMessage: 50_000 });
  await assert.rejects(client.callTool("big"), /longer than 50000 bytes/);
  assert.equal((await client.callTool("small")).text, "xxx");
  await client.close();
});

// ── when a process ends ─────────────────────────────────────────────────────────────────────────────

function script(kind, body) {
  const head = kind === "module" ? `import { Client } from "gudgeon";` : `const { Client } = require("gudgeon");`;
  const source = `${head}\n(async () => {\n${body}\n})();`;
  const cwd = new URL("../..", import.meta.url);
  return spawn(process.execPath, [`--input-type=${kind}`, "-e", source], { cwd, stdio: ["ignore", "pipe", "inherit"] });
}

for (const kind of ["module", "commonjs"]) {
  test(`a script (${kind}) ends by itself once its client is closed`, async () => {
    const child = script(kind, `
      const client = await Client.connect(${JSON.stringify(own(ADD))});
      console.log((await client.callTool("add", { a: 1, b: 2 })).data);
      await client.close();
    `);
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
    const [code] = await once(child, "close");
    clearTimeout(timer);
    assert.deepEqual([code, output.trim()], [0, "3"]);
  });
}

test("a script lives on while its client is connected, and its server ends with it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const gone = join(folder, "gone");
  const server = fake(`legacy(message)`, `process.stdin.on("end", () => require("node:fs").writeFileSync(${JSON.stringify(gone)}, ""));`);
  // The timer does not keep the process alive: if the client does not either, the process ends before these turns.
  const child = script("module", `
    await Client.connect(${JSON.stringify(server)}, { revision: "2025-11-25" });
    let turns = 0;
    setInterval(() => ++turns === 100 && console.log("alive"), 1).unref();
  `);
  const exited = once(child, "exit");
  assert.equal(String(await Promise.race([exited, once(child.stdout, "data")])), "alive\n");
  child.kill();
  await exited;
  assert.ok(await eventually(() => existsSync(gone)));
  rmSync(folder, { recursive: true });
});

test("a script that ends in the middle of calls ends cleanly", async () => {
  const server = fake(`
    if (legacy(message) || message.method !== "tools/call") return;
    if (++calls === 100) send({ method: "notifications/message", params: { level: "info", data: "all are here" } });
  `, "let calls = 0;");
  const child = script("module", `
    const onLog = () => setImmediate(() => process.exit(5));
    const client = await Client.connect(${JSON.stringify(server)}, { revision: "2025-11-25", onLog });
    for (let call = 0; call < 100; call++) client.callTool("never").catch(() => {});
  `);
  assert.deepEqual(await once(child, "exit"), [5, null]);
});

test("a script ends by itself when the server has died, or could not be started", async () => {
  for (const body of [
    `const client = await Client.connect(${JSON.stringify(fake(`if (!legacy(message) && message.id) process.exit(1)`))}, { revision: "2025-11-25" });
     await client.callTool("a").catch(() => {});`,
    `await Client.connect({ command: "gudgeon-no-such-program" }).catch(() => {});`,
  ]) {
    const child = script("module", body);
    const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
    const [code, signal] = await once(child, "exit");
    clearTimeout(timer);
    assert.deepEqual([code, signal], [0, null]);
  }
});
