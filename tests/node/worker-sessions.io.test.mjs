/** A cluster and clients before 2026-07-28: whichever worker gets a request, it has the same effect. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

let program, url;

before(async () => {
  program = spawn(process.execPath, [fileURLToPath(new URL("cluster-sessions.mjs", import.meta.url))], { stdio: ["pipe", "pipe", "inherit"] });
  [url] = await once(createInterface(program.stdout), "line");
});

after(async () => {
  program.stdin.end();
  await once(program, "exit");
});

/** A session that opens a connection for each request. */
class Session {
  #headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  #id = 0;

  static async open(revision) {
    const session = new Session();
    const params = { protocolVersion: revision, capabilities: { elicitation: {} }, clientInfo: { name: "c", version: "1" } };
    const response = await session.#send("POST", { jsonrpc: "2.0", id: ++session.#id, method: "initialize", params });
    Object.assign(session.#headers, { "mcp-session-id": response.headers["mcp-session-id"], "mcp-protocol-version": revision });
    response.resume();
    await session.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return session;
  }

  /** Sends a request and answers its questions; returns its result. */
  async request(method, params) {
    const response = await this.#send("POST", { jsonrpc: "2.0", id: ++this.#id, method, params });
    for await (const message of messages(response)) {
      if (message.method === "elicitation/create") {
        const result = { action: "accept", content: { value: message.params.message } };
        await this.#post({ jsonrpc: "2.0", id: message.id, result });
      } else if (message.method === undefined) return message.result;
    }
    assert.fail("the answer ended too early");
  }

  async call(name, args = {}) {
    const { content, isError } = await this.request("tools/call", { name, arguments: args });
    assert.ok(!isError, JSON.stringify(content));
    return content[0].text;
  }

  /** Opens the stream of the session; returns its messages, and a function that closes it. */
  async listen() {
    const response = await this.#send("GET");
    return [messages(response), () => response.destroy()];
  }

  async #post(message) {
    const response = await this.#send("POST", message);
    response.resume();
    assert.equal(response.statusCode, 202);
  }

  #send(method, message) {
    return new Promise((resolve, reject) => {
      request(url, { method, headers: this.#headers, agent: false }, resolve).on("error", reject).end(message && JSON.stringify(message));
    });
  }
}

async function* messages(response) {
  assert.equal(response.statusCode, 200);
  for await (const line of createInterface(response)) {
    const text = line.startsWith("data:") ? line.slice(5) : response.headers["content-type"] === "application/json" ? line : "";
    if (text.trim()) yield JSON.parse(text);
  }
}

for (const revision of ["2025-06-18", "2025-11-25"]) {
  test(`each worker goes on with a session of ${revision}, and an answer finds the one that asked`, async () => {
    const session = await Session.open(revision);
    const workers = new Set();
    for (let calls = 0; workers.size < 4 && calls < 1000; calls++) workers.add(await session.call("pid"));
    assert.equal(workers.size, 4);
    for (let number = 0; number < 20; number++) assert.equal(await session.call("ask", { number }), `say ${number}`);
  });
}

test("an update reaches the stream wherever it is made", async () => {
  const session = await Session.open("2025-11-25");
  await session.request("resources/subscribe", { uri: "works://top" });
  const [heard, close] = await session.listen();
  const workers = new Set();
  for (let calls = 0; workers.size < 4 && calls < 1000; calls++) {
    workers.add(await session.call("change"));
    for (;;) {
      const { value } = await heard.next();
      if (value.method === "notifications/resources/updated") break;
    }
  }
  assert.equal(workers.size, 4);
  close();
});

test("subscriptions outlive all workers", async () => {
  const session = await Session.open("2025-11-25");
  await session.request("resources/subscribe", { uri: "works://top" });
  const killed = new Set();
  for (let calls = 0; killed.size < 4 && calls < 1000; calls++) killed.add(await session.call("pid"));
  assert.equal(killed.size, 4);
  for (const worker of killed) process.kill(Number(worker), "SIGKILL");
  // Until the primary has replaced them, connections are refused or reset.
  const isReplaced = async () => session.call("pid").then((pid) => !killed.has(pid), () => false);
  while (!(await isReplaced())) await new Promise((resolve) => setImmediate(resolve));
  const [heard, close] = await session.listen();
  for (;;) {
    const { value } = await heard.next();
    // It may have changed in the meantime.
    if (value.method === "notifications/resources/updated") break;
  }
  close();
});
