/** Connects to evil servers, as client.py does. */
import { createInterface } from "node:readline";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, McpError } from "gudgeon";

const TIMEOUTS = ["CallTimeout", "ConnectTimeout"];
const ignore = () => {};
const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

const honest = await Client.connect(process.argv[2]);
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line))));
}
await honest.close();

async function run(job) {
  const pings = { longest: 0, runs: true };
  const pinging = ping(pings);
  await sleep(20);
  const began = performance.now();
  let client, outcome, detail = "";
  try {
    client = await connect(job);
    outcome = await act(client, job.action);
  } catch (error) {
    outcome = error instanceof McpError ? kindOf(error) : error instanceof TypeError ? "misuse" : String(error);
    detail = error.message.slice(0, 300);
  }
  const took = performance.now() - began;
  await client?.close();
  const closed = performance.now() - began - took;
  pings.runs = false;
  await pinging;
  if ({}.evil !== undefined) outcome = "polluted";
  return { outcome, detail, took: took / 1000, closed: closed / 1000, ping: pings.longest };
}

function kindOf(error) {
  return TIMEOUTS.includes(error.name) ? "timeout" : error.kind;
}

function connect({ target, changes, action, timeout }) {
  const [command, ...args] = typeof target === "string" ? [] : target;
  const place = typeof target === "string" ? target : { command, args };
  return Client.connect(place, {
    timeoutMs: timeout * 1000,
    maxTimeoutMs: timeout * 2000,
    ...(typeof target === "string" && { headers: { authorization: "Bearer secret" } }),
    logger,
    onLog: ignore,
    onProgress: ignore,
    onElicit: () => ({ a: "x" }),
    validate: action === "validate",
    ...(changes && { onListChanged: ignore }),
  });
}

async function act(client, action) {
  if (action === "connect") return "connected";
  if (action === "list") return String((await client.listTools()).length);
  if (action === "list and call") await client.listTools();
  if (action === "list and call first") {
    const [tool] = await client.listTools();
    return (await client.callTool(tool.name, { a: "x\r\nx-evil: 1" })).text;
  }
  if (action === "call twice") await client.callTool("evil");
  if (action === "validate") return (await client.callTool("evil", { n: "b".repeat(200_000) })).text;
  if (action === "push") {
    const text = "x".repeat(1 << 20);
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => client.callTool("evil", { text })));
    throw results[0].reason;
  }
  return (await client.callTool("evil")).text;
}

/** Measures the longest of pings in milliseconds, as client.py does. */
async function ping(pings) {
  while (pings.runs) {
    const began = performance.now();
    const before = process.cpuUsage();
    await honest.ping();
    const took = performance.now() - began;
    const { user, system } = process.cpuUsage(before);
    pings.longest = Math.max(pings.longest, took > 3000 ? took : Math.min(took, (user + system) / 1000));
    await sleep(10);
  }
}
