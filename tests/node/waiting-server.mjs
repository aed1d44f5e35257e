/** A server whose handlers wait for their client; run by itself it serves stdio, and waits not for long. */
import { fileURLToPath } from "node:url";

import { Server, ask } from "gudgeon";

const boolean = { type: "boolean" };
const asks = { type: "object", properties: { asks: boolean }, required: ["asks"] };

export function waiting(options) {
  const server = new Server("waits", options);
  const bounds = { input: asks, timeoutMs: 600, concurrency: 1 };
  server.tool("waits", bounds, async ({ asks }, ctx) => (asks ? String(await ctx.elicit("Sure?", boolean)) : "asked nothing"));
  server.tool("returns", bounds, ({ asks }, ctx) => {
    const question = ask.elicit("Sure?", boolean);
    const answer = asks ? ctx.answer(question) : "asked nothing";
    return answer === undefined ? question : String(answer);
  });
  server.tool("hangs", { timeoutMs: 900 }, () => new Promise(() => {}));
  return server;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await waiting({ parkTtlMs: 900 }).run();
