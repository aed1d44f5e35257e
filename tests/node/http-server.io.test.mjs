import assert from "node:assert/strict";
import { mkdtempSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Server } from "gudgeon";

import { withServer } from "./child.mjs";
import { withEnoughTime } from "./enough-time.mjs";
import { call, eventsIn, eventually, modern, readUntil, session } from "./http.mjs";

const LOCAL = "http://127.0.0.1:0/mcp";

/** A server that listens, which is closed in any case. */
async function withListening(app, test, { at = LOCAL, ...options } = {}) {
  const listening = await app.listen(at, options);
  try {
    await test(listening.url, listening);
  } finally {
    await listening.close();
  }
}

function basic(options) {
  const app = new Server("t", options);
  app.tool("add", { input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } } }, ({ a, b }) => a + b);
  return app;
}

test("both eras are served at one URL, handlers sync and async", async () => {
  const app = basic();
  app.tool("later", {}, async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return "late";
  });
  await withListening(app, async (url) => {
    assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9]\d*\/mcp$/);
    assert.equal((await call(url, "add", { a: 1, b: 2 })).content[0].text, "3");
    assert.equal((await call(url, "later")).content[0].text, "late");
    const legacy = await session(url);
    const reply = await (await legacy.request("tools/call", { name: "add", arguments: { a: 3, b: 4 } })).json();
    assert.equal(reply.result.content[0].text, "7");
    assert.equal((await legacy.end()).status, 204);
  });
});

test("many calls at once are each answered with their own", async () => {
  await withListening(basic(), async (url) => {
    const all = Array.from({ length: 200 }, (_, a) => call(url, "add", { a, b: 1 }));
    assert.deepEqual(
      (await Promise.all(all)).map((result) => result.content[0].text),
      all.map((_, a) => String(a + 1)),
    );
  });
});

test("the context has the request's headers and the session", async () => {
  const app = new Server("t");
  app.tool("facts", {}, (_, ctx) => ({ custom: ctx.headers.get("X-Custom"), session: ctx.sessionId ?? null }));
  await withListening(app, async (url) => {
    assert.deepEqual((await call(url, "facts", {}, { headers: { "x-custom": "é" } })).structuredContent, { custom: "é", session: null });
    const legacy = await session(url);
    const reply = await (await legacy.request("tools/call", { name: "facts" })).json();
    assert.deepEqual(JSON.parse(reply.result.content[0].text), { custom: null, session: legacy.id });
  });
});

