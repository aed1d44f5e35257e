/** HTTP/2, spoken by Node's own client: with prior knowledge, and over TLS. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";

import { Server } from "gudgeon";

import { call, eventsIn, eventually, modern, readUntil, session } from "./http.mjs";

const LOCAL = "http://127.0.0.1:0/mcp";

/** `fetch` over one connection of HTTP/2. */
function fetchingOver(connection) {
  return async (url, { method = "GET", headers = {}, body, signal } = {}) => {
    const stream = connection.request({ ":method": method, ":path": new URL(url).pathname, ...headers }, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    signal?.addEventListener("abort", () => stream.close(8)); // CANCEL
    const [answered] = await once(stream, "response");
    const { ":status": status, ...rest } = answered;
    const content = status === 204 || status === 202 ? (stream.resume(), null) : Readable.toWeb(stream);
    return new Response(content, { status, headers: Object.entries(rest).filter(([name]) => !name.startsWith(":")) });
  };
}

/** A server that listens and a connection to it, both of which are closed in any case. */
async function withConnection(app, check, { at = LOCAL, ca, ...options } = {}) {
  const listening = await app.listen(at, options);
  const connection = connect(new URL(listening.url).origin, { ca });
  connection.on("error", () => {});
  try {
    await check(listening.url, fetchingOver(connection), { connection, listening });
  } finally {
    connection.destroy();
    await listening.close();
  }
}

function shelf() {
  const app = new Server("t");
  app.tool("add", { input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } } }, ({ a, b }) => a + b);
  app.tool("steps", {}, async (_, ctx) => {
    for (let step = 1; step <= 3; step++) await ctx.progress(step, { total: 3 });
    return "done";
  });
  return app;
}

async function exercise(url, fetching) {
  assert.equal((await call(url, "add", { a: 1, b: 2 }, { fetching })).content[0].text, "3");
  const told = await modern(url, "tools/call", { name: "steps", _meta: { progressToken: "p" } }, { fetching });
  assert.match(told.headers.get("content-type"), /text\/event-stream/);
  const events = eventsIn(await told.text());
  assert.deepEqual(events.slice(0, 3).map((event) => event.params.progress), [1, 2, 3]);
  const legacy = await session(url, { fetching });
  const reply = await (await legacy.request("tools/call", { name: "add", arguments: { a: 3, b: 4 } })).json();
  assert.equal(reply.result.content[0].text, "7");
  assert.equal((await legacy.end()).status, 204);
}

test("both eras and streams are served with prior knowledge", async () => {
  await withConnection(shelf(), async (url, fetching) => {
    await exercise(url, fetching);
    assert.equal((await call(url, "add", { a: 2, b: 2 })).content[0].text, "4", "HTTP/1.1 at the same address");
  });
});

test("over TLS the client chooses the version", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-http2-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...about, "-out", cert, "-keyout", key], { stdio: "ignore" });
  const ca = readFileSync(cert);
  const options = { at: "https://127.0.0.1:0/mcp", tls: { cert, key }, ca };
  await withConnection(shelf(), async (url, fetching, { connection }) => {
    await exercise(url, fetching);
    assert.equal(connection.alpnProtocol, "h2");
    for (const [offered, chosen] of [[["http/1.1"], "http/1.1"], [["http/1.1", "h2"], "h2"], [[], false]]) {
      const socket = connectTls({ host: "127.0.0.1", port: Number(new URL(url).port), ca, ALPNProtocols: offered });
      await once(socket, "secureConnect");
      assert.equal(socket.alpnProtocol, chosen);
      socket.destroy();
    }
  }, options);
});

test("many calls at once on one connection are each answered with their own", async () => {
  await withConnection(shelf(), async (url, fetching) => {
    const all = Array.from({ length: 300 }, (_, a) => call(url, "add", { a, b: 1 }, { fetching }));
    assert.deepEqual(
      (await Promise.all(all)).map((result) => result.content[0].text),
      all.map((_, a) => String(a + 1)),
    );
  });
});

test("a stream that is reset aborts its handler's signal, and no other", async () => {
  const app = shelf();
  const aborted = [];
  let began = 0;
  app.tool("wait", { input: { type: "object", properties: { which: { type: "string" } } } }, ({ which }, ctx) => {
    began++;
    return new Promise((resolve) => ctx.signal.addEventListener("abort", () => (aborted.push(which), resolve("gone"))));
  });
  await withConnection(app, async (url, fetching, { connection }) => {
    const leaving = new AbortController();
    const waits = (which, signal) => modern(url, "tools/call", { name: "wait", arguments: { which } }, { fetching, signal }).catch(() => {});
    void waits("stays");
    void waits("leaves", leaving.signal);
    assert.ok(await eventually(() => began === 2));
    leaving.abort();
    assert.ok(await eventually(() => aborted.length > 0));
    assert.equal((await call(url, "add", { a: 1, b: 1 }, { fetching })).content[0].text, "2");
    assert.deepEqual(aborted, ["leaves"]);
    connection.destroy();
    assert.ok(await eventually(() => aborted.includes("stays")));
  });
});

