/** The official TypeScript SDK 2.x as a client: ts2.mjs URL legacy|modern IN_FLIGHT SECONDS [BYTES]. */
import { createRequire } from "node:module";

import { commandLine, keepCalling } from "./common.mjs";

const require = createRequire(new URL("../../../.interop/node/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const { url, era, inFlight, seconds, args } = commandLine();
const client = new Client(
  { name: "bench", version: "1.0.0" },
  { versionNegotiation: { mode: era === "legacy" ? "legacy" : "auto" } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await keepCalling(() => client.callTool({ name: "echo", arguments: args }), inFlight, seconds);
await client.close();
