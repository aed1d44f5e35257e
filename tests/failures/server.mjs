/** A server in which everything fails, in TypeScript's API. */
import { setTimeout as sleep } from "node:timers/promises";
import { ProtocolError, ResourceNotFound, Server, ToolError, ask } from "gudgeon";

const app = new Server("failures", { version: "1.0" });
const BOOLEAN = { type: "boolean" };

class Lost extends Error {}

const full = (meta) => () => {
  throw new ToolError("the shelf is full", meta);
};
const crash = () => {
  throw new RangeError("a secret");
};
const refused = () => {
  throw new ProtocolError(1234, "Refused.", { why: "because" });
};
const sure = async (_, ctx) => String(await ctx.elicit("Sure?", BOOLEAN));
const slow = async (_, ctx) => {
  await sleep(60_000, undefined, { signal: ctx.signal });
  return "done";
};

app.tool("tool_error", {}, full({ shelf: 12 }));
app.tool("crash", {}, crash);
app.tool("exposed", { exposeErrors: [Lost] }, () => {
  throw new Lost("no such book");
});
app.tool("refused", {}, refused);
app.tool("missing", {}, () => {
  throw new ResourceNotFound("failures://gone");
});
app.tool("sure", {}, sure);
app.tool("sure_sync", {}, sure);
app.tool("dream", {}, async (_, ctx) => (await ctx.sample("Dream.", { maxTokens: 10 })).text);
app.tool("places", {}, async (_, ctx) => String(await ctx.roots()));
app.tool("page", {}, async (_, ctx) => ctx.elicitUrl("Sign in", "https://example.com/in"));
app.tool("slow", { timeoutMs: 50 }, slow);
app.tool("wrong", { output: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } }, () => ({ n: "three" }));
app.tool("forbids", { replay: "forbid" }, () => ask.elicit("Sure?", BOOLEAN));
app.tool("unsaid", {}, () => ({ mean: 0 / 0 }));
app.tool("laden", {}, () => {
  throw new ToolError("the scale is broken", { weight: Infinity });
});
app.tool(
  "typed",
  {
    input: {
      type: "object",
      properties: {
        count: { type: "integer" },
        names: { type: "array", items: { type: "string" } },
        level: { type: "number", description: "How high.", default: 1.0 },
        wide: BOOLEAN,
      },
      required: ["count", "names"],
    },
  },
  () => "ok",
);
app.tool("kept", {}, (_, ctx) => {
  ctx.session.set("n", 1);
  return "kept";
});

const typed = { type: "object", properties: { name: { type: "string" }, count: { type: "string" } }, required: ["name"] };
app.prompt("p_tool_error", {}, full());
app.prompt("p_crash", {}, crash);
app.prompt("p_refused", {}, refused);
app.prompt("p_sure", {}, sure);
app.prompt("p_slow", { timeoutMs: 50 }, slow);
app.prompt("p_typed", { args: typed }, ({ name }) => name);

app.resource("failures://tool_error", { name: "r_tool_error" }, full());
app.resource("failures://crash", { name: "r_crash" }, crash);
app.resource("failures://refused", { name: "r_refused" }, refused);
app.resource("failures://missing", { name: "r_missing" }, () => {
  throw new ResourceNotFound("failures://other");
});
app.resource("failures://sure", { name: "r_sure" }, sure);
app.resource("failures://slow", { name: "r_slow", timeoutMs: 50 }, slow);
app.resource("failures://items/{id}", { name: "r_items" }, ({ id }) => id);

app.method("acme/crash", { params: { type: "object" } }, crash);
app.method("acme/tool_error", { params: { type: "object" } }, full());
app.method("acme/typed", { params: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } }, ({ text }) => ({ echo: text }));
app.complete("p_typed", "name", crash);

if (process.argv.includes("around")) app.middleware((_, next) => next());
await app.run();