test("a question and its answer are two requests of one connection", async () => {
  const app = shelf();
  app.tool("ask", {}, async (_, ctx) => {
    const answer = await ctx.elicit("Name?", { type: "object", properties: { name: { type: "string" } } });
    return JSON.stringify(answer);
  });
  await withConnection(app, async (url, fetching) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const post = (more, message) =>
      fetching(url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
    const params = { protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo: { name: "test", version: "1" } };
    const opened = await post({}, { id: 0, method: "initialize", params });
    await opened.text();
    const own = { "mcp-session-id": opened.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-11-25" };
    await post(own, { method: "notifications/initialized" });
    const asking = await post(own, { id: 1, method: "tools/call", params: { name: "ask" } });
    const { text, reader } = await readUntil(asking, (read) => read.includes("elicitation/create") && read.endsWith("\n\n"));
    const question = eventsIn(text).find((event) => event.method === "elicitation/create");
    reader.releaseLock();
    await post(own, { id: question.id, result: { action: "accept", content: { name: "Ada" } } });
    const answered = await readUntil(asking, (read) => read.includes('"id":1'));
    assert.match(answered.text, /Ada/);
  });
});

test("a stream of changes lasts until it is reset", async () => {
  const app = shelf();
  await withConnection(app, async (url, fetching) => {
    const response = await modern(url, "subscriptions/listen", { notifications: { toolsListChanged: true } }, { fetching });
    const { reader } = await readUntil(response, (text) => text.includes("acknowledged"));
    app.tool("two", {}, () => 2);
    reader.releaseLock();
    const told = await readUntil(response, (text) => text.includes("list_changed"));
    await told.reader.cancel();
    assert.equal((await call(url, "two", {}, { fetching })).content[0].text, "2");
  });
});

test("closing tells the client to go elsewhere, and answers what is under way", async () => {
  const app = shelf();
  let [began, goOn] = [false, () => {}];
  app.tool("slow", {}, () => new Promise((resolve) => ((began = true), (goOn = () => resolve("late")))));
  await withConnection(app, async (url, fetching, { connection, listening }) => {
    const going = once(connection, "goaway");
    const pending = call(url, "slow", {}, { fetching });
    assert.ok(await eventually(() => began));
    const closed = listening.close();
    await going;
    goOn();
    assert.equal((await pending).content[0].text, "late");
    await closed;
  });
});

test("an open request counts as a connection", { skip: process.platform === "win32" && "no limits of files" }, async () => {
  const source = `
    import { Server } from "gudgeon";
    const app = new Server("t");
    app.tool("wait", {}, () => new Promise(() => {}));
    app.tool("one", {}, () => 1);
    const listening = await app.listen("${LOCAL}");
    console.log(listening.url);
    process.stdin.resume().on("end", () => process.exit());`;
  const command = ["-c", 'ulimit -n 200 && exec "$@"', "sh", process.execPath, "--input-type=module", "--eval", source];
  const child = spawn("sh", command, { cwd: new URL("../..", import.meta.url), stdio: ["pipe", "pipe", "inherit"] });
  const [first] = await once(child.stdout.setEncoding("utf8"), "data");
  const url = first.trim();
  const connections = [1, 2].map(() => connect(new URL(url).origin));
  try {
    const statuses = [];
    for (const connection of connections) {
      const fetching = fetchingOver(connection);
      for (let count = 0; count < 100; count++) {
        modern(url, "tools/call", { name: "wait" }, { fetching }).then(({ status }) => statuses.push(status), () => {});
      }
    }
    // Three quarters of 200 files are 150 places, of which the connections have two.
    assert.ok(await eventually(() => statuses.filter((status) => status === 503).length === 52), String(statuses));
    const refused = await modern(url, "tools/call", { name: "one" }, { fetching: fetchingOver(connections[0]) });
    assert.equal(refused.status, 503);
    assert.match(await refused.text(), /too many open requests/);
  } finally {
    for (const connection of connections) connection.destroy();
    child.stdin.end();
    await once(child, "close");
  }
});
