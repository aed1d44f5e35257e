/** The aids of `gudgeon/testing`. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { ask, declined, Server, ToolError } from "gudgeon";
import { connect, eras, Recorder } from "gudgeon/testing";
import * as z from "zod";

import { closing } from "./closing.mjs";
import { eventually } from "./http.mjs";

const asking = ["2025-06-18", "2025-11-25", "2026-07-28"];
const modern = "2026-07-28";

function echo() {
  const app = new Server("t");
  app.tool("echo", { input: { type: "object", properties: { text: { type: "string" } } } }, ({ text }) => `t: ${text}`);
  return app;
}

/** Asks everything; `runs` grows with each run. */
function curious(runs = []) {
  const app = new Server("asks");
  app.tool("everything", {}, async (_, ctx) => {
    runs.push(1);
    const [sure, name] = await ctx.ask(ask.elicit("Sure?", z.boolean()), ask.elicit("Name?", z.string(), { key: "userName" }));
    const again = await ctx.elicit("Really?", z.boolean());
    const said = await ctx.sample("Say it nicely.");
    const roots = await ctx.roots();
    return [sure, name, again, said.text, ...roots.map(({ uri }) => uri)].join();
  });
  return app;
}

const byKey = { "elicit-1": true, userName: "Eve", "elicit-2": { value: false }, "sample-1": "Please.", "roots-1": ["file:///a"] };
const byMessage = { "Sure?": ({ message }) => message === "Sure?", "Name?": "Eve", "Really?": false, "Say it nicely.": "Please.", roots: [{ uri: "file:///a" }] };
const all = "true,Eve,false,Please.,file:///a";

const using = (app, options, use) => closing(connect(app, options), use);

test("connect() speaks the era that is asked for, otherwise the newest that the server speaks", async () => {
  assert.equal(eras.length, 5);
  for (const era of eras) await using(echo(), { revision: era }, (client) => assert.equal(client.revision, era));
  await using(echo(), {}, (client) => assert.equal(client.revision, eras.at(-1)));
  await using(new Server("old", { revisions: ["2025-03-26", "2025-06-18"] }), {}, (client) => assert.equal(client.revision, "2025-06-18"));
  await assert.rejects(connect({}), /connect\(\): the server must be a Server of gudgeon, not {}/);
  await assert.rejects(connect(echo(), { revision: "2020-01-01" }), { name: "TypeError", message: /connect\(\): revision must be "2024-11-05" or .*, not "2020-01-01"/ });
  await assert.rejects(connect(echo(), { era: "2025-11-25" }), { name: "TypeError", message: "connect(): unknown option 'era'; did you mean 'revision'?" });
  for (const [wrong, message] of [
    [{ anwsers: {} }, "connect(): unknown option 'anwsers'; did you mean 'answers'?"],
    [{ middlewares: [] }, "connect(): unknown option 'middlewares'; did you mean 'middleware'?"],
    [{ middleware: 3 }, "connect(): middleware must be an array of functions (request, next), not 3"],
    [{ answers: {}, onElicit: () => true }, "connect(): answers answers every question, so onElicit is never called; give one of them"],
  ]) {
    await assert.rejects(connect(echo(), wrong), { name: "TypeError", message });
  }
  await assert.rejects(connect(echo(), { faults: { drop: 2 } }), /connect\(\): faults: drop must be a share from 0 to 1, not 2/);
});

test("a test takes every option of a client", async () => {
  const seen = [];
  const noting = (request, next) => (seen.push(request.method), next());
  await using(echo(), { middleware: [noting], timeoutMs: 5_000, onElicit: () => true }, (client) => client.listTools());
  assert.deepEqual(seen, ["tools/list"]);
});

test("answers= declares what can be asked", async () => {
  const app = new Server("t");
  app.tool("can", {}, (_, ctx) => Object.keys(ctx.client.capabilities).sort());
  for (const [answers, expected] of [[{}, ["elicitation", "roots", "sampling"]], [undefined, []]]) {
    await using(app, { answers, revision: "2025-11-25" }, async (client) => assert.deepEqual(JSON.parse((await client.callTool("can")).text), expected));
  }
});

