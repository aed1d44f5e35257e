/** Clients in memory, and the end of their process. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

test("an in-memory client that is not closed keeps no process alive; a call and a close do", () => {
  const run = (source) => {
    const code = `
      import { Client, Server } from "gudgeon";
      import { connect } from "gudgeon/testing";
      const close = async () => { await new Promise((resolve) => setTimeout(resolve, 20).unref()); console.log("left"); };
      const app = new Server("s", { lifespan: () => ({ value: 1, close }) });
      app.tool("slow", {}, () => new Promise((resolve) => setTimeout(resolve, 50, "answered").unref()));
      ${source}
    `;
    const options = { cwd: new URL("../..", import.meta.url), encoding: "utf8", timeout: 60_000 };
    return execFileSync(process.execPath, ["--input-type=module", "-e", code], options);
  };
  assert.equal(run(`await Client.connect(app); console.log("end");`), "end\n");
  assert.equal(run(`const client = await Client.connect(app); await client.listTools(); console.log("end");`), "end\n");
  assert.equal(run(`await connect(app, { faults: { drop: 0 } }); console.log("end");`), "end\n");
  const closing = (client) => run(`const client = await ${client}; console.log((await client.callTool("slow")).text); await client.close(); console.log("end");`);
  assert.equal(closing("Client.connect(app)"), "answered\nleft\nend\n");
  // Here the server stops after its client.
  assert.deepEqual(closing("connect(app, { faults: { drop: 0 } })").split("\n").sort(), ["", "answered", "end", "left"]);
});

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`an in-memory client with callbacks that is not closed keeps no process alive, in ${revision}`, () => {
    const code = `
      import { Client, Server } from "gudgeon";
      import { connect } from "gudgeon/testing";
      const app = new Server("s");
      app.tool("ask", {}, async (_, ctx) => {
        await new Promise((resolve) => setTimeout(resolve, 20).unref());
        return (await ctx.elicit("Well?", { type: "string" })) + " in " + (await ctx.roots())[0].uri;
      });
      app.onRootsChanged(async (ctx) => console.log("roots:", (await ctx.roots())[0].uri));
      const later = (value) => new Promise((resolve) => setTimeout(resolve, 20, value).unref());
      const options = { roots: () => later(["file:///a"]), onElicit: () => later("yes"), onListChanged: (kind) => console.log("changed:", kind) };
      const client = await Client.connect(app, { ...options, revision: "${revision}" });
      console.log((await client.callTool("ask")).text);
      const other = await connect(app, { revision: "${revision}", faults: { drop: 0 }, answers: { "Well?": "no", roots: ["file:///b"] } });
      console.log((await other.callTool("ask")).text);
      app.tool("late", {}, () => 1);
      ${revision < "2026" ? 'client.setRoots(["file:///c"]);' : ""}
    `;
    const options = { cwd: new URL("../..", import.meta.url), encoding: "utf8", timeout: 60_000 };
    const output = execFileSync(process.execPath, ["--input-type=module", "-e", code], options).trimEnd().split("\n");
    assert.deepEqual(output.slice(0, 2), ["yes in file:///a", "no in file:///b"]);
    // Nothing waits for these messages but the callbacks.
    assert.deepEqual(output.slice(2).sort(), ["changed: tools", ...(revision < "2026" ? ["roots: file:///c"] : [])]);
  });
}
