/** The official TypeScript SDK 2.x as a caller, as `calls.py` describes: official.mjs URL legacy|auto SECONDS. */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(new URL("../../../.interop/node/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const URI = "shelf://top";
const STEPS = 5;
const CHANGES = 12;
const PATIENCE = 300;
const LONG = 10_000;
const [url, era, seconds] = process.argv.slice(2);
const options = { timeout: Number(seconds) * 1000 };
/** The functions that are called for each change. */
const notified = new Set();

class ToolFailed extends Error {
  name = "ToolFailed";
}

const client = new Client(
  { name: "caller", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: era } },
);
client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { value: true } }));
client.setNotificationHandler("notifications/resources/updated", () => notified.forEach((tell) => tell()));

async function call(name, args, onprogress) {
  const result = await client.callTool({ name, arguments: args }, onprogress ? { ...options, onprogress } : options);
  const text = result.content.map((block) => block.text).join("");
  if (result.isError) throw new ToolFailed(text);
  return text;
}

const kinds = {
  echo: (number) => call("echo", { text: `${number}` }),
  order: (number) => call("order", { number }),
  async counted() {
    const told = [];
    const text = await call("counted", { steps: STEPS }, ({ progress }) => told.push(progress));
    const rises = told.every((progress, at) => progress > (told[at - 1] ?? 0) && progress <= STEPS);
    return rises ? text : `progress was ${told}`;
  },
  subscribed: () => toldOf(CHANGES, PATIENCE),
  notified: () => toldOf(2, LONG),
};

async function toldOf(changes, patience) {
  let tell;
  const change = new Promise((resolve) => (tell = () => resolve(true)));
  notified.add(tell);
  const isModern = client.getNegotiatedProtocolVersion() >= "2026-07-28";
  const listening = isModern
    ? await client.listen({ resourceSubscriptions: [URI] }, options)
    : await client.subscribeResource({ uri: URI }, options);
  try {
    for (let tries = 0; tries < changes; tries += 1) {
      await call("change", {});
      if (await Promise.race([change, sleep(patience, false)])) return "told";
    }
    return "not told";
  } finally {
    notified.delete(tell);
    if (isModern) await listening.close();
  }
}

async function perform({ number, kind }) {
  const outcome = { number };
  try {
    outcome.got = await kinds[kind](number);
  } catch (error) {
    Object.assign(outcome, { error: error.name, message: `${error.message}`.slice(0, 300) });
  }
  console.log(JSON.stringify({ ...outcome, memory: process.memoryUsage.rss() }));
}

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
console.log(JSON.stringify({ number: -1, got: "connected" }));
const running = new Set();
for await (const line of createInterface({ input: process.stdin })) {
  const task = perform(JSON.parse(line));
  running.add(task);
  void task.finally(() => running.delete(task));
}
await Promise.all(running);
await client.close();
