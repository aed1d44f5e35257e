// A server that goes on after the end of its input: `upstream-stays.mjs FILE` writes its process id.
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const serverInfo = { name: "stays", version: "1" };
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const answer = method === "initialize"
    ? { result: { protocolVersion: "2025-06-18", capabilities: {}, serverInfo } }
    : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
writeFileSync(process.argv[2], String(process.pid));
setInterval(() => {}, 1_000);
