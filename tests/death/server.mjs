/**
 * A server whose tools do not stop by themselves.
 *
 * Arguments: "stdio" or a URL, the time for handlers at the end in milliseconds.
 */
import { spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

import { Server } from "gudgeon";

const app = new Server("death");
const input = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };
const began = (at) => writeFileSync(at, "");

app.tool("blocked", { input }, ({ at }) => {
  began(at);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});

app.tool("spin", { input }, ({ at }) => {
  setPriority(5);
  began(at);
  for (;;);
});

app.tool("swallows", { input }, ({ at }) => {
  began(at);
  return new Promise(() => {});
});

app.tool("grandchild", { input }, async ({ at }) => {
  const child = spawn("sleep", ["600"], { stdio: "inherit" });
  writeFileSync(`${at}.part`, String(child.pid));
  renameSync(`${at}.part`, at);
  await new Promise((resolve) => child.on("exit", resolve));
});

app.tool("fail", { input: { type: "object", properties: { size: { type: "integer" } } } }, ({ size }) => {
  throw new RangeError("x".repeat(size));
});

await app.run(process.argv[2], { shutdownGraceMs: Number(process.argv[3]) });
