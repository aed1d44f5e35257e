/** The options of TypeScript's types are those of the core's table. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { before, after, test } from "node:test";

import { API } from "typescript/unstable/sync";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { NativeOptions } = createRequire(import.meta.url)("../../bindings-node/dist/gudgeon.node");

/** The functions that take options, with the file and the declaration whose last name has their type. */
const DECLARED = {
  server: ["model/types/options.ts", /interface ServerOptions\b/],
  tool: ["model/types/options.ts", /interface ToolOptions\b/],
  resource: ["model/types/options.ts", /interface ResourceOptions\b/],
  prompt: ["model/types/options.ts", /interface PromptOptions\b/],
  http: ["model/types/options.ts", /interface HttpOptions\b/],
  client: ["model/types/client.ts", /interface ClientOptions\b/],
  call: ["model/types/client.ts", /interface CallOptions\b/],
  callRound: ["client.ts", /async callToolRound\([^)]*?\boptions\b/],
  readResource: ["client.ts", /async readResource\([^)]*?\boptions\b/],
};

let api;
let project;
before(() => {
  api = new API({ cwd: root });
  [project] = api.updateSnapshot({ openProjects: [`${root}tsconfig.json`] }).getProjects();
});
after(() => api.close());

for (const [taker, [file, declaration]] of Object.entries(DECLARED)) {
  test(`each option of ${taker} has an entry in the core's table, and each entry an option`, () => {
    const declared = membersAt(`${root}bindings-node/ts/${file}`, declaration);
    assert.ok(declared.length > 2);
    assert.deepEqual(declared.sort(), namesOf(taker).sort());
  });
}

/** Returns the names of the members of the type that the last name of a declaration has. */
function membersAt(file, declaration) {
  const found = declaration.exec(readFileSync(file, "utf8"));
  const at = found.index + found[0].lastIndexOf(/\w+$/.exec(found[0])[0]);
  const { checker } = project;
  const type = found[0].startsWith("interface") ? checker.getDeclaredTypeOfSymbol(checker.getSymbolAtPosition(file, at)) : checker.getTypeAtPosition(file, at);
  return checker.getPropertiesOfType(type).map(({ name }) => name);
}

/** Returns all names in the table, which the error about an unknown option lists. */
function namesOf(taker) {
  const [message] = NativeOptions.problem(taker, "here", "", 0);
  return /it takes (.+)$/.exec(message)[1].split(", ");
}
