// The behaviour of every mount; the protocol itself is tested against all of them in tests/http.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import express from "express";

import { Server } from "gudgeon";

import { withServer } from "./child.mjs";
import { call, eventsIn, eventually, modern, readUntil, session } from "./http.mjs";
import { MOUNTS, withMount } from "./mounts.mjs";

const NUMBER = { type: "object", properties: { n: { type: "number" } } };

for (const mount of Object.keys(MOUNTS)) {
  test(`${mount}: both eras, with and without a trailing slash where the host routes it`, async () => {
    const app = new Server("t");
    app.tool("twice", { input: NUMBER }, ({ n }) => n * 2);
    app.tool("later", { input: NUMBER }, async ({ n }) => (await new Promise((resolve) => setTimeout(resolve, 5)), n));
    await withMount(mount, app, async (url) => {
      const all = await Promise.all(Array.from({ length: 30 }, (_, n) => [call(url, "twice", { n }), call(url, "later", { n })]).flat());
      assert.deepEqual(all.map((result) => Number(result.content[0].text)), Array.from({ length: 30 }, (_, n) => [n * 2, n]).flat());
      if (!mount.startsWith("fastify")) assert.equal((await call(`${url}/`, "twice", { n: 4 })).content[0].text, "8");
      const legacy = await session(url);
      assert.equal((await (await legacy.request("tools/call", { name: "twice", arguments: { n: 5 } })).json()).result.content[0].text, "10");
      assert.equal((await legacy.end()).status, 204);
      assert.equal((await legacy.request("ping")).status, 404);
    });
  });

  test(`${mount}: streams flow as they are written, and a subscription ends with its result when the server closes`, async () => {
    const app = new Server("t");
    let goOn;
    app.tool("steps", {}, async (_, ctx) => {
      await ctx.progress(1);
      await new Promise((resolve) => (goOn = resolve));
      return "done";
    });
    app.resource("t://a", {}, () => "a");
    await withMount(mount, app, async (url) => {
      const response = await modern(url, "tools/call", { name: "steps", _meta: { progressToken: "p" } });
      const { reader } = await readUntil(response, (text) => text.includes('"progress":1'));
      goOn();
      let rest = "";
      for (let read = await reader.read(); !read.done; read = await reader.read()) rest += new TextDecoder().decode(read.value);
      assert.equal(eventsIn(rest).at(-1).result.content[0].text, "done");
      const listen = await modern(url, "subscriptions/listen", { notifications: { resourceSubscriptions: ["t://a"] } });
      const begun = await readUntil(listen, (text) => text.includes("acknowledged"));
      app.notifyUpdated("t://a");
      assert.match(new TextDecoder().decode((await begun.reader.read()).value), /resources\/updated/);
      const closed = app.close();
      assert.match(new TextDecoder().decode((await begun.reader.read()).value), /"result"/);
      assert.ok((await begun.reader.read()).done);
      await closed;
      assert.equal((await modern(url, "tools/list")).status, 503);
    });
  });

  test(`${mount}: a client that leaves aborts the handler's signal, before the answer and in it`, async () => {
    const app = new Server("t");
    let began = 0;
    let aborted = 0;
    app.tool("wait", {}, async (_, ctx) => {
      await ctx.progress(1);
      began++;
      return new Promise((resolve) => ctx.signal.addEventListener("abort", () => (aborted++, resolve(0))));
    });
    await withMount(mount, app, async (url) => {
      for (const [at, params] of [{}, { _meta: { progressToken: "p" } }].entries()) {
        const leaving = new AbortController();
        const waiting = modern(url, "tools/call", { name: "wait", ...params }, { signal: leaving.signal });
        waiting.then((response) => response.text()).catch(() => {});
        assert.ok(await eventually(() => began === at + 1));
        if (at === 1) await waiting;
        leaving.abort();
        assert.ok(await eventually(() => aborted === at + 1), `left ${at}`);
      }
    });
  });

  test(`${mount}: callers and sizes are checked as on loopback, and the server's option http changes the checks`, async () => {
    const app = new Server("t", { http: { maxBody: 500, allowedHosts: ["mine.example"], cors: ["https://page.example"] } });
    app.tool("echo", { input: { type: "object" } }, () => "ok");
    await withMount(mount, app, async (url) => {
      assert.equal((await modern(url, "tools/list", {}, { headers: { origin: "https://evil.example" } })).status, 403);
      const page = await modern(url, "tools/list", {}, { headers: { origin: "https://page.example" } });
      assert.deepEqual([page.status, page.headers.get("access-control-allow-origin")], [200, "https://page.example"]);
      const foreign = await withHost(url, "evil.example");
      assert.equal(foreign.status, 421);
      assert.match(foreign.body, /allowedHosts.*publicUrl/);
      assert.notEqual((await withHost(url, "mine.example")).status, 421);
      const long = await modern(url, "tools/call", { name: "echo", arguments: { text: "x".repeat(2_000) } });
      assert.equal(long.status, 413);
      assert.match(await long.text(), /max_?body/i);
      const chunked = await modern(url, "tools/call", { name: "echo" }, { body: chunks("x".repeat(2_000)), duplex: "half" }).catch((error) => error);
      assert.ok([413, 400].includes(chunked.status), String(chunked.status ?? chunked));
      assert.equal((await call(url, "echo")).content[0].text, "ok");
    });
  });
}

