/** Components that ask the client, in JavaScript. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "gudgeon";

const PAUSE = 150; // milliseconds; official TypeScript clients lose a notification that is read together with the result
const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const BOOLEAN = { type: "boolean" };

/** Something that must not happen twice: who counts finds a line in the ledger for each time. */
function reserve() {
  const ledger = process.env.INTEROP_LEDGER;
  if (ledger) appendFileSync(ledger, "reserved\n");
  return 7;
}

export function addTo(app) {
  app.tool("order", {}, async (_, ctx) => {
    const number = await ctx.step("reserve", reserve);
    const { name } = await ctx.elicit("What is your name?", NAME);
    let books = 1;
    while (await ctx.elicit(`Another book (${books})?`, BOOLEAN)) books += 1;
    return `${name}: ${books} books under ${number}`;
  });
  app.tool(
    "whim",
    { input: { type: "object", properties: { message: { type: "string" } }, required: ["message"] } },
    async ({ message }, ctx) => {
      const { action } = await ctx.tryElicit(message, BOOLEAN);
      return { accept: "accepted", decline: "declined", cancel: "cancelled" }[action];
    },
  );
  app.tool(
    "insist",
    { input: { type: "object", properties: { message: { type: "string" } }, required: ["message"] } },
    async ({ message }, ctx) => `accepted: ${await ctx.elicit(message, BOOLEAN)}`,
  );
  app.tool("once", { replay: "forbid" }, async (_, ctx) => ((await ctx.elicit("Another book (1)?", BOOLEAN)) ? "more" : "enough"));
  app.tool("deliver", {}, async (_, ctx) => {
    await ctx.elicit("Another book (1)?", BOOLEAN);
    ctx.info("on the way");
    ctx.progress(1, { total: 2 });
    ctx.progress(2, { total: 2 });
    await sleep(PAUSE);
    return "delivered";
  });
  app.tool("sign_in", {}, async (_, ctx) => {
    await ctx.elicitUrl("Please sign in", "https://example.com/in");
    return "on the way";
  });
  app.tool("capital", {}, async (_, ctx) => (await ctx.sample("What is the capital of France?", { maxTokens: 10 })).text);
  app.tool("where", {}, async (_, ctx) => (await ctx.roots()).map((root) => root.uri).join(", "));
  app.tool("at_once", {}, async (_, ctx) => {
    const [more, capital, roots] = await ctx.ask(
      ask.elicit("Another book (1)?", BOOLEAN),
      ask.sample("What is the capital of France?", { maxTokens: 10 }),
      ask.roots(),
    );
    return `${more ? "more" : "enough"} ${capital.text} ${roots[0].uri}`;
  });
  app.prompt("letter", {}, async (_, ctx) => `Dear ${(await ctx.elicit("What is your name?", NAME)).name}`);
  app.resource("interop://secret", {}, async (_, ctx) =>
    (await ctx.elicit("Another book (1)?", BOOLEAN)) ? "told" : "kept",
  );
}