test("ctx.session lives as long as its session, and each has its own", async () => {
  const app = new Server("t");
  app.tool("count", {}, (_, ctx) => {
    ctx.session.set("n", (ctx.session.get("n") ?? 0) + 1);
    return ctx.session.get("n");
  });
  await withListening(app, async (url) => {
    const sessions = [await session(url), await session(url)];
    for (const expected of ["1", "2"]) {
      for (const one of sessions) {
        const reply = await (await one.request("tools/call", { name: "count" })).json();
        assert.equal(reply.result.content[0].text, expected);
      }
    }
    const refused = await call(url, "count");
    assert.ok(refused.isError);
    assert.match(refused.content[0].text, /^revision 2026-07-28 has no sessions, so there is no ctx\.session \(hint: give the client a handle/);
  });
});

test("progress makes the answer a stream; without a word it is JSON", async () => {
  const app = new Server("t");
  app.tool("steps", {}, async (_, ctx) => {
    for (let step = 1; step <= 3; step++) await ctx.progress(step, { total: 3 });
    return "done";
  });
  await withListening(app, async (url) => {
    const quiet = await modern(url, "tools/call", { name: "steps" });
    assert.match(quiet.headers.get("content-type"), /application\/json/);
    await quiet.text();
    const told = await modern(url, "tools/call", { name: "steps", _meta: { progressToken: "p" } });
    assert.match(told.headers.get("content-type"), /text\/event-stream/);
    const events = eventsIn(await told.text());
    assert.deepEqual(events.slice(0, 3).map((event) => event.params.progress), [1, 2, 3]);
    assert.equal(events[3].result.content[0].text, "done");
  });
});

test("a client that leaves aborts the handler's signal", async () => {
  const app = new Server("t");
  let aborted = 0;
  let began = 0;
  app.tool("wait", {}, (_, ctx) => {
    began++;
    return new Promise((resolve) => ctx.signal.addEventListener("abort", () => (aborted++, resolve("gone"))));
  });
  await withListening(app, async (url) => {
    const leaving = new AbortController();
    const waiting = modern(url, "tools/call", { name: "wait" }, { signal: leaving.signal });
    await eventually(() => began === 1);
    leaving.abort();
    await assert.rejects(waiting);
    assert.ok(await eventually(() => aborted === 1));
  });
});

test("subscribers are notified of changed resources and lists", async () => {
  const app = new Server("t");
  app.resource("t://a", {}, () => "a");
  app.tool("one", {}, () => 1);
  await withListening(app, async (url) => {
    const listen = { notifications: { toolsListChanged: true, resourceSubscriptions: ["t://a"] } };
    const response = await modern(url, "subscriptions/listen", listen);
    const { reader } = await readUntil(response, (text) => text.includes("acknowledged"));
    app.notifyUpdated("t://a");
    app.tool("two", {}, () => 2);
    reader.releaseLock();
    const told = await readUntil(response, (text) => text.includes("list_changed") && text.includes("resources/updated"));
    await told.reader.cancel();
  });
});

test("a handler may end its stream; the client fetches the answer later", async () => {
  const app = new Server("t");
  app.tool("poll", {}, async (_, ctx) => {
    await ctx.closeStream({ retryMs: 20 });
    return "polled";
  });
  await withListening(app, async (url) => {
    const legacy = await session(url);
    const first = await (await legacy.request("tools/call", { name: "poll" })).text();
    assert.match(first, /retry: ?20/);
    const last = /id: ?(\S+)/.exec(first)[1];
    const again = await fetch(url, { headers: { accept: "text/event-stream", "last-event-id": last, ...legacy.headers } });
    const { text, reader } = await readUntil(again, (text) => text.includes("polled"));
    assert.equal(eventsIn(text).at(-1).result.content[0].text, "polled");
    await reader.cancel();
  });
});

test("a tool's timeout ends it, also when it waited for its turn", { timeout: 60_000 }, async () => {
  const app = new Server("t");
  app.tool("slow", { timeoutMs: 60, concurrency: 1 }, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", () => resolve(0))));
  await withListening(app, async (url) => {
    for (const result of await Promise.all([call(url, "slow"), call(url, "slow")])) {
      assert.ok(result.isError);
      assert.match(result.content[0].text, /0\.06 s/);
    }
  });
});

test("TCP and Unix sockets carry one message a line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  for (const at of ["tcp://127.0.0.1:0", `unix:${folder}/socket`]) {
    await withListening(basic(), async (url) => {
      const socket = url.startsWith("tcp:") ? connect(Number(new URL(url).port), "127.0.0.1") : connect(url.slice(5));
      const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
      socket.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: initialize }) + "\n");
      socket.write(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "add", arguments: { a: 1, b: 1 } } }) + "\n");
      let text = "";
      for await (const chunk of socket.setEncoding("utf8")) if ((text += chunk).split("\n").length > 2) break;
      assert.match(text, /"text":"2"/);
    }, { at });
  }
});

test("only this user may connect to a Unix socket, whatever the umask", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  for (const umask of [0, 0o022, 0o777]) {
    const before = process.umask(umask);
    try {
      await withListening(basic(), (url) => assert.equal(statSync(url.slice(5)).mode & 0o777, 0o600), { at: `unix:${folder}/${umask}` });
    } finally {
      process.umask(before);
    }
  }
});

test("an HTTP request or a TLS handshake at a TCP address runs no tool, as a web page can make a browser send one", async () => {
  let runs = 0;
  const app = new Server("t");
  app.tool("delete", {}, () => ((runs += 1), "deleted"));
  const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } };
  const messages = [
    { jsonrpc: "2.0", id: 1, method: "initialize", params: initialize },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "delete", arguments: {} } },
  ];
  const lines = messages.map((message) => `${JSON.stringify(message)}\n`).join("");
  const head = `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: ${lines.length}\r\n\r\n`;
  await withListening(app, async (url) => {
    for (const [sent, expected] of [[head + lines, 0], [`\x16\x03\x01\x02\0\x01${lines}`, 0], [lines, 1]]) {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.write(sent);
      let text = "";
      try {
        for await (const chunk of socket.setEncoding("utf8")) if ((text += chunk).split("\n").length > 2) break;
      } catch (error) {
        assert.equal(error.code, "ECONNRESET"); // it was closed before everything was read
      }
      assert.equal(text.includes("deleted"), expected === 1);
      assert.equal(runs, expected);
    }
  }, { at: "tcp://127.0.0.1:0" });
});