for (const mount of ["hono", "node:http", "express"]) {
  test(`${mount}: health checks below the path, which do not wait for the lifespan`, async () => {
    let enter;
    const entered = new Promise((resolve) => (enter = resolve));
    const app = new Server("t", { http: { health: "/healthz", ready: "/readyz" }, lifespan: () => entered.then(() => ({ value: 1 })) });
    app.tool("hello", {}, () => "hello");
    await withMount(mount, app, async (url) => {
      const ask = async (path, options) => {
        const response = await fetch(url + path, options);
        return [response.status, await response.text(), response.headers.get("cache-control")];
      };
      assert.deepEqual(await ask("/healthz"), [200, "ok\n", "no-store"]);
      assert.deepEqual(await ask("/readyz"), [503, "the server has not started\n", "no-store"]);
      enter();
      assert.equal((await call(url, "hello")).content[0].text, "hello");
      assert.deepEqual(await ask("/readyz"), [200, "ok\n", "no-store"]);
      assert.deepEqual(await ask("/readyz", { method: "HEAD" }), [200, "", "no-store"]);
      assert.equal((await ask("/readyz", { method: "POST", body: "{}" }))[0], 405);
      await app.close();
      assert.deepEqual(await ask("/readyz"), [503, "the server is shutting down\n", "no-store"]);
      assert.equal((await ask("/healthz"))[0], 200);
    });
  });

  test(`${mount}: the pair of 2024-11-05 at any path that ends in /sse`, async () => {
    const app = new Server("t", { http: { legacySse: true } });
    app.tool("hello", {}, () => "hello");
    await withMount(mount, app, async (url) => {
      const stream = await fetch(`${url}/sse`, { headers: { accept: "text/event-stream" } });
      const { text, reader } = await readUntil(stream, (text) => text.includes("\n\n"));
      const path = /event: ?endpoint\ndata: ?(\S+)/.exec(text)[1];
      assert.ok(path.startsWith(`${new URL(url).pathname}/sse?session_id=`), path);
      const post = (message) =>
        fetch(new URL(path, url), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
      const params = { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "t", version: "1" } };
      assert.equal((await post({ id: 1, method: "initialize", params })).status, 202);
      await post({ method: "notifications/initialized" });
      await post({ id: 2, method: "tools/call", params: { name: "hello" } });
      let all = "";
      while (!all.includes('"id":2')) all += new TextDecoder().decode((await reader.read()).value);
      assert.match(all, /"text":"hello"/);
      await reader.cancel();
    });
  });

  test(`${mount}: a client that does not read is disconnected, and does not delay others`, async () => {
    const app = new Server("t");
    let aborted = false;
    let floods = false;
    const chunk = "x".repeat(64 * 1024);
    app.tool("flood", {}, async (_, ctx) => {
      ctx.signal.addEventListener("abort", () => (aborted = true));
      for (let step = 1; step < 2_000 && !aborted; step++) {
        await ctx.progress(step, { message: chunk });
        floods = true;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return "unread";
    });
    app.tool("hello", {}, () => "hello");
    await withMount(mount, app, async (url) => {
      const { hostname, port, pathname } = new URL(url);
      const lazy = request({ hostname, port, path: pathname, method: "POST", headers: {
        "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call", "mcp-name": "flood",
      } });
      lazy.on("error", () => {});
      lazy.on("response", (response) => response.on("error", () => {}).pause());
      lazy.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "flood", _meta: {
        progressToken: 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" }, "io.modelcontextprotocol/clientCapabilities": {},
      } } }));
      assert.ok(await eventually(() => floods));
      assert.equal((await call(url, "hello")).content[0].text, "hello");
      assert.ok(await eventually(() => aborted));
      lazy.destroy();
    });
  });
}

