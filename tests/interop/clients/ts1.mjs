/** The official TypeScript SDK 1.x as a client: the legacy era only. */
import { ANSWERS, CAPABILITIES, OfficialPeer, performAll, require, run, sampled, transportTo } from "./steps.mjs";

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport: Sse } = require("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport: Stdio } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport: Http } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { WebSocketClientTransport: WebSocket } = require("@modelcontextprotocol/sdk/client/websocket.js");
const {
  CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ElicitationCompleteNotificationSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema, ResultSchema, ToolListChangedNotificationSchema,
} = require("@modelcontextprotocol/sdk/types.js");

class Peer extends OfficialPeer {
  callTool = (params, options) => this.client.callTool(params, CallToolResultSchema, options);
  request = ({ method, params }) => this.client.request({ method, params }, ResultSchema);
}

await performAll(async ({ era, target, steps, bare }) => {
  const logs = [];
  const seen = new Set();
  const transport = transportTo(target, { Stdio, Http, Sse, WebSocket });
  // This SDK offers its newest revision only.
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize" && era !== "legacy") message.params.protocolVersion = era;
    return send(message, options);
  };
  let revision;
  // The only place where this SDK shows the negotiated revision.
  const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (agreed) => {
    revision = agreed;
    setProtocolVersion?.(agreed);
  };
  const client = new Client({ name: "ts1", version: "1.0.0" }, { capabilities: bare ? {} : CAPABILITIES });
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push([params.level, params.data]));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void seen.add("tools"));
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void seen.add("resources"));
  client.setNotificationHandler(PromptListChangedNotificationSchema, () => void seen.add("prompts"));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void seen.add(`updated ${params.uri}`));
  client.setNotificationHandler(ElicitationCompleteNotificationSchema, () => void seen.add("page done"));
  if (!bare) client.setRequestHandler(ElicitRequestSchema, ({ params }) => ANSWERS.forms[params.message]);
  if (!bare) client.setRequestHandler(CreateMessageRequestSchema, sampled);
  if (!bare) client.setRequestHandler(ListRootsRequestSchema, () => ANSWERS.roots);
  await client.connect(transport);
  await run(new Peer(client, "legacy", revision, logs, seen), steps);
  await client.close();
});
