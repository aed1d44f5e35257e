/** Handlers that ask in the modern era and are gone when the answers come: they are run again, where they may be. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Client, Server, ask } from "gudgeon";

import { REFUSED, able, accept, boolean, deleting, firstRound, later, string, using } from "./rounds.mjs";

describe("a handler that is gone is run again from its top", () => {
  test("on another server that shares the keys; what was answered and done is not repeated", () => {
    const requestStateKeys = ["secret".repeat(6), new Uint8Array(32).fill(7)];
    const [first, second] = [deleting({ requestStateKeys }), deleting({ requestStateKeys: requestStateKeys.toReversed() })];
    return using([first.app, second.app], async (here, there) => {
      const next = await there.callToolRound("deletes", {}, await firstRound(here));
      assert.deepEqual(Object.keys(next.questions), ["elicit-2"]);
      const last = await here.callToolRound("deletes", {}, { state: next.state, answers: { "elicit-2": accept("so") } });
      assert.equal(last.text, "true so r1 run 2");
      assert.deepEqual([first.seen.runs, second.seen.runs], [2, 1]);
      assert.deepEqual([first.seen.charged, second.seen.charged], [1, 0]);
    });
  });

  test("never on one that does not", () =>
    using([deleting({ requestStateKeys: ["a".repeat(32)] }).app, deleting({ requestStateKeys: ["b".repeat(32)] }).app], async (here, there) => {
      await assert.rejects(there.callToolRound("deletes", {}, await firstRound(here)), REFUSED);
    }));

  test("where it does not fit, that is where it asks again", async () => {
    let message = "Sure?";
    const app = new Server("changes", { suspendedLimit: 0 });
    app.tool("deletes", {}, async (_, ctx) => String(await ctx.elicit(message, boolean)));
    await using([app], async (client) => {
      const round = await firstRound(client);
      message = "Really?";
      const again = await client.callToolRound("deletes", {}, round);
      assert.equal(again.questions["elicit-1"].message, "Really?");
    });
  });

  test("and does again what a state had no room for", () => {
    const options = { requestStateKeys: ["secret".repeat(6)], maxRequestState: 600 };
    const serve = () => {
      const seen = { runs: 0, done: 0 };
      const app = new Server("heavy", options);
      app.tool("heavy", {}, async (_, ctx) => {
        const run = ++seen.runs;
        await ctx.step("load", () => (seen.done++, "x".repeat(2_000)));
        return `${await ctx.elicit("A?", string)} ${await ctx.elicit("B?", string)} ${run}`;
      });
      return { app, seen };
    };
    const [first, second] = [serve(), serve()];
    return using([first.app, second.app], async (here, there) => {
      const round = await here.callToolRound("heavy", {});
      assert(round.state.length <= 600);
      const answers = { "elicit-1": accept("a") };
      const elsewhere = await there.callToolRound("heavy", {}, { state: round.state, answers });
      assert.deepEqual([Object.keys(elsewhere.questions), second.seen.done], [["elicit-2"], 1]);
      const next = await here.callToolRound("heavy", {}, { state: round.state, answers });
      const last = await here.callToolRound("heavy", {}, { state: next.state, answers: { "elicit-2": accept("b") } });
      assert.deepEqual([last.text, first.seen], ["a b 1", { runs: 1, done: 1 }]);
    });
  });

  test("when it returns a question after it has waited for one", async () => {
    const app = new Server("both");
    const seen = { runs: 0, done: 0 };
    app.tool("both", {}, async (_, ctx) => {
      seen.runs++;
      const first = await ctx.elicit("A?", string);
      await ctx.step("load", () => void seen.done++);
      const question = ask.elicit("B?", string);
      const second = ctx.answer(question);
      return second === undefined ? question : `${first} ${second}`;
    });
    const texts = { "A?": "a", "B?": "b" };
    const client = await Client.connect(app, { onElicit: ({ message }) => texts[message] });
    assert.equal((await client.callTool("both")).text, "a b");
    assert.deepEqual(seen, { runs: 2, done: 1 });
    await client.close();
  });

  test("where no handler may wait", () => {
    const { app, seen } = deleting({ suspendedLimit: 0 });
    return using([app], async (client) => {
      const next = await client.callToolRound("deletes", {}, await firstRound(client));
      const last = await client.callToolRound("deletes", {}, { state: next.state, answers: { "elicit-2": accept("so") } });
      assert.equal(last.text, "true so r1 run 3");
      assert.equal(seen.charged, 1);
      assert.deepEqual(seen.ended.map(({ error }) => error.name), ["AbortError", "AbortError"]);
    });
  });
});

describe('replay: "forbid"', () => {
  const requestStateKeys = ["secret".repeat(6)];

  test("continues the handler that waits, once", () => {
    const { app, seen } = deleting({ requestStateKeys }, { replay: "forbid" });
    return using([app], async (client) => {
      const first = await firstRound(client);
      const second = await client.callToolRound("deletes", {}, first);
      const last = { state: second.state, answers: { "elicit-2": accept("so") } };
      assert.equal((await client.callToolRound("deletes", {}, last)).text, "true so r1 run 1");
      for (const round of [first, last]) await assert.rejects(client.callToolRound("deletes", {}, round), REFUSED);
      assert.equal(seen.runs, 1);
    });
  });

  test("is refused elsewhere", () => {
    const [first, second] = [deleting({ requestStateKeys }, { replay: "forbid" }), deleting({ requestStateKeys }, { replay: "forbid" })];
    return using([first.app, second.app], async (here, there) => {
      await assert.rejects(there.callToolRound("deletes", {}, await firstRound(here)), REFUSED);
      assert.equal(second.seen.runs, 0);
    });
  });

  test("asks nothing where it could not wait, and is not made to leave", () => {
    const { app, seen } = deleting({ suspendedLimit: 1 }, { replay: "forbid" });
    return using([app], async (client) => {
      const round = await firstRound(client);
      await assert.rejects(client.callToolRound("deletes", {}), /too many handlers wait for answers, and this tool must not run twice: try again later/);
      assert.deepEqual(Object.keys((await client.callToolRound("deletes", {}, round)).questions), ["elicit-2"]);
      assert.equal(seen.runs, 2);
    });
  });
});

test("a second retry with the same state joins the first while that runs", async () => {
  const app = new Server("joins");
  const [begun, goes] = [later(), later()];
  let runs = 0;
  app.tool("joins", {}, async (_, ctx) => {
    runs++;
    const sure = await ctx.elicit("Sure?", boolean);
    begun.resolve();
    await goes;
    return `${sure} ${runs}`;
  });
  await using([app], async (client) => {
    const round = await firstRound(client, "joins");
    const one = client.callToolRound("joins", {}, round);
    await begun;
    const two = client.callToolRound("joins", {}, round);
    await client.listTools();
    goes.resolve();
    assert.deepEqual([(await one).text, (await two).text], ["true 1", "true 1"]);
  });
});

describe("ctx.step", () => {
  const asking = (options, handler) => {
    const app = new Server("steps", options);
    app.tool("steps", {}, async (_, ctx) => {
      const before = await handler(ctx);
      await ctx.elicit("Sure?", boolean);
      return JSON.stringify(before ?? "nothing");
    });
    return app;
  };
  const twice = async (client) => (await client.callToolRound("steps", {}, await firstRound(client, "steps"))).text;

  for (const [how, options] of [["goes on", {}], ["is run again", { suspendedLimit: 0 }]]) {
    test(`gives what JSON makes of the value, where the handler ${how}`, async () => {
      let done = 0;
      const app = asking(options, async (ctx) => [
        await ctx.step("object", () => ({ at: new Date(0), none: undefined, n: ++done })),
        await ctx.step("null", async () => null),
        typeof (await ctx.step("nothing", () => void done++)),
      ]);
      await using([app], async (client) => {
        assert.equal(await twice(client), '[{"at":"1970-01-01T00:00:00.000Z","n":1},null,"undefined"]');
        assert.equal(done, 2);
      });
    });
  }

  test("numbers what it asks for itself, for it may not be done again", async () => {
    for (const options of [{}, { suspendedLimit: 0 }]) {
      const app = new Server("lends", options);
      let done = 0;
      app.tool("lends", {}, async (_, ctx) => {
        const lend = async () => [await ctx.elicit("Who?", string), await ctx.elicit("Sure?", boolean), ++done];
        const [who, sure, times] = await ctx.step("lend", lend);
        return `${who} ${sure} ${times} ${await ctx.elicit("What?", string)}`;
      });
      await using([app], async (client) => {
        const asked = [];
        let round = await client.callToolRound("lends", {});
        for (const answer of ["Ada", true, "Dune"]) {
          const [key] = Object.keys(round.questions);
          asked.push(key);
          round = await client.callToolRound("lends", {}, { state: round.state, answers: { [key]: accept(answer) } });
        }
        assert.deepEqual([asked, round.text], [["lend/elicit-1", "lend/elicit-2", "elicit-1"], "Ada true 1 Dune"]);
      });
    }
  });

  test("a key has its first value in a run", async () => {
    const app = asking({}, async (ctx) => {
      const both = [ctx.step("a", async () => ({ n: 1 })), ctx.step("a", () => ({ n: 2 }))];
      const [first, second] = await Promise.all(both);
      first.n = 5;
      return [first.n, second.n, (await ctx.step("a", () => ({ n: 3 }))).n];
    });
    await using([app], async (client) => assert.equal(await twice(client), "[5,1,1]"));
  });

  test("a step is not recorded if it failed or its value is not JSON", async () => {
    const app = asking({}, async (ctx) => {
      const bad = await ctx.step("big", () => new Map()).catch((error) => error.message);
      const lost = await ctx.step("big", () => ({ rates: [1, null, 0 / 0] })).catch((error) => error.message);
      const failed = await ctx.step("big", () => { throw new Error("no money"); }).catch((error) => error.message);
      return [bad, lost, failed, await ctx.step("big", () => "paid")];
    });
    await using([app], async (client) => {
      const text = await twice(client);
      assert.deepEqual(JSON.parse(text), ['the result of step "big" is a Map, which JSON can\'t represent; write Object.fromEntries(map)', 'the result of step "big".rates[2] is NaN, which JSON can\'t represent; write null or a string', "no money", "paid"]);
    });
  });

  test("wants a key and a function", async () => {
    const app = asking({}, async (ctx) => [
      await ctx.step("", () => 1).catch((error) => error.message),
      await ctx.step("x", 5).catch((error) => error.message),
    ]);
    await using([app], async (client) => {
      const [key, fn] = JSON.parse(await twice(client));
      assert.match(key, /the key must be a non-empty string, as in ctx\.step\("charge"/);
      assert.match(fn, /ctx\.step\("x", fn\): fn must be a function/);
    });
  });

  test("works where nothing is ever run again", async () => {
    const app = new Server("steps");
    app.tool("steps", {}, async (_, ctx) => (await ctx.step("a", () => [1])).length + (await ctx.step("a", () => [])).length);
    const client = await Client.connect(app, { revision: "2025-11-25" });
    assert.equal((await client.callTool("steps")).text, "2");
    await client.close();
  });
});
