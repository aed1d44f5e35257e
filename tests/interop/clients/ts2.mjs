/** The official TypeScript SDK 2.x as a client. */
import { OfficialPeer, commandLine, require, run } from "./steps.mjs";

const {
  Client,
  SSEClientTransport: Sse,
  StreamableHTTPClientTransport: Http,
} = require("@modelcontextprotocol/client");
const { StdioClientTransport: Stdio } = require("@modelcontextprotocol/client/stdio");

const { era, steps, transport } = commandLine();
const logs = [];
const client = new Client(
  { name: "ts2", version: "1.0.0" },
  { versionNegotiation: { mode: era === "legacy" ? "legacy" : "auto" } },
);
client.setNotificationHandler("notifications/message", ({ params }) => void logs.push([params.level, params.data]));
await client.connect(transport({ Stdio, Http, Sse }));
await run(new OfficialPeer(client, era, client.getNegotiatedProtocolVersion(), logs), steps);
await client.close();
