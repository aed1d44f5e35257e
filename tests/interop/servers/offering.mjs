/** Components beside plain tools, in JavaScript. */
import { setTimeout as sleep } from "node:timers/promises";
import { ProtocolError, ResourceNotFound, Server, ToolError, UrlElicitationRequired, ask, audio, file } from "gudgeon";
import { PIXEL } from "./pixel.mjs";

const FORM = {
  type: "object",
  properties: {
    email: { type: "string", format: "email" },
    copies: { type: "integer", minimum: 1, maximum: 5 },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
    marks: { type: "array", items: { type: "string", enum: ["new", "gift"] } },
    paper: { type: "string", default: "plain" },
  },
  required: ["email", "copies", "size", "marks"],
};
const BOOLEAN = { type: "boolean" };
const string = { type: "string" };
const page = { mode: "url", message: "Please sign in", url: "https://example.com/in", id: "gate" };
const seen = { roots: 0, read: 0, page: "" };

export function addTo(app) {
  const shelf = new Server("shelf");
  shelf.tool("tidy", {}, () => "tidy");
  app.mount("shelf", shelf);

  app.tool("form", {}, async (_, ctx) => {
    const { email, copies, size, marks, paper } = await ctx.elicit("Fill this in", FORM);
    return [email, copies, size, ...marks, paper].join(" ");
  });
  app.tool("plainly", {}, async (_, ctx) => ((await ctx.elicit("Another book (1)?", BOOLEAN)) ? "more" : "enough"));
  app.tool("returned", {}, (_, ctx) => {
    const question = ask.elicit("Another book (1)?", BOOLEAN, { key: "more" });
    const answer = ctx.answer(question);
    return answer === undefined ? question : answer ? "more" : "enough";
  });
  app.tool("delegate", {}, async (_, ctx) => {
    const add = { name: "add", inputSchema: { type: "object" } };
    const result = await ctx.sample("Add 2 and 3.", { maxTokens: 10, tools: [add], models: ["small"], costPriority: 1 });
    return result.content.map(({ type }) => type).join(" ");
  });
  app.tool("send", {}, async (_, ctx) => {
    seen.page = await ctx.elicitUrl("Please sign in", "https://example.com/in");
    return "sent";
  });
  app.tool("arrive", {}, () => {
    app.notifyUrlDone(seen.page);
    return "there";
  });
  app.tool("gate", {}, () => {
    throw new UrlElicitationRequired("sign in first", { elicitations: [page] });
  });
  app.onRootsChanged(() => {
    seen.roots += 1;
  });
  app.tool("moves", {}, () => String(seen.roots));
  app.tool("marks", { output: { type: "array", items: string } }, () => ["new", "gift"]);
  app.tool("nothing", { output: { type: ["integer", "null"] } }, () => null);
  app.tool("sound", {}, () => audio(Buffer.from("RIFF"), "wav"));
  app.tool("leaflet", {}, () => file(new URL("pixel.py", import.meta.url)));
  app.tool("pictures", {}, () => ["two sounds", audio(PIXEL, "wav"), audio(PIXEL, "wav")]);
  app.tool(
    "region",
    { input: { type: "object", properties: { name: { type: "string", "x-mcp-header": "Region" } }, required: ["name"] } },
    ({ name }) => name,
  );
  app.tool("visits", {}, (_, ctx) => {
    ctx.session.set("visits", (ctx.session.get("visits") ?? 0) + 1);
    return String(ctx.session.get("visits"));
  });
  app.tool("staff", { visible: (who) => who !== undefined }, () => "for staff");
  app.tool("late", { timeoutMs: 50 }, async (_, ctx) => {
    await sleep(60_000, undefined, { signal: ctx.signal });
    return "never";
  });
  app.tool("locked", {}, () => "never");
  app.middleware(
    async (request, next) => {
      if (request.params.name === "locked") throw new ToolError("the shelf is locked");
      return next();
    },
    { on: "tools/call" },
  );
  app.tool("crash", {}, () => {
    throw new RangeError("a secret");
  });
  app.tool("refuse", {}, () => {
    throw new ProtocolError(1234, "Refused.", { why: "because" });
  });
  app.tool("lost", {}, () => {
    throw new ResourceNotFound("interop://lost");
  });
  app.tool(
    "words",
    { input: { type: "object", properties: { mood: { enum: ["calm", "loud"] } }, required: ["mood"] } },
    ({ mood }, ctx) => (mood === "loud" ? ctx.lifespan.motto.toUpperCase() : ctx.lifespan.motto),
  );
  app.tool("traced", {}, (_, ctx) => String(ctx.meta.traceparent));
  app.resource("interop://counted", { cacheMs: 60_000, ttlMs: 5_000, cacheScope: "private" }, () => String((seen.read += 1)));
  app.tool("recount", {}, () => {
    seen.read = 0;
    app.notifyUpdated("interop://counted");
    return "again";
  });
  app.method("acme/echo", { params: { type: "object", properties: { text: string }, required: ["text"] } }, ({ text }) => ({ echo: text }));
}

/** The value of `ctx.lifespan`. */
export const lifespan = () => ({ value: { motto: "mind the gap" } });
