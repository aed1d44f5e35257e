/** Every request of a client takes `signal` and `timeoutMs`. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import * as z from "zod";

import { closing } from "./closing.mjs";

const REQUESTS = {
  listTools: (client, options) => client.listTools(options),
  listResources: (client, options) => client.listResources(options),
  listResourceTemplates: (client, options) => client.listResourceTemplates(options),
  listPrompts: (client, options) => client.listPrompts(options),
  listToolsPage: (client, options) => client.listToolsPage(undefined, options),
  listResourcesPage: (client, options) => client.listResourcesPage(undefined, options),
  listResourceTemplatesPage: (client, options) => client.listResourceTemplatesPage(undefined, options),
  listPromptsPage: (client, options) => client.listPromptsPage(undefined, options),
  complete: (client, options) => client.complete("ask", "topic", "a", { arguments: {}, ...options }),
  setLogLevel: (client, options) => client.setLogLevel("error", options),
  ping: (client, options) => client.ping(options),
  callTool: (client, options) => client.callTool("add", {}, options),
  readResource: (client, options) => client.readResource("a://b", options),
  getPrompt: (client, options) => client.getPrompt("ask", { topic: "a" }, options),
  request: (client, options) => client.request("resources/list", {}, options),
};
// A modern client sets the level in each request, and pings by another method.
const WITHOUT_REQUEST = { "2026-07-28": ["setLogLevel", "ping"] };

/** A server that answers nothing after its handshake; `reached` gives what begins. */
function silent() {
  const app = new Server("t");
  const waiting = [];
  app.tool("add", {}, () => 1).resource("a://b", {}, () => "b").resource("a://{c}", {}, ({ c }) => c);
  app.prompt("ask", { args: z.object({ topic: z.string() }) }, ({ topic }) => topic).complete("ask", "topic", () => ["a"]);
  app.middleware((request, next) => {
    if (request.method.startsWith("server/") || request.method === "initialize") return next(request);
    waiting.shift()?.();
    return new Promise(() => undefined);
  });
  return { app, reached: () => new Promise((resolve) => waiting.push(resolve)) };
}

for (const revision of eras) {
  test(`requests are cancelled by their signal and end by their time limit, in ${revision}`, () => {
    const { app, reached } = silent();
    return closing(connect(app, { revision }), async (client) => {
      for (const [name, request] of Object.entries(REQUESTS)) {
        if (WITHOUT_REQUEST[revision]?.includes(name)) continue;
        const controller = new AbortController();
        const begun = reached();
        const cancelled = assert.rejects(request(client, { signal: controller.signal }), { name: "AbortError" }, name);
        await begun;
        controller.abort();
        await cancelled;
        await assert.rejects(request(client, { timeoutMs: 1 }), { name: "CallTimeout" }, name);
      }
    });
  });
}

test("an option that a request does not have is named", () => {
  const { app } = silent();
  return closing(connect(app), async (client) => {
    for (const [name, request] of Object.entries(REQUESTS)) {
      await assert.rejects(async () => request(client, { timeout: 5 }), /unknown option 'timeout'; did you mean 'timeoutMs'\?/, name);
      await assert.rejects(async () => request(client, { signal: 5 }), /signal must be an AbortSignal/, name);
    }
    await assert.rejects(client.listTools({ cursor: "a" }), /unknown option 'cursor'; for one page write listToolsPage\(cursor\)/);
    await assert.rejects(client.complete("ask", "topic", "a", { context: {} }), /did you mean 'arguments'\?/);
  });
});
