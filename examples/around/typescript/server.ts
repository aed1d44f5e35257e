/** A pizzeria: lifespan, dependencies, timeouts, concurrency limits, middleware, a mounted server. */
import { setTimeout as sleep } from "node:timers/promises";
import { middleware, Server } from "gudgeon";
import { z } from "zod";

const DAY = 86_400_000;

class Kitchen {
  freeOvens = 1;
  baked = 0;
  busy = 0;
  busiest = 0;
  left: string[] = [];

  /** Releases the oven, even if the handler fails. */
  withOven<T>(use: () => T): T {
    this.freeOvens -= 1;
    try {
      return use();
    } finally {
      this.freeOvens += 1;
    }
  }
}

const app = new Server("pizzeria", {
  lifespan: () => {
    const kitchen = new Kitchen(); // one for the whole process, as `ctx.lifespan`
    return { value: kitchen, close: () => console.error(`closed after ${kitchen.baked} pizzas`) };
  },
});

// ── what a handler needs ─────────────────────────────────────────────────────────────────────────────
const Pizza = z.object({ pizza: z.string() });
app.tool("bake", { description: "Bake a pizza.", tags: ["kitchen"], input: Pizza }, ({ pizza }, ctx) => {
  const kitchen = ctx.lifespan;
  return kitchen.withOven(() => {
    if (pizza === "hawaii") throw new Error("not in this house");
    kitchen.baked += 1;
    return `${pizza}, ${kitchen.freeOvens} ovens free`;
  });
});

const OVENS = "The number of free ovens.";
app.tool("ovens", { description: OVENS, tags: ["kitchen"], output: z.int() }, (_, ctx) => ctx.lifespan.freeOvens);

// ── how long, how many at once, and what becomes of a guest who leaves ───────────────────────────────
const SOURDOUGH = "Takes a day, which is longer than a call may.";
app.tool("sourdough", { description: SOURDOUGH, timeoutMs: 200 }, async (_, ctx) => {
  await sleep(DAY, undefined, { signal: ctx.signal });
  return "risen";
});

const SERVE = "There is one waiter: tables are served one after the other.";
const Table = z.object({ table: z.int() });
app.tool("serve_table", { description: SERVE, concurrency: 1, input: Table }, async ({ table }, ctx) => {
  const kitchen = ctx.lifespan;
  kitchen.busy += 1;
  kitchen.busiest = Math.max(kitchen.busiest, kitchen.busy);
  await sleep(10);
  kitchen.busy -= 1;
  return `table ${table}, ${kitchen.busiest} at once`;
});

const WAIT = "Wait until a table is free, or until the guest has had enough.";
app.tool("wait_for_table", { description: WAIT, input: z.object({ name: z.string() }) }, async ({ name }, ctx) => {
  ctx.signal.addEventListener("abort", () => ctx.lifespan.left.push(name));
  await ctx.progress(1, { message: "you are the next" });
  await sleep(DAY, undefined, { signal: ctx.signal });
  return "this way, please";
});

// With an output schema the client gets a list in every revision.
const WHO_LEFT = "The guests who went away.";
app.tool("who_left", { description: WHO_LEFT, output: z.array(z.string()) }, (_, ctx) => ctx.lifespan.left);

// ── house rules ──────────────────────────────────────────────────────────────────────────────────────
// Runs around every tool call: it sees the request, and may change, replace or reject the result.
app.middleware(
  async ({ ctx }, next) => {
    ctx.state.set("greeting", `Buongiorno, ${ctx.client.name}`);
    return next();
  },
  { on: "tools/call" },
);
app.middleware(middleware.timing()); // to stderr
app.middleware(middleware.rateLimit(0.01, { burst: 2, by: "server" }), { on: "prompts/get" });

const GREET = "Say what the middleware left for us.";
app.tool("greet", { description: GREET }, (_, ctx) => ctx.state.get("greeting"));

const RECIPE = "A recipe, of which we give two away and no more.";
app.prompt("recipe", { description: RECIPE, args: Pizza }, ({ pizza }) => `How do I bake a ${pizza}?`);

const TILL = "For the staff: nobody else can list or call it.";
app.tool("open_till", { description: TILL, visible: (who) => who?.scopes.has("staff") ?? false }, () => "cling");

// ── the bar next door, and a method of our own ───────────────────────────────────────────────────────
const bar = new Server("bar");
bar.tool("pour", { input: z.object({ drink: z.string() }) }, ({ drink }) => `a glass of ${drink}`);
bar.resource("menu://drinks", {}, () => "water, wine");
app.mount("bar", bar);

// A vendor's method, for clients that know it.
app.method("pizzeria/specials", { params: z.object({ day: z.string().default("today") }) }, ({ day }) => {
  return { [day]: "quattro stagioni" };
});

const CLOSE = 'Hide components with the tag "kitchen".';
app.tool("close_kitchen", { description: CLOSE }, () => {
  app.tools.disable({ tags: ["kitchen"] });
  return "closed";
});

await app.run(process.argv[2]);
