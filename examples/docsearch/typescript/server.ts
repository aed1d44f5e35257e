/** An MCP server that searches a folder of Markdown: `node dist/server.js [folder]`, by default this repository's own. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ProtocolError, ResourceNotFound, Server, type Context } from "gudgeon";
import { Index, NoSuchDocument } from "./index.js";

const FOLDER = resolve(process.argv[2] ?? fileURLToPath(new URL("../../../..", import.meta.url)));
if (!statSync(FOLDER, { throwIfNoEntry: false })?.isDirectory()) {
  console.error(`docsearch: ${FOLDER} is not a folder; give the folder that holds your Markdown files`);
  process.exit(1);
}

const app = new Server("docsearch", {
  version: "1.0.0",
  instructions: "Search the documents first, then read what was found.",
  exposeErrors: [NoSuchDocument],
});

let current: Promise<Index> | undefined;

/** The index of this process: created when it is first needed, replaced by `reindex`. */
function indexFor(ctx: Context, { fresh = false } = {}): Promise<Index> {
  if (current === undefined || fresh) {
    current = Index.of(FOLDER, (done, total, message) => ctx.progress(done, { total, message }));
  }
  return current;
}

const HIT = {
  type: "object",
  properties: {
    path: { type: "string" },
    title: { type: "string" },
    line: { type: "integer" },
    score: { type: "number" },
    snippet: { type: "string" },
  },
  required: ["path", "title", "line", "score", "snippet"],
} as const;
const HEADING = {
  type: "object",
  properties: { level: { type: "integer" }, title: { type: "string" }, line: { type: "integer" } },
  required: ["level", "title", "line"],
} as const;
const PATH = {
  type: "object",
  properties: { path: { type: "string", description: "a document's path, as search returns it" } },
  required: ["path"],
} as const;

app.tool(
  "search",
  {
    description: "Search the documents. Hits are sections, best first.",
    annotations: { readOnly: true },
    input: {
      type: "object",
      properties: {
        query: { type: "string", description: "words to look for; any of them counts" },
        limit: { type: "integer", minimum: 1, maximum: 50, default: 10, description: "at most so many hits" },
      },
      required: ["query"],
    },
    output: { type: "object", properties: { hits: { type: "array", items: HIT } }, required: ["hits"] },
  },
  async ({ query, limit }, ctx) => ({ hits: (await indexFor(ctx)).search(query, limit) }),
);

app.tool(
  "outline",
  {
    description: "List a document's headings with their levels and lines.",
    annotations: { readOnly: true },
    input: PATH,
    output: {
      type: "object",
      properties: { path: { type: "string" }, headings: { type: "array", items: HEADING } },
      required: ["path", "headings"],
    },
  },
  async ({ path }, ctx) => ({ path, headings: (await indexFor(ctx)).outline(path) }),
);

app.tool(
  "reindex",
  {
    description: "Read the folder again, after its files have changed.",
    annotations: { readOnly: true },
    output: {
      type: "object",
      properties: { files: { type: "integer" }, sections: { type: "integer" } },
      required: ["files", "sections"],
    },
  },
  async (_, ctx) => {
    const index = await indexFor(ctx, { fresh: true });
    return { files: index.documents.size, sections: index.sections };
  },
);

const DOCUMENT = { name: "document", description: "A document of the folder.", mimeType: "text/markdown" };
app.resource("docs://{+path}", DOCUMENT, async ({ path }, ctx) => {
  const text = (await indexFor(ctx)).documents.get(path);
  if (text === undefined) throw new ResourceNotFound(`docs://${path}`, new NoSuchDocument(path).message);
  return text;
});

app.prompt("summarize", { description: "Summarize a document.", args: PATH }, async ({ path }, ctx) => {
  const text = (await indexFor(ctx)).documents.get(path);
  if (text === undefined) throw new ProtocolError(-32602, new NoSuchDocument(path).message);
  return `Summarize the document ${path} in five sentences, then list its sections.\n\n${text}`;
});

for (const target of ["summarize", "docs://{+path}"]) {
  app.complete(target, "path", async (typed, _, ctx) => {
    const found = (await indexFor(ctx)).complete(typed);
    return { values: found.slice(0, 100), total: found.length, hasMore: found.length > 100 };
  });
}

await app.run();
