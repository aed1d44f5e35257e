/** An official TypeScript SDK, 1 or 2, signs in at the servers of its jobs and calls a tool: `ts.mjs 1|2`. */
import { createRequire } from "node:module";

import { performAll, printLine } from "../jobs.mjs";
import { follow } from "./follow.mjs";

const require = createRequire(new URL("../../../.interop/node/package.json", import.meta.url));
const version = process.argv[2];
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  version === "2"
    ? require("@modelcontextprotocol/client")
    : {
        ...require("@modelcontextprotocol/sdk/client/index.js"),
        ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...require("@modelcontextprotocol/sdk/client/auth.js"),
      };

await performAll(async ({ url, tool }) => {
  let page;
  const kept = {};
  const authProvider = {
    redirectUrl: "http://127.0.0.1:9/callback",
    clientMetadata: { client_name: `ts ${version}`, redirect_uris: ["http://127.0.0.1:9/callback"] },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    redirectToAuthorization: (url) => void (page = url),
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier,
    saveDiscoveryState: (state) => void (kept.discovery = state),
    discoveryState: () => kept.discovery,
  };

  const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const newClient = () => new Client({ name: `ts ${version}`, version: "1.0.0" });
  const first = transport();
  try {
    await newClient().connect(first);
    throw new Error("the server asks for no token");
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const { searchParams } = new URL(await follow(page));
  await (version === "2"
    ? first.finishAuth(searchParams)
    : first.finishAuth(searchParams.get("code"), searchParams.get("iss") ?? undefined));
  const client = newClient();
  await client.connect(transport());
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: tool, arguments: {} });
  printLine({ tools: tools.length, text: result.content[0].text });
  await client.close();
});
