/** Limits of a mounted server: bodies that do not end, and answers that are not read. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as send } from "node:http";
import { connect as dial } from "node:net";
import { mock, test } from "node:test";

import { Server } from "gudgeon";

import { CALL_HEADERS, META, withMount } from "./mounts.mjs";

const HEADERS = { ...CALL_HEADERS, "mcp-name": "big" };
const BODY = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "big", arguments: {}, _meta: META } });
const SIZE = 16_000_000;

function server() {
  const app = new Server("limits");
  const calls = { count: 0 };
  app.tool("big", {}, () => {
    calls.count++;
    return "x".repeat(SIZE);
  });
  return { app, calls };
}

async function status(url) {
  const answer = await fetch(url, { method: "POST", headers: HEADERS, body: BODY });
  await answer.arrayBuffer();
  return answer.status;
}

/** Waits until a condition holds, also while timers stand still. */
async function until(holds) {
  for (const end = Date.now() + 60_000; !(await holds()); ) {
    assert.ok(Date.now() < end, "it did not happen");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Sends a part of a body and keeps the connection open. */
function unfinished(url, part) {
  const request = send(url, { method: "POST", headers: { ...HEADERS, "content-length": String(part.length + 1) }, agent: false });
  request.on("error", () => {});
  const found = { request, status: undefined };
  request.on("response", (response) => {
    found.status = response.statusCode;
    response.resume();
  });
  found.isSent = new Promise((resolve) => request.write(part, resolve));
  return found;
}

for (const mount of ["node:http", "hono"]) {
  test(`unfinished bodies are counted together: ${mount}`, async () => {
    const { app } = server();
    await withMount(mount, app, async (url) => {
      const part = Buffer.alloc(4_000_000, " ");
      const all = Array.from({ length: 40 }, () => unfinished(url, part));
      await Promise.all(all.map((upload) => upload.isSent));
      // 128 MiB fit in.
      await until(() => all.filter((upload) => upload.status === 503).length >= 40 - 33);
      assert.equal(all.filter((upload) => upload.status !== undefined && upload.status !== 503).length, 0);
      for (const { request } of all) request.destroy();
      const again = unfinished(url, part);
      await again.isSent;
      again.request.end(" ");
      await until(() => again.status !== undefined);
      assert.equal(again.status, 400, "it is read, and no message");
    });
  });

  test(`answers that are not read are counted together: ${mount}`, async () => {
    const { app, calls } = server();
    await withMount(mount, app, async (url) => {
      assert.equal(await status(url), 200);
      const { hostname, port, pathname } = new URL(url);
      const head = Object.entries({ ...HEADERS, host: `${hostname}:${port}`, "content-length": BODY.length });
      const text = `POST ${pathname} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${BODY}`;
      const deaf = [];
      for (let n = 0; n < 40; n++) {
        const socket = dial(Number(port), hostname);
        socket.on("error", () => {});
        socket.write(text);
        deaf.push(socket);
        // One after the other, because calls that run at once are refused only when their answers are there. Nothing is read
        // after the first bytes.
        await new Promise((resolve) => socket.once("data", () => resolve(socket.pause())).once("close", resolve));
      }
      // Calls are refused from 128 MiB on; the operating system holds some as well.
      let read = 1;
      await until(async () => {
        const got = await status(url);
        read += Number(got === 200);
        return got === 503;
      });
      const held = calls.count - read;
      assert.ok(held > 6 && held < 25, `${held} answers of 16 MB are held`);
      for (const socket of deaf) socket.destroy();
      await until(async () => (await status(url)) === 200);
    });
  });
}

test("a body that stops is refused: fetch", async () => {
  const { app } = server();
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    let isRead = false;
    const body = new ReadableStream({
      pull(controller) {
        if (!isRead) controller.enqueue(new TextEncoder().encode(BODY.slice(0, 10)));
        isRead = true;
        return new Promise(() => {});
      },
    });
    const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers: HEADERS, body, duplex: "half" });
    let answer;
    app.fetch(request).then((response) => (answer = response));
    await until(() => isRead);
    for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(answer, undefined);
    mock.timers.tick(60_001);
    await until(() => answer !== undefined);
    assert.equal(answer.status, 408);
    assert.match(await answer.text(), /did not come in time/);
  } finally {
    mock.timers.reset();
    await app.close();
  }
});

test("a body that stops is refused, and its connection closed: node:http", async () => {
  const { app } = server();
  const host = createServer(app.node).listen(0, "127.0.0.1");
  await once(host, "listening");
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { port } = host.address();
    const requested = once(host, "request");
    const late = unfinished(`http://127.0.0.1:${port}/mcp`, Buffer.from(BODY.slice(0, 10)));
    let isClosed = false;
    late.request.on("close", () => (isClosed = true));
    const [incoming] = await requested;
    await until(() => incoming.readableFlowing);
    await until(() => incoming.socket.bytesRead > 10);
    for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(60_001);
    await until(() => late.status !== undefined && isClosed);
    assert.equal(late.status, 408);
  } finally {
    mock.timers.reset();
    await app.close();
    host.closeAllConnections();
    host.close();
  }
});