for (const era of asking) {
  test(`questions are answered by key or message, in ${era}`, async () => {
    for (const answers of [byKey, byMessage, { ...byKey, "Name?": "Adam" }]) {
      const runs = [];
      await using(curious(runs), { revision: era, answers }, async (client) => assert.equal((await client.callTool("everything")).text, all));
      assert.equal(runs.length, 1);
    }
  });

  test(`the error of a question without an answer names it, and declining is an answer, in ${era}`, async () => {
    await using(curious(), { revision: era, answers: { "Sure?": true } }, (client) =>
      assert.rejects(client.callTool("everything"), /nothing for "Name\?" \(key "userName"\): it answers "Sure\?"/));
    await using(curious(), { revision: era, answers: { ...byKey, "elicit-1": declined } }, (client) =>
      assert.rejects(client.callTool("everything"), (error) => error instanceof ToolError && /declined: Sure\?/.test(error.message)));
  });

  test(`replay runs the handler again for every round, in ${era}`, async () => {
    const runs = [];
    await using(curious(runs), { revision: era, answers: byKey, replay: true }, async (client) => assert.equal((await client.callTool("everything")).text, all));
    // Two questions are one round.
    assert.equal(runs.length, era === modern ? 5 : 1);
  });
}

test("steps are not repeated by a replay", async () => {
  const app = new Server("shop");
  let charged = 0;
  app.tool("buy", {}, async (_, ctx) => {
    const receipt = await ctx.step("charge", () => `paid ${++charged}`);
    return `${receipt} ${await ctx.elicit("Gift?", z.boolean())} ${await ctx.elicit("Card?", z.boolean())}`;
  });
  await using(app, { answers: { "Gift?": true, "Card?": false }, replay: true }, async (client) => assert.equal((await client.callTool("buy")).text, "paid 1 true false"));
  assert.equal(charged, 1);
});

test("a tool that must not be replayed does not ask", async () => {
  const app = new Server("once");
  app.tool("once", { replay: "forbid" }, async (_, ctx) => String(await ctx.elicit("Sure?", z.boolean())));
  const answers = { "Sure?": true };
  await using(app, { answers }, async (client) => assert.equal((await client.callTool("once")).text, "true"));
  await using(app, { answers, replay: true }, (client) => assert.rejects(client.callTool("once"), ToolError));
});

test("a server that restarts between rounds continues", async () => {
  const [runs, lives] = [[], []];
  const app = new Server("asks", {
    lifespan: () => {
      lives.push("begins");
      return { value: undefined, close: () => void lives.push("ends") };
    },
  });
  app.tool("greet", {}, async (_, ctx) => {
    runs.push(1);
    return `${await ctx.elicit("Name?", z.string())} ${await ctx.elicit("Age?", z.number())}`;
  });
  await using(app, { answers: { "Name?": "Eve", "Age?": 3 }, faults: { restartBetweenRounds: true } }, async (client) => {
    assert.equal((await client.callTool("greet")).text, "Eve 3");
    assert.equal((await client.callTool("greet")).text, "Eve 3");
    assert.equal(runs.length, 6);
    // The last one still serves.
    assert.deepEqual(lives, [...Array(4).fill(["begins", "ends"]).flat(), "begins"]);
  });
});

test("calls under way survive a restart, and where there are no rounds nothing restarts", async () => {
  const app = curious();
  let go;
  const going = new Promise((resolve) => (go = resolve));
  app.tool("slow", {}, () => going.then(() => "done"));
  const answers = { ...byKey, userName: () => (go(), "Eve") };
  for (const era of asking) {
    await using(app, { revision: era, answers, faults: { restartBetweenRounds: true } }, async (client) => {
      const slow = client.callTool("slow");
      assert.equal((await client.callTool("everything")).text, all);
      assert.equal((await slow).text, "done");
    });
  }
});

test("a recorder writes the messages", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const path = join(folder, "said.txt");
  await using(echo(), { recorder: new Recorder(path), revision: "2025-06-18" }, async (client) => {
    assert.equal((await client.callTool("echo", { text: "hi" })).text, "t: hi");
  });
  const lines = readFileSync(path, "utf8").trimEnd().split("\n").map((line) => [line[0], JSON.parse(line.slice(2))]);
  assert.deepEqual(lines.map(([mark, { method }]) => [mark, method]), [
    [">", "initialize"], ["<", undefined], [">", "notifications/initialized"], [">", "tools/call"], ["<", undefined],
  ]);
  assert.equal(lines.at(-1)[1].result.content[0].text, "t: hi");
  rmSync(folder, { recursive: true });
});

test("faults are the same for the same seed", async () => {
  class Counting extends Recorder {
    sent = 0;
    record(mark, message) {
      if (mark === ">" && JSON.parse(message).method === "tools/call") this.sent++;
    }
  }
  const lost = async (seed) => {
    const recorder = new Counting(join(tmpdir(), "nothing is written"));
    const client = await connect(echo(), { faults: { seed, drop: 0.3 }, recorder, revision: "2025-11-25" });
    const call = () => client.callTool("echo", { text: "" });
    const calls = [];
    for (let n = 0; n < 20; n++) {
      // Calls that are made at once may be sent in another order.
      const before = recorder.sent;
      calls.push(call());
      assert.ok(await eventually(() => recorder.sent > before));
    }
    const outcomes = Promise.allSettled(calls);
    // Answers come in the order of the calls: after one to a later call, none to these is still on its way.
    let isAnswered = false;
    await eventually(() => isAnswered || void call().then(() => (isAnswered = true), () => {}));
    await client.close();
    return (await outcomes).map(({ status }) => status);
  };
  const [one, same] = await Promise.all([lost(1), lost(1)]);
  assert.deepEqual(one, same);
  assert.ok(one.includes("rejected") && one.includes("fulfilled"));
});

