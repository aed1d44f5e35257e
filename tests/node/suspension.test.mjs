/** Handlers that ask in the modern era and wait for the answers. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Cancelled, Client, Declined, ProtocolError, Server, ask, cancelled, declined } from "gudgeon";

import { call, eventually } from "./http.mjs";
import { REFUSED, accept, boolean, deleting, firstRound, later, string, using } from "./rounds.mjs";

describe("a handler waits", () => {
  test("and continues from that line, round by round", () => {
    const { app, seen } = deleting();
    return using([app], async (client) => {
      const second = await client.callToolRound("deletes", {}, await firstRound(client));
      assert.deepEqual(Object.keys(second.questions), ["elicit-2"]);
      assert.equal(second.questions["elicit-2"].message, "Why?");
      const last = await client.callToolRound("deletes", {}, { state: second.state, answers: { "elicit-2": accept("so") } });
      assert.equal(last.text, "true so r1 run 1");
      assert.equal(seen.runs, 1);
    });
  });

  test("in a mount: facts and principal are those of the request it runs for", () => {
    const app = new Server("mounted", { http: {} });
    const waiting = later();
    app.tool("who", {}, async (_, ctx) => {
      const facts = () => [ctx.principal?.subject, ctx.principal?.claims.turn, ctx.headers.get("x-turn")].join(" ");
      const before = facts();
      const answer = ctx.elicit("Go on?", boolean);
      await waiting;
      const meanwhile = facts();
      await answer;
      return [before, meanwhile, facts()].join(", ");
    });
    const round = (turn, rest) => {
      const principal = { subject: "ada", scopes: new Set(), claims: { turn } };
      const fetching = (url, init) => app.fetch(new Request(url, { ...init, body: withParams(init.body, rest) }), { principal });
      return call("http://localhost/mcp", "who", {}, { headers: { "x-turn": String(turn) }, fetching });
    };
    return closing(app, async () => {
      const { requestState } = await round(1);
      waiting.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      const { content } = await round(2, { requestState, inputResponses: { "elicit-1": accept(true) } });
      assert.equal(content[0].text, "ada 1 1, ada 1 1, ada 2 2");
    });
  });

  for (const [where, options, runs] of [["where it waits", {}, 1], ["where it runs again", { suspendedLimit: 0 }, 2]]) {
    test(`only for the principal that began it, ${where}`, () => {
      const { app, seen } = deleting(options);
      const round = (subject, rest) => {
        const principal = subject && { subject, scopes: new Set(), claims: {} };
        const fetching = (url, init) => app.fetch(new Request(url, { ...init, body: withParams(init.body, rest) }), { principal });
        return call("http://localhost/mcp", "deletes", {}, { fetching });
      };
      return closing(app, async () => {
        const { requestState } = await round("ada");
        const rest = { requestState, inputResponses: { "elicit-1": accept(true) } };
        for (const other of ["bob", undefined]) await assert.rejects(round(other, rest), /-32602.*Invalid or expired requestState/);
        assert.deepEqual(Object.keys((await round("ada", rest)).inputRequests), ["elicit-2"]);
        assert.equal(seen.runs, runs);
      });
    });
  }

  test("of prompts and resources as well", async () => {
    const app = new Server("asks");
    let runs = 0;
    app.prompt("greet", {}, async (_, ctx) => `Greet ${await ctx.elicit("Whom?", string)}, ${++runs}.`);
    app.resource("asks://{place}", {}, async ({ place }, ctx) => `${place}: ${await ctx.elicit("Whom?", string)}, ${++runs}`);
    const client = await Client.connect(app, { onElicit: () => "Ada" });
    assert.equal((await client.getPrompt("greet")).messages[0].text, "Greet Ada, 1.");
    assert.equal((await client.readResource("asks://here")).text, "here: Ada, 2");
    await client.close();
  });

  test("not counting against the tool's concurrency", async () => {
    const app = new Server("waits");
    app.tool("waits", { concurrency: 1 }, async (_, ctx) => String(await ctx.elicit("Sure?", boolean)));
    await using([app], async (client) => {
      const [one, two] = [await firstRound(client, "waits"), await firstRound(client, "waits")];
      for (const round of [one, two]) assert.equal((await client.callToolRound("waits", {}, round)).text, "true");
    });
  });
});

describe("what is asked before the loop's turn ends goes out together", () => {
  const app = new Server("asks");
  app.tool("both", {}, async (_, ctx) => {
    const second = async () => {
      await null;
      return ctx.elicit("B?", string);
    };
    const answers = await Promise.all([ctx.elicit("A?", string), second(), ctx.roots({ key: "places" })]);
    return answers.map((answer) => JSON.stringify(answer)).join(" ");
  });
  app.tool("ask", {}, async (_, ctx) => {
    const [name, said] = await ctx.ask(ask.elicit("Name?", string, { key: "name" }), ask.sample("Say hi."));
    return `${name} ${said.text}`;
  });
  app.tool("late", {}, async (_, ctx) => {
    const first = ctx.elicit("A?", string);
    await new Promise((resolve) => setTimeout(resolve, 30));
    return `${await ctx.elicit("B?", string)} ${await first}`;
  });
  app.tool("hasty", {}, async (_, ctx) => {
    const [first, second] = [ctx.elicit("A?", string), ctx.elicit("B?", string)];
    return `${await first} ${await second}`;
  });

  test("with Promise.all", () =>
    using([app], async (client) => {
      const round = await client.callToolRound("both", {});
      assert.deepEqual(Object.keys(round.questions).sort(), ["elicit-1", "elicit-2", "places"]);
      const answers = { "elicit-1": accept("a"), "elicit-2": accept("b"), places: { roots: [] } };
      assert.equal((await client.callToolRound("both", {}, { state: round.state, answers })).text, '"a" "b" []');
    }));

  test("with ctx.ask; what is missing is asked again", () =>
    using([app], async (client) => {
      const round = await client.callToolRound("ask", {});
      assert.deepEqual(Object.keys(round.questions).sort(), ["name", "sample-1"]);
      const rest = await client.callToolRound("ask", {}, { state: round.state, answers: { name: accept("Ada") } });
      assert.deepEqual(Object.keys(rest.questions), ["sample-1"]);
      const said = { role: "assistant", content: { type: "text", text: "hi" }, model: "m" };
      assert.equal((await client.callToolRound("ask", {}, { state: rest.state, answers: { "sample-1": said } })).text, "Ada hi");
    }));

  test("what is asked later waits for the next round", () =>
    using([app], async (client) => {
      const round = await client.callToolRound("late", {});
      assert.deepEqual(Object.keys(round.questions), ["elicit-1"]);
      const next = await client.callToolRound("late", {}, { state: round.state, answers: { "elicit-1": accept("a") } });
      assert.deepEqual(Object.keys(next.questions), ["elicit-2"]);
      assert.equal((await client.callToolRound("late", {}, { state: next.state, answers: { "elicit-2": accept("b") } })).text, "b a");
    }));

  test("a second declined question that is not awaited does not end the process", () =>
    using([app], async (client) => {
      const { state } = await client.callToolRound("hasty", {});
      const answers = { "elicit-1": { action: "decline" }, "elicit-2": { action: "decline" } };
      await assert.rejects(client.callToolRound("hasty", {}, { state, answers }), /The user declined: A\?/);
    }));
});

test("every outcome of tryElicit", async () => {
  const app = new Server("tries");
  app.tool("tries", {}, async (_, ctx) => JSON.stringify(await ctx.tryElicit("Sure?", boolean)));
  app.tool("insists", {}, async (_, ctx) => {
    const error = await ctx.elicit("Sure?", boolean).catch((thrown) => thrown);
    return [error instanceof Declined, error instanceof Cancelled, ctx.signal.aborted].join(" ");
  });
  for (const [given, outcome, thrown] of [
    [true, '{"action":"accept","value":true}'],
    [declined, '{"action":"decline"}', "true false false"],
    [cancelled, '{"action":"cancel"}', "false true false"],
  ]) {
    const client = await Client.connect(app, { onElicit: () => given });
    assert.equal((await client.callTool("tries")).text, outcome);
    if (thrown) assert.equal((await client.callTool("insists")).text, thrown);
    await client.close();
  }
});

describe("a handler that has to leave is stopped", () => {
  test("by the oldest's turn, when too many wait", () => {
    const { app, seen } = deleting({ suspendedLimit: 1 });
    return using([app], async (client) => {
      const oldest = await firstRound(client);
      await firstRound(client);
      await seen.unwound;
      const [{ error, aborted }] = seen.ended;
      assert.equal(error.name, "AbortError");
      assert(!(error instanceof Cancelled) && !(error instanceof Declined));
      assert(aborted);
      const next = await client.callToolRound("deletes", {}, oldest);
      assert.deepEqual([Object.keys(next.questions), seen.runs, seen.charged], [["elicit-2"], 3, 2]);
    });
  });

  test("when its time is over", () => {
    const { app, seen } = deleting({ suspendedTtlMs: 60 });
    return using([app], async (client) => {
      const round = await firstRound(client);
      await seen.unwound;
      assert.equal(seen.ended[0].error.name, "AbortError");
      assert.deepEqual(Object.keys((await client.callToolRound("deletes", {}, round)).questions), ["elicit-2"]);
      assert.equal(seen.runs, 2);
    });
  });

  test("and a state that has expired brings nothing back", () => {
    // States count whole seconds.
    const { app } = deleting({ stateTtlMs: 1 });
    return using([app], async (client) => {
      const round = await firstRound(client);
      const outcome = () => client.callToolRound("deletes", {}, round).then(() => undefined, (error) => error);
      const error = await eventually(outcome);
      assert.ok(error);
      await assert.rejects(Promise.reject(error), REFUSED);
    });
  });
});

describe("what can't be meant is refused", () => {
  test("options of the server", () => {
    for (const [options, message] of [
      [{ suspendedLimit: -1 }, 'new Server("x"): suspendedLimit must be an integer, or 0 for none, not -1'],
      [{ suspendedLimit: 1.5 }, 'new Server("x"): suspendedLimit must be an integer, or 0 for none, not 1.5'],
      [{ suspendedTtlMs: 0 }, 'new Server("x"): suspendedTtlMs must be a number of milliseconds above 0, not 0'],
      [{ stateTtlMs: "5m" }, 'new Server("x"): stateTtlMs must be a number of milliseconds above 0, not "5m"'],
      [{ maxRequestState: 0 }, 'new Server("x"): maxRequestState must be a number of bytes, an integer from 1, not 0'],
      [{ requestStateKeys: "secret" }, 'new Server("x"): requestStateKeys must be a list of strings or Uint8Arrays; the first encrypts, all of them decrypt'],
      [{ requestStateKeysFile: 7 }, 'new Server("x"): requestStateKeysFile must be the path of a file of keys, one a line'],
      [{ requestStateKeys: ["a".repeat(32)], requestStateKeysFile: "keys" }, 'new Server("x"): requestStateKeys and requestStateKeysFile are set: set one of them'],
      [{ requestStateKeys: ["secret", 5] }, 'new Server("x"): requestStateKeys must be a list of strings or Uint8Arrays; the first encrypts, all of them decrypt'],
      [{ requestStateKeys: ["a".repeat(32), ""] }, 'new Server("x"): key 2 of requestStateKeys has 0 bytes: take at least 32 random ones, the same on every server that shares the work'],
    ]) {
      assert.throws(() => new Server("x", options), { name: "TypeError", message });
    }
    new Server("x", { suspendedTtlMs: Number.MAX_VALUE, stateTtlMs: Number.MAX_VALUE, requestStateKeys: [] });
  });

  test("options of a tool", () => {
    assert.throws(() => new Server("x").tool("t", { replay: "never" }, () => ""), {
      name: "TypeError",
      message: 'tool "t": replay must be "allow" or "forbid", not "never"',
    });
  });

  test("asking after the answer", async () => {
    const heard = later();
    const app = new Server("x");
    app.tool("leaves", {}, (_, ctx) => {
      setImmediate(() => ctx.elicit("Sure?", boolean).catch((error) => heard.resolve(`${error.name}: ${error.message}`)));
      return "left";
    });
    await using([app], async (client) => {
      assert.equal((await client.callTool("leaves")).text, "left");
      assert.match(await heard, /NotSupported: the handler has ended; it can ask its client only until it returns/);
    });
  });

  test("two questions under one key", async () => {
    const app = new Server("x");
    app.tool("same", {}, async (_, ctx) => {
      const both = [ask.elicit("A?", string, { key: "k" }), ask.elicit("B?", string, { key: "k" })];
      return ctx.ask(...both).catch((error) => error.message);
    });
    await using([app], async (client) => {
      const round = await client.callToolRound("same", {});
      const said = round.questions ? await client.callToolRound("same", {}, { state: round.state, answers: { k: accept("a") } }) : round;
      assert.match(said.text, /two questions have the key "k": give each a key of its own/);
    });
  });

  test("what a client never declared", async () => {
    const client = await Client.connect(deleting().app);
    await assert.rejects(client.callTool("deletes"), (error) => error instanceof ProtocolError && error.code === -32021);
    await client.close();
  });

  test("several questions of which one can't be asked", async () => {
    const app = new Server("asks");
    app.tool("all", {}, async (_, ctx) => JSON.stringify(await ctx.ask(ask.elicit("Sure?", boolean), ask.roots(), ask.sample("Hi"))));
    const onElicit = () => assert.fail("nobody is asked");
    const refused = (error) => {
      assert.equal(error.code, -32021);
      assert.deepEqual(error.data, { requiredCapabilities: { roots: {}, sampling: {} } });
      return true;
    };
    const client = await Client.connect(app, { onElicit });
    await assert.rejects(client.callToolRound("all", {}), refused);
    await client.close();
    const inSession = await Client.connect(app, { revision: "2025-11-25", onElicit });
    await assert.rejects(inSession.callTool("all"), /the client did not declare roots, so it can't be asked for roots/);
    await inSession.close();
  });
});

function withParams(body, more) {
  const message = JSON.parse(body);
  Object.assign(message.params, more);
  message.params._meta["io.modelcontextprotocol/clientCapabilities"] = { elicitation: {} };
  return JSON.stringify(message);
}

async function closing(app, use) {
  try {
    await use();
  } finally {
    await app.close();
  }
}
