/** A museum guide: it asks the visitor questions, reports progress, and adds tools while it runs. */
import { ask, Server } from "gudgeon";
import { z } from "zod";

const app = new Server("museum"); // what clients carry between rounds is sealed with the keys in GUDGEON_STATE_KEYS

const PLAN = "Plan a visit: how long, what the visitor's model recommends, and where the plan is saved.";
app.tool("plan_visit", { description: PLAN }, async (_, ctx) => {
  const minutes = await ctx.elicit("How many minutes do you have?", z.int(), { key: "minutes" });
  const [advice, folders] = await ctx.ask(
    ask.sample(`What can one see in ${minutes} minutes?`, { maxTokens: 40, models: ["fast"] }),
    ask.roots(),
  );
  return `${advice.text} Saved in ${folders[0]?.name}.`;
});

const TOUR = "Walk through the museum, room by room.";
app.tool("tour", { description: TOUR, input: z.object({ rooms: z.int() }) }, async ({ rooms }, ctx) => {
  for (let room = 1; room <= rooms; room++) {
    await ctx.info({ message: "entered", room });
    await ctx.progress(room, { total: rooms, message: `room ${room}` });
  }
  return "That was all.";
});

const OPEN_ROOM = "Open a room: from now on the museum offers one more tool.";
app.tool("open_room", { description: OPEN_ROOM, input: z.object({ name: z.string() }) }, ({ name }) => {
  app.tool(`look_at_${name}`, {}, () => `You see ${name}.`);
  return "open";
});

let places: string[] = [];

app.onRootsChanged(async (ctx) => {
  places = (await ctx.roots()).map((root) => root.uri); // sessions only: later revisions ask when they need it
});

app.tool("last_place", { description: "The visitor's new address." }, () => places.join(" "));

await app.run(process.argv[2]);
