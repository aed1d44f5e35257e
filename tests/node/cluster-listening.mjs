/** Two workers of a cluster listen at one port; the primary calls until both have answered, and ends them. */
import cluster from "node:cluster";

import { Client, Server } from "gudgeon";

if (cluster.isPrimary) {
  const listening = (worker) => new Promise((resolve, reject) => worker.on("message", resolve).on("exit", () => reject(new Error("a worker ended"))));
  const url = await listening(cluster.fork({ ADDRESS: "http://127.0.0.1:0/mcp" }));
  const same = await listening(cluster.fork({ ADDRESS: url }));
  const answered = new Set();
  // The kernel chooses a worker for each connection.
  for (let calls = 0; answered.size < 2 && calls < 1000; calls++) {
    const client = await Client.connect(url, { revision: "2026-07-28" });
    answered.add((await client.callTool("pid")).data);
    await client.close();
  }
  for (const worker of Object.values(cluster.workers)) worker.removeAllListeners("exit").kill();
  console.log(JSON.stringify({ isOneUrl: url === same, workers: answered.size }));
} else {
  const app = new Server("works", { requestStateKeys: ["secret".repeat(6)] }).tool("pid", { output: { type: "integer" } }, () => process.pid);
  process.send((await app.listen(process.env.ADDRESS)).url);
}
