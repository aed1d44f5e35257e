/** Variables of resources that are paths: no URI leads a handler out of its folder. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Client, ResourceNotFound, Server } from "gudgeon";

for (const { template, paths, unchecked: uncheckedPaths, reads, refuses } of JSON.parse(readFileSync(new URL("../resource_paths.json", import.meta.url), "utf8"))) {
  test(`paths in URIs of ${template}`, async () => {
    const app = new Server("files");
    app.resource(template, { paths, uncheckedPaths }, ({ path }) => path);
    const client = await Client.connect(app);
    for (const [uri, path] of Object.entries(reads)) assert.equal((await client.readResource(uri)).text, path);
    for (const uri of refuses) await assert.rejects(client.readResource(uri), ResourceNotFound, uri);
    await client.close();
  });
}

test("a name that is not a variable is refused", () => {
  const app = new Server("files");
  assert.throws(() => app.resource("files://{+path}", { uncheckedPaths: ["paht"] }, ({ path }) => path), /has no variable "paht".*: path/);
  assert.throws(() => app.resource("files://one", { paths: ["path"] }, () => "one"), /its variables: none/);
});
