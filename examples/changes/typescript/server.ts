/** A bakery whose tools, resources and prompts change while clients are connected. */
import { Server, ToolError } from "gudgeon";
import { z } from "zod";

const COUNTER = "bakery://counter";
const app = new Server("bakery");
const counter: Record<string, number> = { rye: 3 };
const Bread = z.object({ bread: z.string() });

app.resource(COUNTER, { mimeType: "application/json" }, () => counter);

// A server reports changes only of the lists that it has from the start: tools, resources, prompts.
app.prompt("praise", {}, () => "Praise our rye.");

const Loaves = z.object({ bread: z.string(), loaves: z.int() });
const BAKE = "Bake some loaves and put them on the counter.";
app.tool("bake", { description: BAKE, tags: ["oven"], input: Loaves }, ({ bread, loaves }) => {
  counter[bread] = (counter[bread] ?? 0) + loaves;
  app.notifyUpdated(COUNTER); // sent to the clients that subscribed to this URI
  return `${counter[bread]} ${bread}`;
});

app.tool("sell", { description: "Sell a loaf.", input: Bread }, ({ bread }) => {
  const left = counter[bread] ?? 0;
  if (left === 0) throw new ToolError(`No ${bread} is left.`);
  counter[bread] = left - 1;
  app.notifyUpdated(COUNTER);
  return `${left - 1} ${bread}`;
});

app.tool("close_oven", { description: "End of the baking: every tool that needs the oven goes." }, () => {
  app.tools.disable({ tags: ["oven"] }); // clients are notified of changed components
  return "cold";
});

app.tool("light_oven", { description: "The tools that need the oven come back." }, () => {
  app.tools.enable({ tags: ["oven"] });
  return "hot";
});

const NEW_RECIPE = "Add a tool, a resource and a prompt for one more kind of bread.";
app.tool("new_recipe", { description: NEW_RECIPE, input: Bread }, ({ bread }) => {
  if (app.tools.has(`slice_${bread}`)) throw new ToolError(`There is ${bread} already.`);
  app.tool(`slice_${bread}`, {}, () => `sliced ${bread}`);
  app.resource(`bakery://recipes/${bread}`, { name: bread }, () => `Flour, water, and what makes it ${bread}.`);
  app.prompt(`praise_${bread}`, {}, () => `Praise our ${bread}.`);
  return "written down";
});

app.tool("forget_recipe", { description: "Remove them again.", input: Bread }, ({ bread }) => {
  app.tools.remove(`slice_${bread}`);
  app.resources.remove(`bakery://recipes/${bread}`);
  app.prompts.remove(`praise_${bread}`);
  return "forgotten";
});

await app.run(process.argv[2]);
