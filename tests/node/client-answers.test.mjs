/** A client's answers to questions: the same callbacks in every era. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
  ask, assistant, cancelled, Client, declined, Declined, McpError, NotSupported, ProtocolError, Server, text, ToolError, toolOutcome, toolUse,
  UrlElicitationRequired, user,
} from "gudgeon";
import * as z from "zod";

import { closing } from "./closing.mjs";
import { fakeInMemory } from "./fake-server.mjs";

const asking = ["2025-06-18", "2025-11-25", "2026-07-28"];
const withTools = asking.slice(1);

const app = new Server("asks");
app.tool("greet", {}, async (_, ctx) => {
  const name = await ctx.elicit("Name?", z.string());
  const said = await ctx.sample(`Greet ${name}.`, { maxTokens: 7, system: "Be nice." });
  const [root] = await ctx.roots();
  return `${said.text} ${root.uri}`;
});
app.tool("twoAtOnce", {}, async (_, ctx) => {
  const [one, other] = await ctx.ask(ask.elicit("One?", z.string()), ask.elicit("Other?", z.string()));
  return `${one} ${other}`;
});
app.tool("pick", {}, async (_, ctx) => {
  const tool = { name: "look", description: "Looks.", inputSchema: { type: "object" } };
  const said = await ctx.sample("Look!", { tools: [tool], toolChoice: "required" });
  return JSON.stringify(said.content[0].input);
});
app.tool("signIn", {}, (_, ctx) => ctx.elicitUrl("Sign in", "https://example.org/in"));
app.tool("forEver", {}, async (_, ctx) => {
  for (let round = 1; ; round++) await ctx.elicit(`Round ${round}?`, z.boolean());
});
app.tool("roots", {}, async (_, ctx) => ("roots" in ctx.client.capabilities ? (await ctx.roots()).map(({ uri }) => uri).join() : "none"));

const using = (options, use) => closing(Client.connect(app, { timeoutMs: 60_000, ...options }), use);

for (const era of asking) {
  test(`one callback answers requests and rounds, in ${era}`, async () => {
    const seen = [];
    const options = {
      revision: era,
      onElicit: async ({ mode, message, schema }) => {
        seen.push([mode, message, Object.keys(schema.properties)]);
        return "Eve";
      },
      onSample: ({ messages, maxTokens, system }) => {
        seen.push([messages[0].text, maxTokens, system]);
        return "Hello, Eve!";
      },
      roots: () => ["file:///a"],
    };
    await using(options, async (client) => assert.equal((await client.callTool("greet")).text, "Hello, Eve! file:///a"));
    assert.deepEqual(seen, [["form", "Name?", ["value"]], ["Greet Eve.", 7, "Be nice."]]);
  });

  test(`questions of one round are answered at once, in ${era}`, async () => {
    let go;
    const both = new Promise((resolve) => (go = resolve));
    let waiting = 0;
    const onElicit = async ({ message }) => {
      if (++waiting === 2) go();
      await both;
      return message.replace("?", "");
    };
    await using({ revision: era, onElicit }, async (client) => assert.equal((await client.callTool("twoAtOnce")).text, "One Other"));
  });

  test(`no and never mind are answers, in ${era}`, async () => {
    for (const [no, verb] of [[declined, "declined"], [cancelled, "dismissed"]]) {
      await using({ revision: era, onElicit: () => no, onSample: () => "", roots: [] }, async (client) => {
        assert.match((await client.callTool("greet", {}, { throwOnError: false })).text, new RegExp(`^The user ${verb}: Name\\?$`));
      });
    }
  });
}

for (const era of withTools) {
  test(`tools reach the model's callback, in ${era}`, async () => {
    const onSample = ({ tools: [tool, ...others], toolChoice }) => {
      assert.deepEqual([tool.name, tool.description, tool.inputSchema, others, toolChoice], ["look", "Looks.", { type: "object" }, [], "required"]);
      const used = { ...text(""), type: "tool_use", id: "1", name: "look", input: { at: "sky" } };
      return { role: "assistant", content: [used], text: "", model: "m", stopReason: "toolUse" };
    };
    await using({ revision: era, onSample }, async (client) => assert.equal((await client.callTool("pick")).text, '{"at":"sky"}'));
  });

  test(`what the model's tools answered reaches it, in ${era}`, async () => {
    const sums = new Server("sums");
    const tool = { name: "add", inputSchema: { type: "object" } };
    sums.tool("think", {}, async (_, ctx) => {
      const asked = await ctx.sample("2 + 3?", { tools: [tool] });
      const [use] = asked.content;
      const outcome = toolOutcome({ toolUseId: use.id, content: String(use.input.a + use.input.b), structuredContent: { sum: 5 } });
      return (await ctx.sample([user("2 + 3?"), assistant(asked.content), user(outcome)], { tools: [tool] })).text;
    });
    const onSample = ({ messages: [, wanted, answered] }) => {
      if (!wanted) return { role: "assistant", content: [toolUse({ id: "u1", name: "add", input: { a: 2, b: 3 } })], text: "", model: "m", stopReason: "toolUse" };
      const { type, toolUseId, content: [said], structuredContent } = answered.content;
      assert.deepEqual([wanted.role, type, toolUseId, structuredContent], ["assistant", "tool_result", "u1", { sum: 5 }]);
      return `It is ${said.text}.`;
    };
    const client = await Client.connect(sums, { revision: era, onSample });
    assert.equal((await client.callTool("think")).text, "It is 5.");
    await client.close();
  });

  test(`a model that declines fails the call, in ${era}`, async () => {
    const onSample = () => {
      throw new Declined("not today");
    };
    await using({ revision: era, onSample }, (client) => assert.rejects(client.callTool("pick"), (error) => error instanceof McpError && /not today/.test(error.message)));
  });
}

for (const [name, refuse] of [
  ["declined", () => declined],
  ["given back", () => new Declined("not now")],
  ["thrown", () => { throw new Declined("not now"); }],
  ["in the specification's words", () => { throw new ProtocolError(-1, "User rejected sampling request"); }],
]) {
  test(`a user who refuses the model in a session has declined: ${name}`, async () => {
    const server = new Server("asks");
    let seen;
    server.tool("dream", {}, async (_, ctx) => {
      try {
        return (await ctx.sample("Dream.", { maxTokens: 5 })).text;
      } catch (error) {
        seen = error;
        throw error;
      }
    });
    const client = await Client.connect(server, { revision: "2025-11-25", onSample: refuse });
    await assert.rejects(client.callTool("dream"), (error) => error instanceof ToolError && /^The user declined: sampling \(/.test(error.text));
    await client.close();
    assert.ok(seen instanceof Declined, String(seen));
  });
}

for (const era of asking) {
  test(`a form without fields takes consent, and what is null was left open, in ${era}`, async () => {
    const server = new Server("asks");
    server.tool("agree", {}, async (_, ctx) => (await ctx.tryElicit("Agreed?", { type: "object", properties: {} })).action);
    const answers = [true, false, {}, undefined];
    const client = await Client.connect(server, { revision: era, onElicit: () => answers.shift() });
    const said = [];
    for (let at = 0; at < 3; at++) said.push((await client.callTool("agree")).text);
    assert.deepEqual(said, ["accept", "decline", "accept"]);
    await assert.rejects(client.callTool("agree"), McpError);
    await client.close();

    server.tool("name", {}, async (_, ctx) => {
      const schema = { type: "object", properties: { first: { type: "string" }, last: { type: "string", default: "L" } } };
      return JSON.stringify(await ctx.elicit("Name?", schema));
    });
    await closing(Client.connect(server, { revision: era, onElicit: () => ({ first: null, last: null }) }), async (client) =>
      assert.equal((await client.callTool("name")).text, '{"last":"L"}'),
    );
  });
}

test("a completed page is reported", async () => {
  const visited = [];
  let done;
  const heard = new Promise((resolve) => (done = resolve));
  const onElicit = ({ url }) => visited.push(url) > 0;
  await using({ revision: "2025-11-25", onElicit, onUrlDone: done }, async (client) => {
    const page = (await client.callTool("signIn")).text;
    assert.deepEqual(visited, ["https://example.org/in"]);
    app.notifyUrlDone("another");
    app.notifyUrlDone(page);
    assert.equal(await heard, page);
  });
});

test("a page that an error named is reported when it is completed", async () => {
  const pages = new Server("pages");
  const page = { id: "own", mode: "url", message: "In?", url: "https://example.org/in" };
  pages.tool("enter", {}, () => {
    throw new UrlElicitationRequired("sign in first", { elicitations: [page] });
  });
  let done;
  const heard = new Promise((resolve) => (done = resolve));
  const client = await Client.connect(pages, { revision: "2025-11-25", onElicit: () => true, onUrlDone: done });
  await assert.rejects(client.callTool("enter"), UrlElicitationRequired);
  pages.notifyUrlDone("own");
  assert.equal(await heard, "own");
  await client.close();
});

test("maxRounds arrives, and is checked", async () => {
  const asked = [];
  const onElicit = ({ message }) => asked.push(message) > 0;
  await using({ revision: "2026-07-28", onElicit, maxRounds: 3 }, async (client) => {
    await assert.rejects(client.callTool("forEver"), (error) => /after 3 rounds/.test(error.message) && /maxRounds/.test(error.hint));
  });
  assert.deepEqual(asked, ["Round 1?", "Round 2?", "Round 3?"]);
  for (const wrong of [0, -1, 1.5, "3", Number.NaN]) {
    await assert.rejects(Client.connect(app, { maxRounds: wrong }), { name: "TypeError", message: /maxRounds must be an integer from 1/ });
    await assert.rejects(Client.connect(app, { maxMessage: wrong }), { name: "TypeError", message: /maxMessage must be a number of bytes, an integer from 1/ });
  }
});

test("roots that come later are declared in the modern era", () =>
  using({ revision: "2026-07-28" }, async (client) => {
    assert.equal((await client.callTool("roots")).text, "none");
    client.setRoots(["file:///a", { uri: "file:///b" }]);
    assert.equal((await client.callTool("roots")).text, "file:///a,file:///b");
    client.setRoots([]);
    assert.equal((await client.callTool("roots")).text, "");
  }));

test("roots that come later are refused in the legacy era, and changed where there were some", async () => {
  await using({ revision: "2025-11-25" }, async (client) => {
    assert.throws(() => client.setRoots(["file:///a"]), (error) => error instanceof NotSupported && /2025-11-25/.test(error.message) && /empty list/.test(error.hint));
    assert.equal((await client.callTool("roots")).text, "none");
  });
  let changes = 0;
  app.onRootsChanged(() => void changes++);
  await using({ revision: "2025-11-25", roots: [] }, async (client) => {
    assert.equal((await client.callTool("roots")).text, "");
    client.setRoots(["file:///a"]);
    assert.equal((await client.callTool("roots")).text, "file:///a");
  });
  assert.equal(changes, 1);
});

test("what was left open has its default", async () => {
  // A server that fills in nothing itself.
  const schema = { type: "object", properties: { name: { type: "string", default: "Eve" }, sure: { type: "boolean", default: true } }, required: ["name"] };
  const server = fakeInMemory(`
    if (modern(message)) return;
    const given = message.params.inputResponses;
    if (given) answer(message, text(JSON.stringify(given.q)));
    else answer(message, { resultType: "input_required", inputRequests: { q: { method: "elicitation/create", params: { message: "Who?", requestedSchema: ${JSON.stringify(schema)} } } } });
  `);
  const client = await Client.connect(server, { onElicit: () => ({ sure: false }) });
  assert.deepEqual(JSON.parse((await client.callTool("t")).text), { action: "accept", content: { sure: false, name: "Eve" } });
  await client.close();
});

test("the caller gets an error for an invalid answer", async () => {
  for (const era of withTools) {
    await using({ revision: era, onElicit: () => 3 }, (client) => assert.rejects(client.callTool("greet"), /does not fit the form/));
  }
  const options = { revision: "2026-07-28", onElicit: () => 3 };
  await using(options, (client) => assert.rejects(client.callTool("greet"), (error) => error instanceof McpError && !(error instanceof ProtocolError)));
});

test("roots are URIs, paths and objects", async () => {
  const roots = ["file:///a", "/srv/my shelf", new URL("file:///b"), { uri: "/c", name: "C" }];
  const uris = "file:///a,file:///srv/my%20shelf,file:///b,file:///c";
  for (const given of [roots, async () => roots]) {
    await using({ roots: given }, async (client) => {
      assert.equal((await client.callTool("roots")).text, uris);
      client.setRoots([new URL("file:///e")]);
      assert.equal((await client.callTool("roots")).text, "file:///e");
      assert.throws(() => client.setRoots(["e"]), /^TypeError: setRoots\(\): roots\[0\] must be a file:\/\/ URI/);
    });
  }
});

/** The cases, which both languages have. */
const ANSWERS = JSON.parse(readFileSync(new URL("../client_answers.json", import.meta.url), "utf8"));
const asker = () => fakeInMemory(`
  if (legacy(message)) return;
  if (message.method === "tools/call") send({ id: (call = message).id + "q", ...message.params.arguments });
  else if (message.result || message.error) answer(call, text(JSON.stringify(message.result ?? message.error)));
`, "let call;");

