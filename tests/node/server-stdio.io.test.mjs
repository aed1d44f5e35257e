import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Child, MODERN, withServer } from "./child.mjs";

const text = (reply) => reply.result?.content?.[0]?.text;
const TOOL = `const app = new Server("t"); app.tool("ok", {}, () => "ok");`;

test("nothing that the process or its children print reaches the wire", async () => {
  const source = `
    import { execSync, spawn } from "node:child_process";
    import { writeSync } from "node:fs";
    const app = new Server("t", { lifespan: () => (console.log("in lifespan"), { value: 1 }) });
    app.tool("prints", {}, async () => {
      console.log("logged");
      process.stdout.write("written\\n");
      writeSync(1, "by descriptor\\n");
      execSync("echo from a child", { stdio: "inherit" });
      const grandchild = spawn(process.execPath, ["-e", "console.log('spawned')"], { stdio: ["inherit", "inherit", "inherit"] });
      await new Promise((resolve) => grandchild.on("exit", resolve));
      return "clean";
    });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "prints");
    assert.equal(text(await child.reply(1)), "clean");
    assert.equal((await child.end()).code, 0);
    assert.ok(child.frames.every((frame) => frame.jsonrpc === "2.0"));
    for (const line of ["in lifespan", "logged", "written", "by descriptor", "from a child", "spawned"]) {
      assert.ok(child.stderr.includes(line), `${line} is on stderr`);
    }
  });
});

test("a line that was begun on stdout before is ended first", async () => {
  const lines = (source) => {
    const code = `import { Server } from "gudgeon"; ${source}; await new Server("s").run();`;
    const input = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: MODERN } })}\n`;
    const options = { cwd: new URL("../..", import.meta.url), input, encoding: "utf8" };
    return execFileSync(process.execPath, ["--input-type=module", "-e", code], options).split("\n");
  };
  const isAnswer = (line) => JSON.parse(line).id === 1;
  const [begun, answer, ...rest] = lines('process.stdout.write("loading… ")');
  assert.equal(begun, "loading… ");
  assert.ok(isAnswer(answer));
  assert.deepEqual(rest, [""]);
  const [first] = lines("");
  assert.ok(isAnswer(first), "nothing is written where nothing was");
});

test("a stdout that was opened before is diverted as well, and large replies still come whole", async () => {
  const source = `
    process.stdout; process.stdin;
    const app = new Server("t");
    app.tool("large", {}, () => { console.log("stray"); return "x".repeat(2_000_000); });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "large");
    assert.equal(text(await child.reply(1)).length, 2_000_000);
    assert.match(child.stderr, /stray/);
  });
});

test("a child of the server can't read from the wire", async () => {
  const source = `
    import { execSync } from "node:child_process";
    ${TOOL}
    app.tool("reads", {}, () => execSync("cat", { stdio: ["inherit", "pipe", "pipe"] }).toString());
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "reads");
    child.call(2, "ok");
    assert.equal(text(await child.reply(1)), "");
    assert.equal(text(await child.reply(2)), "ok");
  });
});

