// Handlers that return the official SDKs' result shapes as plain objects.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server, text } from "gudgeon";
import * as z from "zod";

async function connected(t, build) {
  const app = new Server("s");
  build(app);
  const client = await Client.connect(app);
  t.after(() => client.close());
  return client;
}

const call = async (t, value, options = {}) => {
  const client = await connected(t, (app) => app.tool("t", options, () => value));
  return client.callTool("t", {}, { throwOnError: false });
};

test("a tool's { content, isError } is its result", async (t) => {
  const result = await call(t, { content: [{ type: "text", text: "no such book" }], isError: true });
  assert.equal(result.isError, true);
  assert.equal(result.text, "no such book");
});

test("every kind of block is understood, with structured content and _meta", async (t) => {
  const result = await call(t, {
    content: [
      { type: "text", text: "a", annotations: { priority: 1 } },
      { type: "image", data: "AAE=", mimeType: "image/png" },
      { type: "audio", data: "AAE=", mimeType: "audio/wav" },
      { type: "resource_link", uri: "a://b", name: "b" },
      { type: "resource", resource: { uri: "a://c", text: "c" } },
      text("made here"),
    ],
    structuredContent: { n: 1 },
    _meta: { k: 1 },
  });
  assert.deepEqual(result.content.map(({ type }) => type), ["text", "image", "audio", "resource_link", "resource", "text"]);
  assert.deepEqual([...result.content[1].data], [0, 1]);
  assert.deepEqual(result.content[0].annotations, { priority: 1 });
  assert.deepEqual(result.data, { n: 1 });
  assert.equal(result.meta.k, 1);
});

test("an output schema checks its structuredContent", async (t) => {
  const output = z.object({ n: z.number() });
  const fits = await call(t, { content: [{ type: "text", text: "1" }], structuredContent: { n: 1 } }, { output });
  assert.deepEqual(fits.data, { n: 1 });
  const fails = await call(t, { content: [{ type: "text", text: "none" }], isError: true }, { output });
  assert.deepEqual([fails.isError, fails.text], [true, "none"]);
});

test("what the output schema calls content is data", async (t) => {
  const block = z.object({ type: z.literal("text"), text: z.string() });
  const value = { content: [{ type: "text", text: "a" }] };
  const result = await call(t, value, { output: z.object({ content: z.array(block) }) });
  assert.deepEqual(result.data, value);
});

test("a list without blocks, and other keys beside content, are data", async (t) => {
  for (const value of [
    { content: "a page", title: "t" },
    { content: [{ type: "paragraph", text: "a" }] },
    { role: "assistant", content: [{ type: "text", text: "a" }] },
    { contents: ["a"], messages: [] },
  ]) {
    assert.deepEqual(JSON.parse((await call(t, value)).text), value);
  }
});

test("what is nearly of that shape is refused by name", async (t) => {
  const reported = t.mock.method(console, "error", () => {});
  for (const [value, problem] of [
    [{ content: "text", isError: true }, /content is not a list/],
    [{ content: [{ type: "text" }], isError: true }, /content\[0\] is not a content block/],
    [{ content: [{ type: "image", data: new Uint8Array(1), mimeType: "image/png" }] }, /content\[0\] is not a content block/],
    [{ content: [], isError: true, extra: 1 }, /it has the key "extra"/],
  ]) {
    const result = await call(t, value, {});
    assert.equal(result.isError, true);
    assert.match(reported.mock.calls.at(-1).arguments.join(" "), /the result looks like the tool result \{ content, isError \}, but/);
    assert.match(reported.mock.calls.at(-1).arguments.join(" "), problem);
  }
});

test("a resource's { contents } is its result", async (t) => {
  const contents = [{ uri: "a://b", text: "b", mimeType: "text/markdown" }, { uri: "a://c", blob: "AAE=" }];
  let inside;
  const client = await connected(t, (app) => {
    app.resource("a://b", {}, () => ({ contents, _meta: { k: 1 } }));
    app.resource("a://data", {}, () => ({ contents: ["b"] }));
    app.tool("read", {}, async (_, ctx) => void (inside = await ctx.readResource("a://b")));
  });
  const result = await client.readResource("a://b");
  assert.deepEqual(result.contents.map(({ uri, text, mimeType }) => [uri, text, mimeType]), [["a://b", "b", "text/markdown"], ["a://c", undefined, undefined]]);
  assert.deepEqual([...result.blob], [0, 1]);
  assert.equal(result.meta.k, 1);
  await client.callTool("read");
  assert.equal(inside.text, "b");
  assert.equal((await client.readResource("a://data")).text, '{"contents":["b"]}');
});

test("a prompt's { messages } is its result", async (t) => {
  const messages = [{ role: "user", content: { type: "text", text: "Review it." } }, { role: "assistant", content: { type: "text", text: "Gladly." } }];
  const reported = t.mock.method(console, "error", () => {});
  const client = await connected(t, (app) => {
    app.prompt("review", {}, () => ({ messages, description: "d" }));
    app.prompt("wrong", {}, () => ({ messages: [{ role: "system", content: "no" }] }));
  });
  const result = await client.getPrompt("review");
  assert.deepEqual(result.messages.map(({ role, text }) => [role, text]), [["user", "Review it."], ["assistant", "Gladly."]]);
  assert.equal(result.description, "d");
  await assert.rejects(client.getPrompt("wrong"));
  assert.match(reported.mock.calls.at(-1).arguments.join(" "), /messages\[0\] needs role, "user" or "assistant", and content/);
});