test("the lifespan is entered before it listens and left after it has closed; closing twice is fine", async () => {
  const events = [];
  const app = new Server("t", { lifespan: () => (events.push("enter"), { value: 5, close: () => void events.push("leave") }) });
  app.tool("value", {}, (_, ctx) => ctx.lifespan);
  const listening = await app.listen(LOCAL);
  assert.deepEqual(events, ["enter"]);
  assert.equal((await call(listening.url, "value")).content[0].text, "5");
  await Promise.all([listening.close(), listening.close()]);
  assert.deepEqual(events, ["enter", "leave"]);
  await assert.rejects(fetch(listening.url));
  const failing = new Server("t", { lifespan: () => { throw new Error("no database"); } });
  await assert.rejects(failing.listen(LOCAL), /no database/);
});

test("calls in flight are answered when it closes, and those that outlast the grace are cancelled", () =>
  withEnoughTime(async (shutdownGraceMs) => {
    const app = new Server("t");
    let began = 0;
    let cancelled = 0;
    let isClosing = false;
    app.tool("quick", {}, async () => {
      began++;
      while (!isClosing) await new Promise((resolve) => setTimeout(resolve, 50));
      return "waited";
    });
    app.tool("endless", {}, (_, ctx) => {
      began++;
      return new Promise(() => ctx.signal.addEventListener("abort", () => cancelled++));
    });
    const listening = await app.listen(LOCAL, { shutdownGraceMs });
    const quick = Promise.allSettled(Array.from({ length: 50 }, () => call(listening.url, "quick")));
    const endless = assert.rejects(call(listening.url, "endless"));
    assert.ok(await eventually(() => began === 51));
    const closed = listening.close();
    isClosing = true;
    await closed;
    assert.ok((await quick).every((outcome) => outcome.value?.content[0].text === "waited"));
    await endless;
    assert.equal(cancelled, 1);
  }),
);

