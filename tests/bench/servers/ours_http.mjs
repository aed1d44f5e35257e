/** Gudgeon in Node over HTTP: ours_http.mjs PORT [options as JSON, by their Python names]. */
import { Server } from "gudgeon";

const TIMES = ["header_timeout", "idle_timeout", "session_idle", "keep_alive", "shutdown_grace"];
const [port, given = "{}"] = process.argv.slice(2);
const options = {};
for (const [name, value] of Object.entries(JSON.parse(given))) {
  const ours = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  if (TIMES.includes(name)) options[`${ours}Ms`] = value * 1000;
  else options[ours] = value;
}

const app = new Server("bench");
const input = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
app.tool("echo", { input }, ({ text }) => text);
app.tool("collect", {}, () => {
  globalThis.gc(); // node --expose-gc
  return "collected";
});
await app.run(`http://127.0.0.1:${port}/mcp`, options);