test("the lifespan is entered at the first request, once, and left at close(), twice is fine", async () => {
  const events = [];
  const app = new Server("t", { lifespan: async () => (events.push("enter"), { value: 7, close: () => void events.push("leave") }) });
  app.tool("value", {}, (_, ctx) => ctx.lifespan);
  await withMount("node:http", app, async (url) => {
    assert.deepEqual(events, []);
    const all = await Promise.all([call(url, "value"), call(url, "value")]);
    assert.deepEqual(all.map((result) => result.content[0].text), ["7", "7"]);
    assert.deepEqual(events, ["enter"]);
    await Promise.all([app.close(), app.close()]);
    assert.deepEqual(events, ["enter", "leave"]);
  });
  assert.deepEqual(events, ["enter", "leave"]);
});

test("a lifespan that fails is answered with 500, and the log has the reason", async () => {
  const source = `
    import { createServer } from "node:http";
    const app = new Server("t", { lifespan: () => { throw new Error("no database"); } });
    const host = createServer(app.node).listen(0, "127.0.0.1", async () => {
      const response = await fetch("http://127.0.0.1:" + host.address().port, { method: "POST" });
      console.error(response.status, await response.text());
      host.close();
    });`;
  await withServer(source, async (child) => {
    assert.deepEqual(await child.exited, { code: 0, signal: null });
    assert.match(child.stderr, /no database/);
    assert.match(child.stderr, /500 .*log says why/);
  });
});

test("a lifespan that fails is entered again for the next request", async () => {
  let tries = 0;
  const lifespan = () => {
    if (++tries === 1) throw new Error("no database yet");
    return { value: tries, close: () => {} };
  };
  const app = new Server("t", { lifespan });
  app.tool("value", {}, (_, ctx) => ctx.lifespan);
  await assert.rejects(app.fetch(new Request("http://localhost/mcp", { method: "PUT" })), /no database yet/);
  assert.equal((await app.fetch(new Request("http://localhost/mcp", { method: "PUT" }))).status, 405);
  await app.close();
  assert.equal(tries, 2);
});

test("a process whose host has closed ends: the mount keeps nothing alive", async () => {
  const source = `
    import { createServer } from "node:http";
    const app = new Server("t");
    app.tool("wait", { timeoutMs: 60_000 }, () => new Promise(() => {}));
    const host = createServer(app.node).listen(0, "127.0.0.1", async () => {
      const url = "http://127.0.0.1:" + host.address().port;
      await (await fetch(url, { method: "PUT" })).text();
      host.close();
      host.closeAllConnections();
    });`;
  await withServer(source, async (child) => assert.deepEqual(await child.exited, { code: 0, signal: null }));
});

test("calls in flight are answered when the host closes", async () => {
  const app = new Server("t");
  let began = 0;
  let goOn;
  const go = new Promise((resolve) => (goOn = resolve));
  app.tool("wait", {}, () => (began++, go.then(() => "waited")));
  await withMount("node:http", app, async (url) => {
    const calls = Array.from({ length: 50 }, () => call(url, "wait"));
    assert.ok(await eventually(() => began === 50));
    setTimeout(goOn, 50);
    await app.close();
    assert.ok((await Promise.all(calls)).every((result) => result.content[0].text === "waited"));
  });
});

test("invalid arguments of the host are refused with the fix", async () => {
  const app = new Server("t");
  const used = new Request("http://localhost/mcp", { method: "POST", body: "{}" });
  await used.text();
  await assert.rejects(app.fetch(used), { name: "TypeError", message: /request\.clone\(\)/ });
  await app.close();
  for (const [http, message] of [
    [{ maxBody: -1 }, /new Server\(\{ http \}\): maxBody/],
    [{ maxBdy: 1 }, /unknown option 'maxBdy'; did you mean 'maxBody'\?/],
    [{ allowedHosts: ["https://a.b"] }, /new Server\(\{ http \}\): allowedHosts: "https:\/\/a\.b" is more than a host; write "a\.b"/],
    [{ allowedOrigins: ["a.b"] }, /allowedOrigins: "a\.b" has no scheme/],
    [{ health: "/up", ready: "/up" }, /new Server\(\{ http \}\): ready: "\/up" is the path of health as well/],
  ]) assert.throws(() => new Server("t", { http }), { name: "TypeError", message });
});

test("fetch answers a request that was never on a wire", async () => {
  const app = new Server("t");
  app.tool("host", {}, (_, ctx) => ctx.headers.get("host"));
  const fetching = (url, init) => app.fetch(new Request(url, init));
  assert.equal((await call("http://localhost:3000/anywhere", "host", {}, { fetching })).content[0].text, "localhost:3000");
  assert.equal((await modern("http://example.org/mcp", "tools/list", {}, { fetching })).status, 421);
  await app.close();
});

