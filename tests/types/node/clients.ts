/** Types of clients; each `@ts-expect-error` line must fail. */
import { Client, ClientGroup, ConnectionLost, McpError, Server, ToolResult, cancelled, declined, jsonSchema } from "gudgeon";
import type { Completion, InputRequired, Page, Progress, Root, Target, Tool, Transport } from "gudgeon";
import { clientCredentials, enterpriseManaged, fileStore, jwt, keyringStore, oauth, workloadIdentity } from "gudgeon/auth";
import type { ClientAuth, TokenStore } from "gudgeon/auth";
import { Recorder, connect } from "gudgeon/testing";
import * as z from "zod";

import { same } from "./same.js";

const targets: Target[] = [
  new Server("a"), "https://example.org/mcp", new URL("tcp://localhost:1"), { command: "npx", args: ["-y", "thing"], env: { A: "1" } },
  { url: "https://example.org", headers: { a: "b" } }, {} as Transport,
];
// @ts-expect-error: a command is an object
targets.push(["npx", "-y", "thing"]);

const client = await Client.connect(new Server("a"), {
  revision: ["2025-11-25", "2026-07-28"],
  timeoutMs: undefined,
  onElicit: ({ mode }) => (mode === "url" ? declined : cancelled),
  onSample: async ({ messages }) => messages[0]?.text ?? "",
  roots: async () => ["file:///a", { uri: "file:///b", name: "b" } satisfies Root],
});
await Client.connect("https://example.org/mcp", { ca: "ca.pem", certificate: { cert: new Uint8Array(), key: "key.pem" }, fetch });
await Client.connect("https://example.org/mcp", { fetch: async (url: string, init: RequestInit) => fetch(url, { ...init, redirect: "error" }) });
// @ts-expect-error: a certificate has a key
await Client.connect("https://example.org/mcp", { certificate: { cert: "a.pem" } });
same<typeof client.instructions, string | undefined>(true);

const any = await client.callTool("a");
same<typeof any, ToolResult<unknown>>(true);
const typed = await client.callTool("a", {}, { output: z.object({ n: z.number() }) });
same<typeof typed.data, { n: number }>(true);
const plain = await client.callTool("a", {}, { output: jsonSchema<string[]>({ type: "array" }), signal: undefined });
same<typeof plain.data, string[]>(true);
const literal = await client.callTool("a", {}, { output: { type: "integer" } });
same<typeof literal.data, number>(true);

const round = await client.callToolRound("a", {});
same<typeof round, ToolResult | InputRequired>(true);
const page = await client.listToolsPage();
same<typeof page, Page<Tool>>(true);
const completion = await client.complete("a", "b", "c");
same<typeof completion, Completion>(true);
await client.readResource("a://{b}", { variables: { b: ["c"] }, onProgress: (step: Progress) => void step.total });
// @ts-expect-error: prompts take texts
await client.getPrompt("a", { n: 1 });
// @ts-expect-error: no such level
await client.setLogLevel("loud");
// @ts-expect-error: connect() makes clients
new Client();
// @ts-expect-error: connect() makes groups
new ClientGroup();

const group = await ClientGroup.connect({ mcpServers: { a: { command: "a" } } });
same<ReturnType<typeof group.errors.get>, McpError | undefined>(true);
const tester = await connect(new Server("a"), { revision: "2025-11-25", answers: { "Sure?": true }, recorder: new Recorder("a.txt") });
same<typeof tester, Client>(true);
const explain = (error: unknown): number | undefined => (error instanceof ConnectionLost ? error.exitStatus : undefined);
void explain;

const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
const counted = await tester.callTool({ name: "count", arguments: {} }, { output });
same<typeof counted.data.n, number>(true);
await connect(new Server("a"), { principal: { subject: "ada", scopes: new Set(), claims: {} }, headers: { a: "b" }, onLog: ({ data }) => void data });
// @ts-expect-error: its name is revision
await connect(new Server("a"), { era: "2025-11-25" });

// Clients sign in.
const store: TokenStore = { get: async () => undefined, set: () => {}, delete: async () => {} };
const ways: ClientAuth[] = [
  "oauth", "a token", () => "a token", async () => "a token", oauth(), oauth({ store, onRedirect: async (url) => url, openUrl: () => {} }),
  oauth({ store: fileStore(new URL("file:///tokens.json")), dpop: true, redirectPort: 3000 }), oauth({ store: keyringStore("shelf") }),
  clientCredentials({ clientId: "a", clientSecret: "b" }),
  enterpriseManaged({ identityToken: (): PromiseLike<string> => Promise.resolve("i"), idp: "https://idp.example.com", clientId: "a" }), workloadIdentity({ token: () => "t" }),
];
for (const auth of ways) await Client.connect("http://localhost", { auth });
await ClientGroup.connect({}, { auth: "oauth" });
// @ts-expect-error: it must be one of the ways to sign in
await Client.connect("http://localhost", { auth: {} });
// @ts-expect-error: a verifier is for servers
await Client.connect("http://localhost", { auth: jwt({ issuer: "https://login.example.com" }) });
// @ts-expect-error: no such option
oauth({ clientID: "a" });
