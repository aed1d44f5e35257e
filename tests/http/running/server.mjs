/** A server as users write it: `app.run(url)`. Usage: server.mjs URL */
import { setTimeout as sleep } from "node:timers/promises";
import { Server } from "gudgeon";

const app = new Server("running");
const input = { type: "object", properties: { ms: { type: "integer" } }, required: ["ms"] };
app.tool("slow", { input }, async ({ ms }) => {
  console.error("started");
  await sleep(ms);
  return `Took ${ms} ms`;
});

console.error(process.argv[2]);
await app.run(process.argv[2]);