test("a host names the principal, and a client can't", async () => {
  const app = new Server("t");
  app.tool("who", { concurrency: 1 }, async (_, ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 2));
    return [ctx.principal?.subject ?? null, ctx.headers.get("gudgeon-request")];
  });
  const as = (subject) => ({
    headers: { "gudgeon-request": "1" },
    fetching: (url, init) => app.fetch(new Request(url, init), subject && { principal: { subject, scopes: new Set(), claims: {} } }),
  });
  const all = await Promise.all(["ann", undefined, "bob"].map((subject) => call("http://localhost/mcp", "who", {}, as(subject))));
  assert.deepEqual(all.map((result) => JSON.parse(result.content[0].text)), [["ann", null], [null, null], ["bob", null]]);
  await app.close();
});

test("who asks is on the request where a host of node:http puts it, for the length of that request", async () => {
  const app = new Server("t");
  app.tool("who", {}, (_, ctx) => ctx.principal?.subject ?? "nobody");
  app.tool("secret", { visible: (principal) => principal?.subject === "ann" }, () => "secret");
  const host = createServer((request, response) => {
    const subject = request.headers["x-test-subject"];
    const principal = subject === "nonsense" ? subject : subject && { subject, scopes: new Set(["read"]), claims: {} };
    app.node(Object.assign(request, { principal }), response);
  });
  const port = await new Promise((resolve) => host.listen(0, "127.0.0.1", () => resolve(host.address().port)));
  const url = `http://127.0.0.1:${port}/mcp`;
  try {
    const as = (subject) => ({ headers: subject && { "x-test-subject": subject } });
    const who = async (subject) => (await call(url, "who", {}, as(subject))).content[0].text;
    assert.deepEqual([await who("ann"), await who(), await who("bob")], ["ann", "nobody", "bob"]);
    const listed = async (subject) => {
      const { result } = await (await modern(url, "tools/list", {}, as(subject))).json();
      return result.tools.map((tool) => tool.name);
    };
    assert.deepEqual([await listed("ann"), await listed()], [["who", "secret"], ["who"]]);
    assert.equal((await modern(url, "tools/list", {}, as("nonsense"))).status, 500, "what is not a principal is nobody's");
  } finally {
    host.closeAllConnections();
    host.close();
    await app.close();
  }
});

/** With a Host header of one's own, which `fetch` does not let one choose. */
function withHost(url, host) {
  const { hostname, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path: pathname, method: "POST", headers: { host, "content-type": "application/json" } }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text) => (body += text)).on("end", () => resolve({ status: response.statusCode, body }));
    })
      .on("error", reject)
      .end("{}");
  });
}

function chunks(text) {
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < text.length; at += 300) controller.enqueue(new TextEncoder().encode(text.slice(at, at + 300)));
      controller.close();
    },
  });
}

test("fetch: the host of a request line in absolute form is checked as the Host header is", async () => {
  const app = new Server("t");
  app.tool("one", {}, () => 1);
  const fetching = (url, init) => app.fetch(new Request(url, init));
  const status = async (url, host) => (await modern(url, "tools/list", {}, { fetching, headers: { host } })).status;
  assert.equal(await status("http://localhost/mcp", "localhost"), 200);
  assert.equal(await status("http://localhost:3000/mcp", "127.0.0.1"), 200);
  assert.equal(await status("http://evil.example/mcp", "localhost"), 421);
  assert.equal(await status("http://localhost/mcp", "evil.example"), 421);
  await app.close();
});

test("a compressed body is refused, unless the host has decoded it", async () => {
  const app = new Server("t");
  app.tool("one", {}, () => 1);
  const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } } });
  const sent = { method: "POST", body: gzipSync(message), headers: { "content-type": "application/json", "content-encoding": "gzip", accept: "application/json, text/event-stream" } };
  const decoding = express().use(express.json()).post("/mcp", (request, response) => app.node(request, response));
  for (const [handler, status] of [[app.node, 415], [decoding, 200]]) {
    const host = createServer(handler).listen(0, "127.0.0.1");
    await once(host, "listening");
    const response = await fetch(`http://127.0.0.1:${host.address().port}/mcp`, sent);
    assert.equal(response.status, status, await response.text());
    if (status === 415) assert.equal(response.headers.get("accept-encoding"), "identity");
    host.close();
  }
  await app.close();
});
