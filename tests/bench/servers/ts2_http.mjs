/** The official TypeScript SDK 2.x over HTTP, on the Node server that its own adapter is made of: ts2_http.mjs PORT. */
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../.interop/node/package.json", import.meta.url));
const { McpServer, createMcpHandler } = require("@modelcontextprotocol/server");
const { serve } = require("@hono/node-server");
const z = require("zod");

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
});
serve({ fetch: handler.fetch, hostname: "127.0.0.1", port: Number(process.argv[2]) });
