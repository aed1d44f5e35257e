/** The official TypeScript SDK 1.x as a client: the legacy era only. */
import { OfficialPeer, commandLine, require, run } from "./steps.mjs";

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { CallToolResultSchema, LoggingMessageNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");

class Peer extends OfficialPeer {
  callTool = (params, options) => this.client.callTool(params, CallToolResultSchema, options);
}

const { era, steps, command } = commandLine();
const logs = [];
const transport = new StdioClientTransport({ command: command[0], args: command.slice(1) });
let revision;
// The only place where this SDK tells which revision was agreed on.
transport.setProtocolVersion = (agreed) => void (revision = agreed);
const client = new Client({ name: "ts1", version: "1.0.0" });
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push([params.level, params.data]));
await client.connect(transport);
await run(new Peer(client, era, revision, logs), steps);
await client.close();
