/** Three workers of a cluster serve one address, whose metrics the primary reads, also after one of them was killed. */
import cluster from "node:cluster";
import { once } from "node:events";

import { Client, Server } from "gudgeon";

/** Returns the number of calls, and of workers, that a worker answers with. */
async function read(url) {
  const text = await (await fetch(url.replace("/mcp", "/metrics"), { headers: { connection: "close" } })).text();
  const sum = (name) => text.split("\n").filter((line) => line.startsWith(name)).reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  return { calls: sum('gudgeon_calls_total{method="tools/call",name="pid"'), workers: sum("gudgeon_workers "), missing: sum("gudgeon_workers_missing{") };
}

if (cluster.isPrimary) {
  const listening = (worker) => new Promise((resolve, reject) => worker.on("message", resolve).on("exit", () => reject(new Error("a worker ended"))));
  const url = await listening(cluster.fork({ ADDRESS: "http://127.0.0.1:0/mcp" }));
  await Promise.all([1, 2].map(() => listening(cluster.fork({ ADDRESS: url }))));
  const answered = [];
  // The kernel chooses a worker for each connection.
  while (new Set(answered).size < 3 && answered.length < 1000) {
    const client = await Client.connect(url, { revision: "2026-07-28" });
    answered.push((await client.callTool("pid")).data);
    await client.close();
  }
  const all = [];
  for (let number = 0; number < 10; number++) all.push(await read(url));
  const workers = Object.values(cluster.workers);
  const killed = workers.find((worker) => worker.process.pid === answered[0]);
  killed.removeAllListeners("exit").process.kill("SIGKILL");
  await once(killed, "exit");
  const rest = [];
  for (let number = 0; number < 10; number++) rest.push(await read(url));
  for (const worker of workers) worker.removeAllListeners("exit").kill();
  console.log(JSON.stringify({ calls: answered.length, all, rest }));
} else {
  const app = new Server("counts").tool("pid", { output: { type: "integer" } }, () => process.pid);
  process.send((await app.listen(process.env.ADDRESS, { metrics: "/metrics" })).url);
}
