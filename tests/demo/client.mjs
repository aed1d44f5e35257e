/**
 * The demo's client in TypeScript's runtime: `client.mjs --revision R -- <server command…>`.
 * Prints the results as JSON lines, one per step; run.py checks them.
 */
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { Client, McpError } from "gudgeon";

const plan = JSON.parse(readFileSync(new URL("plan.json", import.meta.url), "utf8"));
const [, revision, , command, ...args] = process.argv.slice(2);

/** Times one step and prints the facts that it gives; an error is a fact too, and the next step follows. */
async function step(name, work, calls = 1) {
  const start = performance.now();
  let facts;
  try {
    facts = await work();
  } catch (error) {
    if (!(error instanceof McpError)) throw error;
    facts = { error: `${error.name}: ${error.message}`, code: error.code };
  }
  console.log(JSON.stringify({ step: name, calls, ms: performance.now() - start, ...facts }));
}

let client;
await step("connect", async () => {
  client = await Client.connect({ command, args }, { revision, timeoutMs: 30_000 });
  return { revision: client.revision, server: client.server.name };
}, 0);
if (client === undefined) process.exit(1);

try {
  await run();
} finally {
  await client.close();
}

async function run() {
  const path = plan.document;

  await step("tools", async () => ({ names: (await client.listTools()).map((tool) => tool.name) }));

  await step("reindex", async () => {
    const progress = [];
    const { data } = await client.callTool("reindex", {}, { onProgress: (report) => progress.push(report.progress) });
    return { ...data, progress };
  });

  for (const { query } of plan.searches) {
    await step("search", async () => ({ query, ...(await client.callTool("search", { query, limit: 5 })).data }));
  }

  await step("outline", async () => (await client.callTool("outline", { path })).data);

  await step("unknown", async () => {
    const { isError, text } = await client.callTool("outline", { path: "nowhere.md" }, { throwOnError: false });
    return { is_error: isError, text };
  });

  await step("read", async () => {
    const { mimeType, text } = (await client.readResource(`docs://${path}`)).contents[0];
    return { mime_type: mimeType, text };
  });

  // Has to fail: run.py wants the error.
  await step("outside", async () => ({ text: (await client.readResource(plan.outside)).text }));

  await step("prompt", async () => {
    const { role, text } = (await client.getPrompt("summarize", { path })).messages[0];
    return { role, text };
  });

  for (const target of ["summarize", "docs://{+path}"]) {
    await step("complete", async () => ({ values: (await client.complete(target, "path", plan.typed)).values }));
  }

  await step("quick", async () => {
    const { query } = plan.searches[0];
    const times = [];
    for (let turn = 0; turn < plan.quick; turn += 1) {
      const start = performance.now();
      await client.callTool("search", { query, limit: 1 });
      times.push(performance.now() - start);
    }
    return { times };
  }, plan.quick);
}
