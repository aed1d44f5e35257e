/** Four workers of a cluster serve one address; the primary prints the URL and ends when its input does. */
import cluster from "node:cluster";

import { Server } from "gudgeon";

if (cluster.isPrimary) {
  const listening = (worker) => new Promise((resolve, reject) => worker.on("message", resolve).on("exit", () => reject(new Error("a worker ended"))));
  const url = await listening(cluster.fork({ ADDRESS: "http://127.0.0.1:0/mcp" }));
  await Promise.all([1, 2, 3].map(() => listening(cluster.fork({ ADDRESS: url }))));
  // A worker that is killed is replaced.
  for (const worker of Object.values(cluster.workers)) worker.removeAllListeners("exit");
  cluster.on("exit", () => cluster.fork({ ADDRESS: url }));
  console.log(url);
  process.stdin.resume().on("end", () => {
    cluster.removeAllListeners("exit");
    for (const worker of Object.values(cluster.workers)) worker.kill();
  });
} else {
  const app = new Server("works");
  app.tool("pid", { output: { type: "integer" } }, () => process.pid);
  app.tool("ask", { input: { type: "object", properties: { number: { type: "integer" } } } }, async ({ number }, ctx) => {
    const schema = { type: "object", properties: { value: { type: "string" } }, required: ["value"] };
    return (await ctx.elicit(`say ${number}`, schema)).value;
  });
  app.resource("works://top", {}, () => "full");
  app.tool("change", { output: { type: "integer" } }, () => {
    app.notifyUpdated("works://top");
    return process.pid;
  });
  process.send((await app.listen(process.env.ADDRESS)).url);
}
