/** Handlers that ask their client: by real requests, and by returning the question. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import * as z from "zod";
import { Cancelled, Client, ProtocolError, Server, ask, cancelled, declined } from "gudgeon";

import { closing } from "./closing.mjs";

const LEGACY = ["2025-06-18", "2025-11-25"];
const EVERY = [...LEGACY, "2026-07-28"];
const boolean = { type: "boolean" };
const string = { type: "string" };
const guest = { type: "object", properties: { name: string, age: { type: "integer", default: 30 } }, required: ["name"] };

const app = new Server("asks");
app.tool("remove", {}, async (_, ctx) => ((await ctx.elicit("Delete it?", boolean)) ? "deleted" : "kept"));
app.tool("attempt", {}, async (_, ctx) => JSON.stringify(await ctx.tryElicit("Delete it?", boolean)));
app.tool("all", {}, async (_, ctx) => {
  const [name, said, roots] = await ctx.ask(ask.elicit("Name?", string), ask.sample("Say hi.", { maxTokens: 5 }), ask.roots());
  return [name, said.text, ...roots.map(({ uri }) => uri)].join(" ");
});
app.tool("visit", {}, (_, ctx) => ctx.elicitUrl("Sign in", "https://example.org/in"));
app.tool("explicit", {}, (_, ctx) => {
  const who = ask.elicit("Who?", guest);
  const found = ctx.answer(who);
  if (found === undefined) return who;
  const colour = ask.elicit("Colour?", string, { key: "colour" });
  const chosen = ctx.answer(colour);
  return chosen === undefined ? colour : `${found.name} (${found.age}) likes ${chosen}`;
});
app.tool("many", {}, (_, ctx) => {
  const both = [ask.elicit("A?", string), ask.elicit("B?", string)];
  const answers = both.map((question) => ctx.answer(question));
  return answers.includes(undefined) ? both : answers.join(" ");
});
app.tool("again", {}, (_, ctx) => {
  const sure = ask.elicit("Sure?", boolean, { key: "sure" });
  ctx.answer(sure);
  return sure;
});
app.prompt("greet", {}, (_, ctx) => {
  const who = ask.elicit("Whose?", string);
  const name = ctx.answer(who);
  return name === undefined ? who : `Greet ${name}.`;
});
app.resource("asks://name", { name: "name" }, (_, ctx) => {
  const who = ask.elicit("Whose?", string);
  return ctx.answer(who) ?? who;
});

const said = { "Delete it?": true, "Name?": "Ada", "Who?": { name: "Ada" }, "Colour?": "red", "A?": "a", "B?": "b" };

function using(revision, options, use) {
  const able = { onElicit: ({ message }) => said[message] ?? "Ada", onSample: () => "hi", roots: ["file:///a"] };
  return closing(Client.connect(app, { revision, ...able, ...options }), use);
}

for (const revision of LEGACY) {
  describe(`requests in ${revision}`, () => {
    test("a handler waits for the answer", () =>
      using(revision, {}, async (client) => {
        assert.equal((await client.callTool("remove")).text, "deleted");
        assert.equal((await client.callTool("attempt")).text, '{"action":"accept","value":true}');
        assert.equal((await client.callTool("all")).text, "Ada hi file:///a");
      }));

    test("a declined question throws, or is returned as an outcome", async () => {
      await using(revision, { onElicit: () => declined }, async (client) => {
        await assert.rejects(client.callTool("remove"), /The user declined: Delete it\?/);
        assert.equal((await client.callTool("attempt")).text, '{"action":"decline"}');
      });
      await using(revision, { onElicit: () => cancelled }, async (client) => {
        assert.equal((await client.callTool("attempt")).text, '{"action":"cancel"}');
        await assert.rejects(client.callTool("remove"), /The user dismissed: Delete it\?/);
      });
    });

    test("a client that declared nothing is not asked", async () => {
      const client = await Client.connect(app, { revision });
      for (const name of ["remove", "explicit"]) {
        await assert.rejects(client.callTool(name), /the client did not declare elicitation, so it can't be asked/);
      }
      await client.close();
    });
  });
}

for (const revision of EVERY) {
  describe(`returned questions in ${revision}`, () => {
    test("they are asked, and the handler runs again", () =>
      using(revision, {}, async (client) => {
        assert.equal((await client.callTool("explicit")).text, "Ada (30) likes red");
        assert.equal((await client.callTool("many")).text, "a b");
        assert.equal((await client.readResource("asks://name")).text, "Ada");
        assert.match(JSON.stringify(await client.getPrompt("greet")), /Greet Ada/);
      }));

    test("one that is answered and returned again is named", () =>
      using(revision, { onElicit: () => true }, (client) => assert.rejects(client.callTool("again"), /sure is answered already/)));
  });
}

test("pages have an id where the revision has them", async () => {
  const seen = [];
  await using("2025-11-25", { onElicit: (request) => (seen.push(request), {}) }, async (client) => {
    const { text } = await client.callTool("visit");
    assert.equal(seen[0].id, text);
    assert(text.length > 16);
  });
  await using("2025-06-18", {}, (client) => assert.rejects(client.callTool("visit"), /revision 2025-06-18 has no elicitation\.url, so the client can't be asked/));
});

test("the modern era names what a client would have to declare", async () => {
  const client = await Client.connect(app);
  for (const name of ["remove", "explicit"]) {
    await assert.rejects(client.callTool(name), (error) => {
      assert(error instanceof ProtocolError);
      assert.deepEqual([error.code, error.data], [-32021, { requiredCapabilities: { elicitation: {} } }]);
      return true;
    });
  }
  await client.close();
});

test("a handler that waits continues in the modern era as well", () =>
  using("2026-07-28", {}, async (client) => {
    assert.equal((await client.callTool("remove")).text, "deleted");
    assert.equal((await client.callTool("attempt")).text, '{"action":"accept","value":true}');
    assert.equal((await client.callTool("all")).text, "Ada hi file:///a");
  }));

test("waiting questions fail when the call ends", async () => {
  const server = new Server("waits", { suspendedTtlMs: 100 });
  let ended;
  const came = new Promise((resolve) => (ended = resolve));
  server.tool("waits", {}, (_, ctx) => ctx.elicit("Sure?", boolean).catch(ended));
  const client = await Client.connect(server, { revision: "2025-11-25", onElicit: () => new Promise(() => {}) });
  await assert.rejects(client.callTool("waits"), /and none came/);
  const error = await came;
  assert.equal(error.name, "AbortError");
  assert(!(error instanceof Cancelled), "nobody has closed the question");
  await client.close();
});

test("ctx.ask() waits for an answer that an async schema checks; ctx.answer() fails with the fix", async () => {
  const slow = new Server("slow", { debug: true });
  const even = () => ask.elicit("Even?", z.number().refine(async (n) => n % 2 === 0, "odd"));
  slow.tool("answer", {}, (_, ctx) => {
    const question = even();
    return ctx.answer(question) ?? question;
  });
  slow.tool("ask", {}, async (_, ctx) => {
    const [answer] = await ctx.ask(even());
    return answer;
  });
  for (const revision of EVERY) {
    const given = [3, 4, 4];
    await closing(Client.connect(slow, { revision, onElicit: () => given.shift() }), async (client) => {
      const { isError, text } = await client.callTool("answer", {}, { throwOnError: false });
      assert.ok(isError && text.includes("write `const [answer] = await ctx.ask(question)`, or use a schema that is not async"), text);
      assert.equal((await client.callTool("ask")).text, "4");
    });
  }
});
