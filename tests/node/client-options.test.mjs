/** Options of clients and of their calls: unknown ones are refused, and callbacks are called. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";

import { Client, ClientGroup, Server } from "gudgeon";

import { closing } from "./closing.mjs";

const app = new Server("t");
app.tool("steps", {}, async (_, ctx) => {
  for (const step of [1, 2]) await ctx.progress(step);
  return "done";
});
app.resource("t://a/{b}", {}, ({ b }) => b);

test("unknown or invalid options of a client are refused before anything is started", async () => {
  const cases = [
    [{ timeout: 5 }, /^TypeError: Client\.connect\(\): unknown option 'timeout'; did you mean 'timeoutMs'\?$/],
    [{ onElicitation: () => true }, /unknown option 'onElicitation'; did you mean 'onElicit'\?$/],
    [{ colour: 1 }, /unknown option 'colour'; it takes revision, .*timeoutMs/],
    [{ onElicit: true }, /Client\.connect\(\): onElicit must be a function, not true/],
    [{ onProgress: {} }, /onProgress must be a function, not {}/],
    [{ validate: "yes" }, /validate must be true or false, not "yes"/],
    [{ clientInfo: "me" }, /clientInfo must be an object such as { name: "host", version: "1.0" }, not "me"/],
    [{ retry: "always" }, /retry must be "safe" or "never", or an object { attempts, deadlineMs }, not "always"/],
    [{ retry: { atempts: 3 } }, /^TypeError: Client\.connect\(\): retry: unknown option 'atempts'; did you mean 'attempts'\?$/],
    [{ retry: { attempts: "3" } }, /Client\.connect\(\): retry: attempts must be an integer from 1, not "3"$/],
    [{ retry: { deadlineMs: -1 } }, /Client\.connect\(\): retry: deadlineMs must be a number of milliseconds above 0, or Infinity for no limit, not -1$/],
    [null, /Client\.connect\(\): the options must be an object/],
  ];
  for (const [options, wrong] of cases) {
    await assert.rejects(Client.connect({ command: "no-such-program" }, options), wrong);
    await assert.rejects(ClientGroup.connect({ a: { command: "no-such-program" } }, options), TypeError);
  }
  await assert.rejects(Client.connect({ cmd: "node" }), /the target must be a URL, a command \(\{ command, args \}\), .*, not an object with cmd$/);
});

test("a client or a group without connect() is refused with the fix", () => {
  assert.throws(() => new Client({ name: "host", version: "1" }), /^TypeError: new Client\(\): .*; write await Client\.connect\(target, options\)$/);
  assert.throws(() => new ClientGroup({ app }), /^TypeError: new ClientGroup\(\): .*; write await ClientGroup\.connect\(targets, options\)$/);
});

test("unknown or invalid options of a call are refused before it is sent", () =>
  closing(Client.connect(app), async (client) => {
    const stop = new AbortController();
    const cases = [
      [{ timeout: 5 }, /^TypeError: callTool\("steps"\): unknown option 'timeout'; did you mean 'timeoutMs'\?$/],
      [{ onprogress: () => {} }, /unknown option 'onprogress'; did you mean 'onProgress'\?$/],
      [{ variables: {} }, /unknown option 'variables'; it takes output, signal, /],
      [{ signal: stop }, /callTool\("steps"\): signal must be an AbortSignal, such as controller\.signal, not {}/],
      [{ onProgress: 1 }, /onProgress must be a function, not 1/],
      [{ throwOnError: 0 }, /throwOnError must be true or false, not 0/],
      [{ meta: "m" }, /meta must be an object, not "m"/],
    ];
    for (const [options, wrong] of cases) await assert.rejects(client.callTool("steps", {}, options), wrong);
    await assert.rejects(client.callToolRound("steps", {}, { answer: {} }), /callToolRound\("steps"\): unknown option 'answer'; did you mean 'answers'\?$/);
    await assert.rejects(client.readResource("t://a/b", { variable: {} }), /readResource\("t:\/\/a\/b"\): unknown option 'variable'; did you mean 'variables'\?$/);
    await assert.rejects(client.getPrompt("p", {}, { timeout: 1 }), /getPrompt\("p"\): unknown option 'timeout'; did you mean 'timeoutMs'\?$/);
    await assert.rejects(client.request("a/b", {}, { timeout: 1 }), /request\("a\/b"\): unknown option 'timeout'; did you mean 'timeoutMs'\?$/);
    assert.equal((await client.callTool("steps", {}, { signal: stop.signal, meta: undefined })).text, "done");
    assert.equal((await client.readResource("t://a/{b}", { variables: { b: "c" } })).text, "c");
  }));

test("one callback that throws keeps no other from hearing of progress", async (t) => {
  const failed = t.mock.method(console, "error", () => {});
  const onProgress = () => {
    throw new Error("mine");
  };
  await closing(Client.connect(app, { onProgress }), async (client) => {
    const heard = [];
    await client.callTool("steps", {}, { onProgress: ({ progress }) => heard.push(progress) });
    assert.deepEqual(heard, [1, 2]);
  });
  assert.deepEqual(failed.mock.calls.map(({ arguments: [what] }) => what), ["onProgress failed:", "onProgress failed:"]);
});

test("a call's onProgress runs in the async context of the call", () =>
  closing(Client.connect(app), async (client) => {
    const store = new AsyncLocalStorage();
    const heard = [];
    const call = () => client.callTool("steps", {}, { onProgress: () => heard.push(store.getStore()) });
    await Promise.all([store.run("one", call), store.run("two", call)]);
    assert.deepEqual(heard.sort(), ["one", "one", "two", "two"]);
  }));
