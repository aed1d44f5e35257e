/** Gudgeon in Node for the bench of growth: scale.mjs stdio|URL [options as JSON, as for scale.py]. */
import { Server } from "gudgeon";

const [place, words = "{}"] = process.argv.slice(2);
const given = JSON.parse(words);
const app = new Server("scale", optionsOf(given.server));
const schema = (properties, required) => ({ type: "object", properties, required });
let changes = 0;
let waiting = [];

if (given.tools === undefined) addHelpers();
const query = { type: "string", description: "The words to search for." };
const limit = { type: "integer", description: "The number of results.", default: 10 };
const described = { description: "Searches the collection.", input: schema({ query, limit }, ["query"]) };
for (let number = 0; number < (given.tools ?? 1) - 1; number++) {
  app.tool(`search_${number}`, described, ({ query, limit }) => query.slice(0, limit));
}
app.tool("echo", { input: schema({ text: { type: "string" } }, ["text"]) }, ({ text }) => text);
await app.run(place, place === "stdio" ? {} : optionsOf(given.http));

/** Registers the tools for waiting, changes and memory. */
function addHelpers() {
  // Waits until `count` calls are waiting.
  app.tool("meet", { input: schema({ count: { type: "integer" } }, ["count"]) }, async ({ count }) => {
    const { promise, resolve } = resolvable();
    waiting.push(resolve);
    if (waiting.length === count) {
      for (const one of waiting) one();
      waiting = [];
    }
    await promise;
    return "met";
  });
  app.tool("count_waiting", {}, () => String(waiting.length));
  app.tool("change", {}, () => {
    app.tools.update("change", { meta: { changes: ++changes } });
    return "changed";
  });
  app.tool("collect", {}, () => {
    globalThis.gc(); // node --expose-gc
    return "collected";
  });
}

function resolvable() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return { promise, resolve };
}

/** Returns options by their names here; `named` has those of Python, with times in seconds. */
function optionsOf(named = {}) {
  const entries = Object.entries(named).map(([name, value]) => {
    const ours = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    const isTime = /_timeout$|^session_idle$|^keep_alive$/.test(name);
    return isTime ? [`${ours}Ms`, value * 1000] : [ours, value];
  });
  return Object.fromEntries(entries);
}
