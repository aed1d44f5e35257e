/** The official TypeScript SDK 2.x as a client. */
import { OfficialPeer, commandLine, require, run } from "./steps.mjs";

const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const { era, steps, command } = commandLine();
const logs = [];
const client = new Client(
  { name: "ts2", version: "1.0.0" },
  { versionNegotiation: { mode: era === "legacy" ? "legacy" : "auto" } },
);
client.setNotificationHandler("notifications/message", ({ params }) => void logs.push([params.level, params.data]));
await client.connect(new StdioClientTransport({ command: command[0], args: command.slice(1) }));
await run(new OfficialPeer(client, era, client.getNegotiatedProtocolVersion(), logs), steps);
await client.close();