test("messages come twice in both directions, and do the client no harm", async () => {
  for (const era of [modern, "2025-11-25"]) {
    const app = new Server("counts");
    const runs = [];
    app.tool("count", { input: { type: "object", properties: { n: { type: "integer" } } } }, ({ n }) => {
      runs.push(n);
      return String(n);
    });
    await using(app, { revision: era, faults: { duplicate: 1 } }, async (client) => {
      for (let n = 0; n < 10; n++) assert.equal((await client.callTool("count", { n })).text, String(n));
      await client.ping();
    });
    assert.ok(runs.length > 10 && new Set(runs).size === 10, runs.join());
  }
});

for (const era of ["2025-06-18", "2025-11-25", "2026-07-28"]) {
  test(`questions come twice and do no harm, in ${era}`, async () => {
    const app = new Server("shelf");
    app.tool("order", {}, async (_, ctx) => {
      const name = await ctx.elicit("Name?", { type: "string" }, { key: "name" });
      return `${name} ${await ctx.elicit("Sure?", { type: "boolean" })}`;
    });
    const client = await connect(app, { revision: era, answers: { name: "Ada", "Sure?": true }, faults: { duplicate: 1 } });
    for (let times = 0; times < 3; times += 1) assert.equal((await client.callTool("order")).text, "Ada true");
    await client.close();
  });
}

test("errors name the server behind the wire", async () => {
  const client = await connect(new Server("shelf"), { faults: {} });
  await assert.rejects(client.request("acme/nowhere"), (error) => error.target === 'the server "shelf" in memory');
  await client.close();
});

test("invalid options are refused", async () => {
  const principal = { scopes: new Set() };
  for (const options of [{ answers: "yes" }, { recorder: "said.txt" }, { principal }, { headers: { a: 1 } }, { onLog: true }, { replay: 1 }]) {
    await assert.rejects(connect(new Server("shelf"), options), { name: "TypeError", message: new RegExp(`^connect\\(\\): ${Object.keys(options)[0]} must be`) });
  }
  await assert.rejects(connect(new Server("shelf"), { headers: { "a b": "1" } }), { name: "TypeError", message: /^connect\(\): headers: "a b" has no valid HTTP header name/ });
});

for (const revision of eras) {
  test(`calls carry the principal and the headers, and log messages arrive, in ${revision}`, async () => {
    const app = new Server("shelf");
    app.tool("who", {}, async (_, ctx) => {
      await ctx.warning("looked");
      return [ctx.principal?.subject ?? null, ctx.headers.get("X-Trace")];
    });
    app.tool("staff", { visible: (who) => who?.scopes.has("staff") === true }, () => "here");
    const ada = { subject: "ada", scopes: new Set(["staff"]), claims: {} };
    const logged = [];
    const onLog = ({ level, data }) => logged.push([level, data]);
    for (const faults of [undefined, {}]) {
      await using(app, { revision, principal: ada, headers: { "x-trace": "7" }, onLog, faults }, async (client) => {
        assert.deepEqual(JSON.parse((await client.callTool("who")).text), ["ada", "7"]);
        assert.equal((await client.callTool("staff")).text, "here");
      });
    }
    assert.deepEqual(logged, Array(2).fill(["warning", "looked"]));
    await using(app, { revision }, async (client) => {
      assert.deepEqual(JSON.parse((await client.callTool("who")).text), [null, null]);
      assert.deepEqual((await client.listTools()).map(({ name }) => name), ["who"]);
    });
  });
}

test("ctx.principal is the one that the test gave, and a question keeps it", async () => {
  const app = new Server("shelf");
  const ada = { subject: "ada", scopes: new Set(), claims: { team: 3 } };
  app.tool("who", {}, async (_, ctx) => {
    const before = ctx.principal;
    await ctx.elicit("Sure?", z.boolean());
    return before === ada && ctx.principal === ada ? "ada" : "another";
  });
  for (const replay of [false, true]) {
    await using(app, { principal: ada, answers: { "Sure?": true }, replay }, async (client) => assert.equal((await client.callTool("who")).text, "ada"));
  }
});