test("at the end of the input questions of handlers fail", async () => {
  const source = `
    const app = new Server("t");
    app.tool("sure", {}, async (_, ctx) => String(await ctx.elicit("Sure?", { type: "boolean" })));
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize("2025-11-25", { elicitation: {} });
    child.call(1, "sure");
    await child.frame((frame) => frame.method === "elicitation/create");
    assert.equal((await child.end()).code, 0);
    const reply = await child.reply(1);
    assert.deepEqual([reply.result.isError, text(reply)], [true, "the client disconnected: this question gets no answer"]);
  });
});

test("at the end of the input calls in flight finish, the lifespan closes, and the process ends in spite of timers", async () => {
  const source = `
    import { Worker } from "node:worker_threads";
    setInterval(() => {}, 1000);
    new Worker("setInterval(() => {}, 1000)", { eval: true });
    const app = new Server("t", { lifespan: () => ({ value: 1, close: async () => console.error("closed") }) });
    app.tool("slow", {}, () => new Promise((resolve) => setTimeout(resolve, 300, "finished")));
    await app.run("stdio", { shutdownGraceMs: 600_000 });
    console.error("run has resolved");`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "slow");
    assert.deepEqual(await child.end(), { code: 0, signal: null });
    assert.equal(text(await child.reply(1)), "finished");
    assert.match(child.stderr, /closed\n[^]*run has resolved/);
  });
});

test("without anything that lives on the process ends at once", async () => {
  // The event is not emitted in a process that calls exit. It may be emitted twice, if the first handler causes garbage collection.
  await withServer(`${TOOL} process.once("beforeExit", () => console.error("by itself")); await app.run();`, async (child) => {
    await child.initialize();
    const { code } = await child.end();
    assert.equal(code, 0);
    assert.equal(child.stderr, "by itself\n");
  });
});

test("a handler that never ends is cancelled after the grace period, and the process ends", async () => {
  // Time runs faster for this server, so that a period longer than the default of 3 s is soon over.
  const source = `
    const now = performance.now.bind(performance);
    performance.now = () => 20 * now();
    ${TOOL}
    app.tool("forever", {}, (_, ctx) => {
      const start = performance.now();
      return new Promise(() => ctx.signal.addEventListener("abort", () => console.error("aborted", ctx.signal.reason.name, performance.now() - start)));
    });
    await app.run("stdio", { shutdownGraceMs: 6_000 });`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "forever");
    child.call(2, "ok");
    await child.reply(2);
    assert.equal((await child.end()).code, 0);
    const [, milliseconds] = /aborted AbortError ([\d.]+)/.exec(child.stderr);
    assert.ok(milliseconds >= 6_000, `aborted after ${milliseconds} ms`);
    assert.ok(!child.frames.some((frame) => frame.id === 1));
  });
});

for (const signal of ["SIGTERM", "SIGINT"]) {
  test(`${signal} finishes what is in flight and ends with status 0`, async () => {
    const source = `
      setInterval(() => {}, 1000);
      const app = new Server("t", { lifespan: () => ({ value: 1, close: () => console.error("closed") }) });
      app.tool("slow", {}, () => new Promise((resolve) => setTimeout(resolve, 300, "finished")));
      await app.run("stdio", { shutdownGraceMs: 600_000 });`;
    await withServer(source, async (child) => {
      await child.initialize();
      child.call(1, "slow");
      child.call(2, "missing");
      await child.reply(2);
      child.process.kill(signal);
      assert.equal(text(await child.reply(1)), "finished");
      assert.deepEqual(await child.exited, { code: 0, signal: null });
      assert.match(child.stderr, /closed/);
      assert.doesNotMatch(child.stderr, /    at /);
    });
  });
}

test("a stream is read no further while 4 MiB wait for the event loop", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const counted = join(folder, "counted");
  const source = `
    import { existsSync } from "node:fs";
    const app = new Server("t");
    app.tool("block", {}, () => {
      console.error("blocks");
      const end = Date.now() + 120_000;
      while (Date.now() < end && !existsSync(${JSON.stringify(counted)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      return "ok";
    });
    app.tool("length", { input: { type: "object", properties: { text: { type: "string" } } } }, ({ text }) => text.length);
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "block");
    await child.frame(() => child.stderr.includes("blocks"));
    const text = "x".repeat(1024 * 1024);
    for (let id = 2; id < 32; id++) child.call(id, "length", { text });
    await new Promise((resolve) => setTimeout(resolve, 700));
    // Some more are in the pipe, and on their way to the queue.
    const unread = child.process.stdin.writableLength / text.length;
    assert.ok(unread > 20, `only ${unread} MiB are not read`);
    writeFileSync(counted, "");
    for (let id = 2; id < 32; id++) assert.equal((await child.reply(id)).result.content[0].text, String(text.length));
  });
  rmSync(folder, { recursive: true });
});

