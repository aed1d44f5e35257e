// Paths that clients give, resolved inside a folder, by the table that all languages share.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { Client, resolveInside, Server, ToolError } from "gudgeon";

const table = JSON.parse(readFileSync(new URL("../paths_in_folder.json", import.meta.url), "utf8"));
let root;

before(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gudgeon-inside-")));
  for (const file of table.files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "");
  }
  for (const [link, target] of Object.entries(table.links)) symlinkSync(target, join(root, link));
});
after(() => rmSync(root, { recursive: true }));

test("paths resolve inside the folder", () => {
  for (const [path, inside] of Object.entries(table.resolves)) {
    assert.equal(join(resolveInside(root, path), "."), join(root, inside), path);
  }
});

test("paths that lead out are errors for the model", async () => {
  const app = new Server("files");
  const input = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
  app.tool("read", { input }, ({ path }) => readFileSync(resolveInside(root, path), "utf8"));
  const client = await Client.connect(app);
  assert.equal((await client.callTool("read", { path: "inside/b.txt" })).text, "");
  for (const [problem, paths] of Object.entries(table.refuses)) {
    for (const path of paths) {
      assert.throws(() => resolveInside(root, path), (error) => error instanceof ToolError && error.message.includes(problem), path);
      const result = await client.callTool("read", { path }, { throwOnError: false });
      assert.ok(result.isError && result.text.includes(problem), result.text);
    }
  }
  await client.close();
});

test("a root that is not a folder is an error of the program", () => {
  for (const folder of ["missing", "a/b.txt"]) {
    assert.throws(() => resolveInside(join(root, folder), "a"), { name: "TypeError", message: /^resolveInside: the folder ".+" can't be used: / });
  }
});
