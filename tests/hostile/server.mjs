/** The server that hostile clients attack. Arguments: "stdio" or a URL, and optionally HTTP options as JSON. */
import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "gudgeon";

const app = new Server("target");
const input = (name, type) => ({ type: "object", properties: { [name]: { type } }, required: [name] });

app.tool("length", { input: input("text", "string") }, ({ text }) => text.length);

const strong = { type: "string", pattern: "(?=.*[a-z])(?=.*[0-9]).{8}" };
app.tool("password", { input: { type: "object", properties: { text: strong }, required: ["text"] } }, () => "taken");

app.tool("big", { input: input("size", "integer") }, ({ size }) => "x".repeat(size));

app.tool("slow", { input: input("ms", "integer") }, async ({ ms }) => {
  await sleep(ms);
  return "done";
});

/** Takes options by their names in Python, with times in seconds. */
function optionsOf(given) {
  const entries = Object.entries(JSON.parse(given)).map(([name, value]) => {
    const ours = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    return name.endsWith("_timeout") ? [`${ours}Ms`, value * 1000] : [ours, value];
  });
  return Object.fromEntries(entries);
}

await app.run(process.argv[2], optionsOf(process.argv[3] ?? "{}"));
