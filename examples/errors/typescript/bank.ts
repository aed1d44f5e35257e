/** A bank's counter: all the ways in which a call can fail, and the errors that the client gets. */
import { setTimeout as sleep } from "node:timers/promises";
import { ProtocolError, ResourceNotFound, Server, ToolError } from "gudgeon";
import { z } from "zod";

/** An error whose message the client may read. */
class Overdrawn extends Error {}

export const app = new Server("bank", { exposeErrors: [Overdrawn] });
const accounts: Record<string, number> = { ada: 100, bob: 20 };

const Withdrawal = z.object({ name: z.string(), euros: z.int() });
app.tool("withdraw", { description: "Take money out.", input: Withdrawal, output: z.int() }, ({ name, euros }) => {
  const has = accounts[name];
  if (has === undefined) {
    throw new ToolError(`Nobody here is called ${name}.`, { "bank.example/known": Object.keys(accounts).length });
  }
  if (euros > has) throw new Overdrawn(`${name} has ${has} euros`);
  return has - euros;
});

const AUDIT = "A mistake of ours: the customer gets a reference, the log has the stack trace under it.";
app.tool("audit", { description: AUDIT }, () => {
  throw new RangeError("division by nothing");
});

const TRANSFER = "The counter is closed: an error of the protocol, for the program and not for the model.";
app.tool("transfer", { description: TRANSFER, input: z.object({ euros: z.int() }) }, () => {
  throw new ProtocolError(4001, "The counter is closed.", { opens: "09:00" });
});

const CLOSE = "Close an account, if the customer agrees; Declined is not caught here.";
app.tool("close_account", { description: CLOSE, input: z.object({ name: z.string() }) }, async ({ name }, ctx) => {
  const sure = await ctx.elicit(`Close ${name}'s account?`, z.boolean(), { key: "sure" });
  const reason = await ctx.elicit("Why do you leave?", z.string(), { key: "reason" });
  return sure ? `closed, because: ${reason}` : "kept";
});

const LOAN = "Decisions take longer than a call may.";
app.tool("loan", { description: LOAN, timeoutMs: 200 }, async (_, ctx) => {
  await sleep(3_600_000, undefined, { signal: ctx.signal });
  return "granted";
});

const atTheExpert = new Set<string>();

const APPRAISE = "Say what something is worth, once the expert comes. Who gives up before fires `ctx.signal`.";
app.tool("appraise", { description: APPRAISE, input: z.object({ thing: z.string() }) }, async ({ thing }, ctx) => {
  atTheExpert.add(thing);
  try {
    await sleep(86_400_000, undefined, { signal: ctx.signal });
  } finally {
    atTheExpert.delete(thing);
  }
  return "priceless";
});

app.resource("bank://expert", {}, () => [...atTheExpert]);

app.resource("bank://accounts/{name}", {}, ({ name }) => {
  const has = accounts[name];
  if (has === undefined) throw new ResourceNotFound(`bank://accounts/${name}`);
  return `${has} euros`;
});

app.prompt("reminder", { description: "Write a reminder.", args: z.object({ name: z.string() }) }, () => {
  throw new Error("the template is missing");
});