test("a second SIGINT ends the process at once with 130", async () => {
  const source = `
    ${TOOL}
    app.tool("forever", {}, () => new Promise(() => {}));
    process.once("SIGINT", () => setTimeout(() => console.error("lives on"), 200));
    await app.run("stdio", { shutdownGraceMs: 60_000 });`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "forever");
    child.call(2, "ok");
    await child.reply(2);
    child.process.kill("SIGINT");
    await child.frame(() => child.stderr.includes("lives on"));
    // Two signals that a busy process has not handled yet are delivered as one.
    const again = setInterval(() => child.process.kill("SIGINT"), 1_000);
    child.process.kill("SIGINT");
    assert.deepEqual(await child.exited, { code: 130, signal: null });
    clearInterval(again);
  });
});

test("a client's cancellation fires the signal, and no reply is sent", async () => {
  const source = `
    ${TOOL}
    app.tool("wait", {}, async (_, ctx) => {
      await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => { console.error("fired"); reject(ctx.signal.reason); }));
    });
    app.tool("late", {}, async (_, ctx) => {
      if (!ctx.signal.aborted) await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      console.error("late sees", ctx.signal.aborted);
      return "late";
    });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "wait");
    child.call(2, "late");
    child.call(3, "wait", {}, MODERN);
    child.call(4, "ok");
    await child.reply(4);
    for (const requestId of [1, 2, 3]) child.send({ method: "notifications/cancelled", params: { requestId } });
    await child.frame(() => child.stderr.match(/fired|late/g)?.length === 3);
    child.call(5, "ok");
    await child.reply(5);
    assert.deepEqual(child.frames.filter((frame) => [1, 2, 3].includes(frame.id)), []);
    assert.equal(child.stderr.match(/fired/g)?.length, 2);
    assert.match(child.stderr, /late sees true/);
  });
});

test("a call that is cancelled before its handler begins does not begin", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-cancelled-"));
  const sent = join(folder, "sent");
  const source = `
    import { existsSync } from "node:fs";
    ${TOOL}
    app.tool("block", {}, () => {
      console.error("blocks");
      while (!existsSync(${JSON.stringify(sent)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    });
    app.tool("begins", { input: { type: "object", properties: { text: { type: "string" } } } }, () => console.error("has begun"));
    await app.run();`;
  try {
    await withServer(source, async (child) => {
      await child.initialize();
      child.call(1, "block");
      await child.frame(() => child.stderr.includes("blocks"));
      child.call(2, "begins");
      child.call(3, "begins", { text: "x".repeat(100_000) });
      child.call(4, "ok");
      for (const requestId of [2, 3]) child.send({ method: "notifications/cancelled", params: { requestId } });
      // Answered while the event loop is blocked, so what came before it was read.
      child.send({ id: 5, method: "ping" });
      await child.reply(5);
      writeFileSync(sent, "");
      assert.equal(text(await child.reply(4)), "ok");
      await child.end();
      assert.doesNotMatch(child.stderr, /has begun/);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a call that runs out of time is answered and its signal fires, also while nothing else happens", async () => {
  const source = `
    const app = new Server("t");
    app.tool("slow", { timeoutMs: 150 }, (_, ctx) => new Promise(() => ctx.signal.addEventListener("abort", () => console.error("fired"))));
    app.tool("queued", { timeoutMs: 150, concurrency: 1 }, (_, ctx) => new Promise(() => void ctx.signal));
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "slow");
    const reply = await child.reply(1);
    assert.equal(reply.result.isError, true);
    assert.match(text(reply), /0\.15 s/);
    await child.frame(() => child.stderr.includes("fired"));
    child.call(2, "queued");
    child.call(3, "queued");
    assert.match(text(await child.reply(3)), /0\.15 s/);
  });
});

