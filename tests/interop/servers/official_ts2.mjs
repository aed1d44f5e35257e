/**
 * The fixture server on the official TypeScript SDK 2.x: a modern peer for our clients, and a proof of this harness.
 * `official_ts2.mjs [PORT]`; its HTTP handler gets the Node server that the SDK's own adapter is made of.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { require } from "../clients/steps.mjs";
import { PIXEL } from "./pixel.mjs";

const { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired, inputResponse } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { serve } = require("@hono/node-server");
const z = require("zod");

const text = (value) => ({ content: [{ type: "text", text: value }] });
let seenCancelled = 0;

function makeServer() {
  const server = new McpServer({ name: "interop", version: "1.0.0" }, { capabilities: { logging: {} } });
  server.registerTool(
    "add",
    { inputSchema: z.object({ a: z.int(), b: z.int() }), outputSchema: z.object({ result: z.int() }) },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
  );
  server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, (args) => text(args.text));
  server.registerTool("fail", {}, () => ({ ...text("failed on purpose"), isError: true }));
  server.registerTool("slow", { inputSchema: z.object({ ms: z.int() }) }, async ({ ms }, ctx) => {
    const { signal, _meta: meta } = ctx.mcpReq;
    signal.addEventListener("abort", () => void (seenCancelled += 1));
    for (let progress = 1; progress <= 4; progress += 1) {
      if (meta?.progressToken !== undefined) {
        const params = { progressToken: meta.progressToken, progress, total: 4 };
        await ctx.mcpReq.notify({ method: "notifications/progress", params });
      }
      await sleep(ms / 4, undefined, { signal });
    }
    return text("done");
  });
  server.registerTool("cancelled", {}, () => text(String(seenCancelled)));
  server.registerTool("log", {}, async (ctx) => {
    await ctx.mcpReq.log("info", "hello from the tool");
    return text("logged");
  });
  server.registerTool("picture", {}, () => ({
    content: [{ type: "image", mimeType: "image/png", data: PIXEL.toString("base64") }],
  }));
  server.registerTool("link", {}, () => ({ content: [{ type: "resource_link", uri: "interop://about", name: "about" }] }));
  asking(server);

  const contents = (uri, value) => ({ contents: [{ uri: uri.href, text: value }] });
  server.registerResource("about", "interop://about", {}, (uri) => contents(uri, "A server to test with."));
  server.registerResource("item", new ResourceTemplate("interop://items/{id}", { list: undefined }), {}, (uri, { id }) =>
    contents(uri, `item ${id}`),
  );
  const names = (prefix) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(prefix));
  server.registerPrompt("greet", { argsSchema: z.object({ name: completable(z.string(), names) }) }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Hello, ${name}!` } }],
  }));
  return server;
}

const NAME = z.object({ name: z.string() });
const YES = z.object({ value: z.boolean() });
const name = inputRequired.elicit({ message: "What is your name?", requestedSchema: NAME });

/** Components that ask the client; this SDK calls handlers again with the answers, in every era. */
function asking(server) {
  server.registerTool("lend", {}, ({ mcpReq }) => {
    const known = mcpReq.requestState() ?? acceptedContent(mcpReq.inputResponses, "name", NAME)?.name;
    if (known === undefined) return inputRequired({ inputRequests: { name } });
    const another = acceptedContent(mcpReq.inputResponses, "another", YES);
    if (another) return text(`${known}: ${another.value ? "more" : "enough"}`);
    const question = inputRequired.elicit({ message: "Another book (1)?", requestedSchema: YES });
    return inputRequired({ inputRequests: { another: question }, requestState: known });
  });
  server.registerTool("whim", { inputSchema: z.object({ message: z.string() }) }, ({ message }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "yes");
    if (answer.kind === "elicit") return text(answer.action);
    return inputRequired({ inputRequests: { yes: inputRequired.elicit({ message, requestedSchema: YES }) } });
  });
  server.registerTool("at_once", {}, ({ mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, "name", NAME);
    const capital = inputResponse(mcpReq.inputResponses, "capital");
    const roots = inputResponse(mcpReq.inputResponses, "roots");
    if (given && capital.kind === "sampling" && roots.kind === "roots") {
      return text(`${given.name} ${capital.result.content.text} ${roots.roots[0].uri}`);
    }
    const messages = [{ role: "user", content: { type: "text", text: "What is the capital of France?" } }];
    const model = inputRequired.createMessage({ messages, maxTokens: 10 });
    return inputRequired({ inputRequests: { name, capital: model, roots: inputRequired.listRoots() } });
  });
}

const [port] = process.argv.slice(2);
if (port) serve({ fetch: createMcpHandler(makeServer).fetch, hostname: "127.0.0.1", port: Number(port) });
else serveStdio(makeServer);
