// The upstream server of upstream.io.test.mjs, over stdio, after some milliseconds: `upstream-shelf.mjs [MS]`.
import { setTimeout as sleep } from "node:timers/promises";

import { jsonSchema, Server, ToolError } from "gudgeon";

const name = jsonSchema({ type: "object", properties: { name: { type: "string" } }, required: ["name"] });
const app = new Server("shelf");

app.tool("greet", { input: name }, (given) => `Hello, ${given.name}!`);
app.tool("fail", {}, () => {
  throw new ToolError("it is broken");
});
app.tool("book", { input: name }, async (given, ctx) => {
  const sure = await ctx.elicit(`Book ${given.name}?`, jsonSchema({ type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] }));
  return `${given.name}: ${sure.sure}`;
});
app.tool("count", {}, async (_, ctx) => {
  for (const step of [1, 2, 3]) await ctx.progress(step, { total: 3 });
  return "done";
});
app.tool("wait", {}, async (_, ctx) => {
  await sleep(3_600_000, undefined, { signal: ctx.signal });
});
app.tool("grow", {}, () => {
  app.tool("added", {}, () => "it is here");
  return "grown";
});
app.tool("touch", {}, () => {
  app.notifyUpdated("shelf://about");
  return "touched";
});
app.tool("pid", {}, () => String(process.pid));
app.tool("end", {}, () => process.exit(3));
app.resource("shelf://about", {}, () => "two books");
app.resource("shelf://books/{id}", {}, ({ id }) => `book ${id}`);
app.prompt("review", { args: name }, (given) => `Review ${given.name}.`);
app.complete("review", "name", (typed) => [`${typed}une`]);

await sleep(Number(process.argv[2] ?? 0));
await app.run();
