/** A mounted server in a worker of a cluster; the worker asks itself once, and ends. */
import cluster from "node:cluster";
import { createServer } from "node:http";

import { Server } from "gudgeon";

if (cluster.isPrimary) {
  cluster.fork().on("exit", (code) => process.exit(code));
} else {
  const app = new Server("works", JSON.parse(process.env.OPTIONS));
  const server = createServer(app.node).listen(0, "127.0.0.1", async () => {
    const response = await fetch(`http://127.0.0.1:${server.address().port}/mcp`, { method: "PUT" });
    await app.close();
    process.exit(response.status === 405 ? 0 : 1);
  });
}
