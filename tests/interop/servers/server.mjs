/** The fixture server in JavaScript: `server.mjs [URL…]` listens at these; without any it speaks over stdio. */
import { setTimeout as sleep } from "node:timers/promises";
import { Server, ToolError, image, resourceLink } from "gudgeon";
import { addTo } from "./asking.mjs";
import * as offering from "./offering.mjs";
import { PIXEL } from "./pixel.mjs";

const app = new Server("interop", { version: "1.0.0", pageSize: 7, listTtlMs: 7_000, lifespan: offering.lifespan });
addTo(app);
offering.addTo(app);
const integer = { type: "integer" };
const string = { type: "string" };
let seenCancelled = 0;

app.tool(
  "add",
  { input: { type: "object", properties: { a: integer, b: integer }, required: ["a", "b"] }, output: integer },
  ({ a, b }) => a + b,
);
app.tool("echo", { input: { type: "object", properties: { text: string }, required: ["text"] } }, ({ text }) => text);
app.tool("fail", {}, () => {
  throw new ToolError("failed on purpose");
});
app.tool("slow", { input: { type: "object", properties: { ms: integer }, required: ["ms"] } }, async ({ ms }, ctx) => {
  ctx.signal.addEventListener("abort", () => void (seenCancelled += 1));
  for (let step = 1; step <= 4; step += 1) {
    ctx.progress(step, { total: 4 });
    await sleep(ms / 4, undefined, { signal: ctx.signal });
  }
  return "done";
});
app.tool("cancelled", {}, () => String(seenCancelled));
app.tool("log", {}, (_, ctx) => {
  ctx.debug("too quiet to be heard");
  ctx.info("hello from the tool");
  return "logged";
});
app.tool("picture", {}, () => image(PIXEL, "png"));
app.tool("link", {}, () => resourceLink({ uri: "interop://about", name: "about" }));

app.tool("touch", {}, () => {
  app.notifyUpdated("interop://about");
  return "touched";
});
app.tool("sprout", { enabled: false }, () => "here for a moment");
app.resource("interop://sprout", { enabled: false }, () => "here for a moment");
app.prompt("sprout", { enabled: false }, () => "here for a moment");
app.tool("grow", {}, () => {
  for (const [offers, name] of [[app.tools, "sprout"], [app.resources, "interop://sprout"], [app.prompts, "sprout"]]) {
    offers.enable(name);
    offers.disable(name);
  }
  return "grown";
});

app.resource("interop://about", {}, () => "A server to test with.");
app.resource("interop://items/{id}", {}, ({ id }) => `item ${id}`);
app.prompt(
  "greet",
  { args: { type: "object", properties: { name: string }, required: ["name"] } },
  ({ name }) => `Hello, ${name}!`,
);
app.complete("greet", "name", (prefix) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(prefix)));

const urls = process.argv.slice(2);
if (urls.length > 0) {
  const listening = await Promise.all(urls.slice(1).map((url) => app.listen(url)));
  await app.run(urls[0], { legacySse: true });
  await Promise.all(listening.map((one) => one.close()));
} else {
  await app.run();
}