test("invalid addresses and options are refused with the fix", async () => {
  const app = new Server("t");
  const refused = (at, options, message) => assert.rejects(app.listen(at, options), message);
  await refused("127.0.0.1:8000", {}, { name: "TypeError", message: /listen\("127\.0\.0\.1:8000"\).*http:\/\/127\.0\.0\.1:8000\/mcp/ });
  await refused(LOCAL, { maxBdy: 1 }, { name: "TypeError", message: /unknown option 'maxBdy'; did you mean 'maxBody'\?$/ });
  await refused(LOCAL, { maxBody: "4 MiB" }, { name: "TypeError", message: /maxBody must be a number of bytes.*"4 MiB"/ });
  await refused(LOCAL, { idleTimeoutMs: -1 }, { name: "TypeError", message: /idleTimeoutMs must be a number of milliseconds/ });
  await refused(LOCAL, { allowedHosts: "a.b" }, { name: "TypeError", message: /allowedHosts must be a list.*"example\.org"/ });
  await refused(LOCAL, { allowedHosts: ["https://a.b"] }, { name: "TypeError", message: /allowedHosts: "https:\/\/a\.b" is more than a host; write "a\.b"/ });
  await refused(LOCAL, { allowedOrigins: ["a.b"] }, { name: "TypeError", message: /allowedOrigins: "a\.b" has no scheme; write "https:\/\/a\.b"/ });
  await refused(LOCAL, { cors: "yes" }, { name: "TypeError", message: /cors must be/ });
  await refused(LOCAL, { health: 1 }, { name: "TypeError", message: /health must be a string/ });
  await refused(LOCAL, { health: "healthz" }, { name: "TypeError", message: /health: "healthz" is not a path as in URLs; write one such as "\/healthz"/ });
  await refused(LOCAL, { ready: "/mcp" }, { name: "TypeError", message: /listen\(.*ready: "\/mcp" is a path of the endpoint; choose another one, such as "\/readyz"/ });
  await refused(LOCAL, { drainDelayMs: -1 }, { name: "TypeError", message: /drainDelayMs must be a number of milliseconds/ });
  await refused(LOCAL, { metrics: "metrics" }, { name: "TypeError", message: /metrics: "metrics" is not a path as in URLs; write one such as "\/metrics"/ });
  await refused(LOCAL, { tls: {} }, { name: "TypeError", message: /tls must be \{ cert, key \}/ });
  await refused("https://127.0.0.1:0/mcp", {}, /tls/);
  await assert.rejects(app.run(LOCAL, { keepAliveMs: NaN }), { name: "TypeError", message: /run\(.*keepAliveMs/ });
  await withListening(app, async (url) => {
    await assert.rejects(app.listen(url), (error) => !(error instanceof TypeError) && error.message.includes(new URL(url).host));
  });
});

test("options reach the server", async () => {
  await withListening(basic({ http: { maxBody: 400 } }), async (url) => {
    const response = await modern(url, "tools/call", { name: "add", arguments: { a: 1, b: 2, c: "x".repeat(1000) } });
    assert.equal(response.status, 413);
    assert.match(await response.text(), /max_?body/i);
    const foreign = await modern(url, "tools/list", {}, { headers: { origin: "https://evil.example" } });
    assert.equal(foreign.status, 403);
    const own = await modern(url, "tools/list", {}, { headers: { origin: "https://mine.example" } });
    assert.equal(own.status, 200);
    assert.equal(own.headers.get("access-control-allow-origin"), "https://mine.example");
  }, { cors: ["https://mine.example"] });
});

test("an address that others reach is warned about, once a process", async () => {
  const source = `
    const app = new Server("t");
    for (let n = 0; n < 2; n++) await (await app.listen("http://0.0.0.0:0/mcp")).close();
    await (await app.listen("http://127.0.0.1:0/mcp")).close();`;
  await withServer(source, async (child) => {
    assert.deepEqual(await child.exited, { code: 0, signal: null });
    assert.equal(child.stderr.match(/all requests are accepted/g)?.length, 1, child.stderr);
  });
});

test("run ends with exit code 0 on SIGTERM and SIGINT, and answers what is in flight", async () => {
  const source = `
    const app = new Server("t", { lifespan: () => ({ value: 0, close: () => console.error("left") }) });
    let began = 0;
    const stopping = new Promise((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => setTimeout(resolve, 100, "waited"));
    });
    app.tool("wait", {}, () => (++began === 50 && console.error("all began"), stopping));
    setInterval(() => {}, 1_000);
    await app.run("http://127.0.0.1:0/mcp", { shutdownGraceMs: 600_000 });
    console.error("ended");`;
  for (const signal of ["SIGTERM", "SIGINT"]) {
    await withServer(source, async (child) => {
      const url = await eventually(() => /^http:.+(?=\n)/m.exec(child.stderr)?.[0]);
      const calls = Array.from({ length: 50 }, () => call(url, "wait"));
      assert.ok(await eventually(() => child.stderr.includes("all began")));
      child.process.kill(signal);
      assert.ok((await Promise.all(calls)).every((result) => result.content[0].text === "waited"));
      assert.deepEqual(await child.exited, { code: 0, signal: null });
      // The watchdog's thread says what is waited for, which may come too late here.
      const stderr = child.stderr.replace(/^gudgeon: waiting up to 600 s for tool "wait"; a second Ctrl-C or SIGTERM ends the process at once\n/m, "");
      assert.equal(stderr, `t serves (Ctrl-C ends it)\n${url}\nall began\nleft\nended\n`);
    });
  }
});

test("a server that runs after another could not is ended by signals as well, and a program without one as usual", async () => {
  const source = `
    import { createServer } from "node:net";
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const app = new Server("t");
    app.tool("spin", {}, () => { console.error("spins"); for (;;); });
    await app.run(\`http://127.0.0.1:\${taken.address().port}/mcp\`).catch(({ message }) => console.error(message));
    if (IS_ALONE) {
      console.error("alone");
      setInterval(() => {}, 1_000);
    } else {
      await app.run("http://127.0.0.1:0/mcp", { shutdownGraceMs: 200 });
    }`;
  await withServer(source.replace("IS_ALONE", "false"), async (child) => {
    const url = await eventually(() => /^http:.+(?=\n)/m.exec(child.stderr)?.[0]);
    call(url, "spin").catch(() => {});
    assert.ok(await eventually(() => child.stderr.includes("spins")));
    child.process.kill("SIGTERM");
    assert.deepEqual(await child.exited, { code: 143, signal: null });
    assert.match(child.stderr, /tool "spin"/);
  });
  await withServer(source.replace("IS_ALONE", "true"), async (child) => {
    assert.ok(await eventually(() => child.stderr.includes("alone")));
    child.process.kill("SIGTERM");
    assert.deepEqual(await child.exited, { code: null, signal: "SIGTERM" });
  });
});

test("a process that listens lives, and ends by itself once nothing does", async () => {
  const source = `
    const app = new Server("t");
    const listening = await app.listen("http://127.0.0.1:0/mcp");
    await new Promise((resolve) => setTimeout(resolve, 20).unref());
    setTimeout(() => { console.error("closes"); listening.close(); }, 200).unref();`;
  await withServer(source, async (child) => {
    assert.deepEqual(await child.exited, { code: 0, signal: null });
    assert.equal(child.stderr, "closes\n");
  });
});
