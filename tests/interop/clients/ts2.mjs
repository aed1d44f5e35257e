/** The official TypeScript SDK 2.x as a client. */
import { ANSWERS, CAPABILITIES, OfficialPeer, performAll, require, run, sampled, transportTo } from "./steps.mjs";

const {
  Client,
  SSEClientTransport: Sse,
  StreamableHTTPClientTransport: Http,
} = require("@modelcontextprotocol/client");
const { StdioClientTransport: Stdio } = require("@modelcontextprotocol/client/stdio");

/** A schema that takes any answer. */
const ANY = { "~standard": { version: 1, vendor: "interop", validate: (value) => ({ value }) } };

class Peer extends OfficialPeer {
  request = ({ method, params }) => this.client.request({ method, params }, ANY);
}

await performAll(async ({ era: given, target, steps, bare }) => {
  const era = given === "auto" ? "auto" : "legacy";
  const offered = ["auto", "legacy"].includes(given) ? {} : { supportedProtocolVersions: [given] };
  const logs = [];
  const seen = new Set();
  const client = new Client(
    { name: "ts2", version: "1.0.0" },
    { capabilities: bare ? {} : CAPABILITIES, versionNegotiation: { mode: era }, ...offered },
  );
  client.setNotificationHandler("notifications/message", ({ params }) => void logs.push([params.level, params.data]));
  client.setNotificationHandler("notifications/tools/list_changed", () => void seen.add("tools"));
  client.setNotificationHandler("notifications/resources/list_changed", () => void seen.add("resources"));
  client.setNotificationHandler("notifications/prompts/list_changed", () => void seen.add("prompts"));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void seen.add(`updated ${params.uri}`));
  client.setNotificationHandler("notifications/elicitation/complete", () => void seen.add("page done"));
  if (!bare) client.setRequestHandler("elicitation/create", ({ params }) => ANSWERS.forms[params.message]);
  if (!bare) client.setRequestHandler("sampling/createMessage", sampled);
  if (!bare) client.setRequestHandler("roots/list", () => ANSWERS.roots);
  await client.connect(transportTo(target, { Stdio, Http, Sse }));
  await run(new Peer(client, era, client.getNegotiatedProtocolVersion(), logs, seen), steps);
  await client.close();
});
