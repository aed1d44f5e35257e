/** Starts worker threads one after another, terminates each amid its calls, and serves on the main thread at last. */
import { once } from "node:events";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

import { Client, Server } from "gudgeon";

const WORKERS = 5;
const SERVER = `
  import { Server } from "gudgeon";
  new Server("child").tool("echo", { input: { type: "object" } }, (args) => args).tool("later", {}, async () => "later").run();`;

/** Made where it is needed, because it loads the native half. */
function server() {
  const app = new Server("worker");
  app.tool("echo", { input: { type: "object" } }, (args) => args);
  app.tool("later", {}, () => new Promise((resolve) => setImmediate(resolve, "later")));
  app.tool("ask", {}, (_, ctx) => ctx.elicit("For ever?", { type: "boolean" }));
  return app;
}

const WAYS = {
  memory: async () => calls(await Client.connect(server())),
  exits: async () => calls(await Client.connect(server())),
  waiting: async () => {
    const client = await Client.connect(server(), { onElicit: () => new Promise(() => {}) });
    void client.callTool("ask");
    return calls(client);
  },
  command: async () => {
    const args = ["--input-type=module", "-e", SERVER];
    return calls(await Client.connect({ command: process.execPath, args }));
  },
  http: async () => {
    const { url } = await server().listen("http://127.0.0.1:0/mcp");
    for (const revision of ["2025-06-18", "2026-07-28"]) await calls(await Client.connect(url, { revision }));
  },
  mounted: async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "a", version: "1" } } });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const app = server();
    const post = () => app.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }));
    await post();
    void forever(post);
  },
};

if (isMainThread) {
  const [, , what] = process.argv;
  for (let at = 0; at < WORKERS; at++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: what });
    await once(worker, what === "exits" ? "exit" : "message");
    await worker.terminate();
  }
  const client = await Client.connect(server());
  console.log((await client.callTool("echo", { text: "served on the main thread" })).data.text);
  await client.close();
} else {
  await WAYS[workerData]();
  parentPort.postMessage("under way");
  if (workerData === "exits") process.exit();
}

/** Resolves after the first answers; the calls go on. */
async function calls(client) {
  const text = "x".repeat(1 << 20);
  const ways = [() => client.callTool("echo", { n: 1 }), () => client.callTool("later"), () => client.callTool("echo", { text })];
  for (const way of ways) await way();
  for (const way of ways) void forever(way);
}

async function forever(act) {
  for (;;) await act();
}