test("requests that came before the lifespan was entered wait for it, and a lifespan that fails ends the server", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const sent = join(folder, "sent");
  const source = `
    import { existsSync } from "node:fs";
    const lifespan = async () => {
      while (!existsSync(${JSON.stringify(sent)})) await new Promise((resolve) => setTimeout(resolve, 10));
      return { value: "ready" };
    };
    const app = new Server("t", { lifespan });
    app.tool("life", {}, (_, ctx) => ctx.lifespan);
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.call(1, "life");
    // This needs no handler, and it comes after the call.
    child.send({ id: 2, method: "ping" });
    await child.reply(2);
    assert.ok(!child.frames.some((frame) => frame.id === 1));
    writeFileSync(sent, "");
    assert.equal(text(await child.reply(1)), "ready");
  });
  rmSync(folder, { recursive: true });
  await withServer(`const app = new Server("t", { lifespan: () => { throw new Error("no database"); } }); await app.run();`, async (child) => {
    assert.equal((await child.exited).code, 1);
    assert.match(child.stderr, /no database/);
  });
});

test("two servers on one stdio are refused with the reason", async () => {
  await withServer(`${TOOL} const first = app.run(); await app.run().catch((error) => console.error(String(error))); await first;`, async (child) => {
    await child.initialize();
    await child.frame(() => child.stderr.includes("serves stdio already"));
    child.call(1, "ok");
    assert.equal(text(await child.reply(1)), "ok");
  });
});

test("handlers of a peer that does not read wait, timers tick, and nothing is lost", async () => {
  const source = `
    const app = new Server("t");
    let calls = 0;
    app.tool("large", {}, () => (calls++, "x".repeat(100_000)));
    let ticks = 0;
    setInterval(() => calls > 0 && ++ticks === 20 && console.error("ticked, after " + calls + " calls"), 10);
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.process.stdout.pause();
    for (let id = 0; id < 500; id++) child.call(id, "large");
    await child.frame(() => /ticked, after \d+ calls\n/.test(child.stderr));
    // 4 MiB of answers wait, besides those in the pipe: as many calls as that takes, and not all that were read.
    const [, calls] = /after (\d+) calls/.exec(child.stderr);
    assert.ok(Number(calls) < 200, `${calls} handlers started`);
    child.process.stdout.resume();
    for (let id = 0; id < 500; id++) assert.equal(text(await child.reply(id)).length, 100_000);
  });
});

test("garbage on the wire is answered and nothing is lost", async () => {
  await withServer(`const app = new Server("t", { maxMessage: 100_000 }); app.tool("ok", {}, () => "ok"); await app.run();`, async (child) => {
    await child.initialize();
    child.send("nonsense", "[".repeat(50_000), "x".repeat(200_000), '{"jsonrpc":"2.0","id":null,"method":"ping"}', "", "\r");
    child.call(1, "ok", { a: JSON.parse('{"__proto__":{"x":1}}') });
    child.send({ id: 2, method: "nope" });
    child.call(3, "ok");
    assert.equal((await child.reply(2)).error.code, -32601);
    assert.equal(text(await child.reply(3)), "ok");
    const refusals = child.frames.filter((frame) => frame.id === undefined || frame.id === null);
    assert.deepEqual(refusals.map((frame) => frame.error.code).sort(), [-32600, -32600, -32700, -32700].sort());
  });
});

test("calls that fail are answered although nobody reads stderr, and dropped log messages are counted", async () => {
  const source = `
    const app = new Server("t");
    app.tool("fail", {}, () => { throw new RangeError("x".repeat(2_000)); });
    await app.run();`;
  await withServer(source, async (child) => {
    await child.initialize();
    child.process.stderr.pause();
    const calls = 1_000;
    for (let id = 0; id < calls; id++) child.call(id, "fail");
    for (let id = 0; id < calls; id++) assert.equal((await child.reply(id)).result.isError, true);
    child.process.stderr.resume();
    // The number comes with the next message that is written.
    let id = calls;
    const end = Date.now() + 60_000;
    while (!/\d+ log messages were dropped, because standard error was not read/.test(child.stderr)) {
      assert.ok(Date.now() < end, `${child.stderr.length} characters, after ${id} calls, ending with ${child.stderr.slice(-300)}`);
      child.call(++id, "fail");
      await child.reply(id);
    }
    assert.equal((await child.end()).code, 0);
  });
});