for (const { case: title, method, form, url, schemes, given, result, code = -32603, error } of ANSWERS) {
  test(title, async (t) => {
    t.mock.method(console, "error", () => {});
    const asked = { message: "Well?", requestedSchema: { type: "object", ...form }, messages: [], maxTokens: 5 };
    const params = url === undefined ? asked : { mode: "url", message: "Well?", url, elicitationId: "e" };
    const back = () => given;
    const options = { revision: "2025-11-25", allowedUrlSchemes: schemes, onElicit: back, onSample: back, roots: back };
    const client = await Client.connect(asker(), options);
    const answer = JSON.parse((await client.callTool("ask", { method, params })).text);
    await client.close();
    if (error === undefined) assert.deepEqual(answer, result);
    else assert.ok(answer.code === code && answer.message.includes(error), JSON.stringify(answer));
  });
}

test("questions and answers may have the specification's shape", async () => {
  const server = new Server("spec");
  const image = { type: "image", data: "AAEC", mimeType: "image/png" };
  server.tool("form", {}, async (_, ctx) => JSON.stringify(await ctx.tryElicit("Name?", z.object({ name: z.string(), age: z.number() }))));
  server.tool("url", {}, (_, ctx) => ctx.elicitUrl("Sign in", "https://example.org/in").then(() => "signed in"));
  server.tool("messages", {}, async (_, ctx) => {
    const said = await ctx.sample(["Look.", { role: "assistant", content: { type: "text", text: "Where?" } }, { role: "user", content: [image] }], { maxTokens: 9 });
    return `${said.text} ${said.content[1].data.length}`;
  });
  server.tool("params", {}, async (_, ctx) => {
    const messages = [{ role: "user", content: { type: "text", text: "Hi" } }];
    return (await ctx.sample({ messages, maxTokens: 5, systemPrompt: "Be nice.", toolChoice: { mode: "auto" }, tools: [{ name: "look", inputSchema: { type: "object" } }] })).model;
  });
  const actions = [];
  const asked = [];
  const options = {
    onElicit: ({ mode }) => {
      const action = actions.shift();
      return action === "accept" && mode === "form" ? { action, content: { name: "Ada", age: 36 } } : { action };
    },
    onSample: (request) => {
      asked.push([request.messages.map(({ role, text }) => `${role}: ${text}`), request.maxTokens, request.system]);
      return { role: "assistant", model: "m", content: [{ type: "text", text: "A cat." }, image], stopReason: "endTurn" };
    },
  };
  for (const revision of withTools) {
    await closing(Client.connect(server, { revision, ...options }), async (client) => {
      const text = async (name) => (await client.callTool(name, {}, { throwOnError: false })).text;
      actions.push("accept", "accept");
      assert.equal(await text("form"), '{"action":"accept","value":{"name":"Ada","age":36}}');
      assert.equal(await text("url"), "signed in");
      if (revision < "2026-07-28") {
        actions.push("decline", "cancel");
        assert.equal(await text("form"), '{"action":"decline"}');
        assert.equal(await text("form"), '{"action":"cancel"}');
      }
      assert.equal(await text("messages"), "A cat. 3");
      assert.equal(await text("params"), "m");
    });
    assert.deepEqual(asked.splice(0), [[["user: Look.", "assistant: Where?", "user: "], 9, undefined], [["user: Hi"], 5, "Be nice."]]);
  }
  assert.throws(() => ask.sample([{ role: "user", content: "Hi" }]), /message 0 must be a string or made by user\(\) or assistant\(\), or \{ role: "user", content/);
  assert.throws(() => ask.sample({ messages: ["Hi"] }, { maxTokens: 5 }), /unknown option 'maxTokens'/);
  assert.throws(() => ask.sample({ messages: ["Hi"], system: "Be nice." }), /unknown param 'system'; did you mean 'systemPrompt'\?/);
});
