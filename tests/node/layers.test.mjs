// The modules of bindings-node/ts import in one direction. The compiler parses the imports, those of types included.
import assert from "node:assert/strict";
import { join, posix } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  isCallExpression, isExportDeclaration, isExternalModuleReference, isImportDeclaration, isImportTypeNode, isStringLiteralLikeNode,
  SyntaxKind,
} from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";

const root = fileURLToPath(new URL("../../", import.meta.url));
const sources = join(root, "bindings-node/ts/");

/** Each folder, with the folders that it may import. */
const FOLDERS = {
  model: [],
  schema: ["model"],
  plan: ["model", "schema"],
  call: ["model", "schema", "plan"],
  server: ["model", "schema", "plan", "call"],
  serving: ["model", "schema", "plan", "call", "server"],
  client: ["model", "schema"],
  testing: ["model", "schema", "plan", "call", "server", "serving", "client"],
};
/** The files at the top, with the folders and files that each may import. Any other file belongs in a folder. */
const TOP = {
  // Loads the native module by its path, which is relative to the top, and passes its log events on; other folders than "model" may import it.
  "native.ts": ["../native.ts", "model"],
  "server.ts": ["model", "schema", "plan", "call", "server", "serving"],
  "client.ts": ["model", "schema", "client"],
  "client-group.ts": ["model", "schema", "client", "client.ts"],
  // The entries of package.json.
  "auth.ts": ["model"],
  "testing.ts": [...Object.keys(FOLDERS), "client.ts"],
  "index.ts": [...Object.keys(FOLDERS), "server.ts", "client.ts", "client-group.ts"],
};

let imports;
before(() => {
  imports = importsOf(join(root, "tsconfig.json"));
});

test("every import points to the left", () => {
  assert.ok(imports.size > 50, `only ${imports.size} files found`);
  assert.deepEqual(wrongImports(imports), []);
});

test("no modules import each other", () => {
  assert.deepEqual(cycleIn(imports), []);
});

test("a violation is found", () => {
  const graph = (entries) => new Map(Object.entries(entries));
  const wrong = (file, ...targets) => wrongImports(graph({ [file]: targets }));
  assert.deepEqual(wrong("model/json.ts", "schema/forms.ts"), ["model/json.ts imports schema/forms.ts"]);
  assert.deepEqual(wrong("client/wire.ts", "call/scheduler.ts"), ["client/wire.ts imports call/scheduler.ts"]);
  assert.deepEqual(wrong("call/context.ts", "server.ts"), ["call/context.ts imports server.ts"]);
  assert.deepEqual(wrong("model/json.ts", "../native.ts"), ["model/json.ts imports ../native.ts"]);
  assert.deepEqual(wrong("model/json.ts", undefined), ["model/json.ts imports a module whose name is computed"]);
  assert.deepEqual(wrong("helpers.ts"), ["helpers.ts is at the top; move it into a folder"]);
  assert.deepEqual(wrong("util/helpers.ts"), ["util/helpers.ts is in an unknown folder"]);
  assert.deepEqual(cycleIn(graph({ "a.ts": ["b.ts"], "b.ts": ["c.ts", "d.ts"], "c.ts": ["b.ts"], "d.ts": [] })), ["b.ts", "c.ts", "b.ts"]);
});

/** Returns the relative imports of each file of a project, by names relative to the sources. */
function importsOf(project) {
  const api = new API({ cwd: root });
  try {
    const [{ program, rootFiles }] = api.updateSnapshot({ openProjects: [project] }).getProjects();
    const names = rootFiles.filter((file) => file.startsWith(sources)).map((file) => file.slice(sources.length));
    const targetsOf = (name) => specifiersIn(program.getSourceFile(sources + name)).flatMap((specifier) => targetOf(name, specifier));
    return new Map(names.map((name) => [name, targetsOf(name)]));
  } finally {
    api.close();
  }
}

/** Returns the specifiers of all imports in a file; undefined for one that is computed. */
function specifiersIn(file) {
  const found = [];
  const visit = (node) => {
    const name = moduleNamed(node);
    if (name) found.push(isStringLiteralLikeNode(name) ? name.text : undefined);
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

/** Returns the expression that names a module, where a node is an import of any kind. */
function moduleNamed(node) {
  if (isImportDeclaration(node) || isExportDeclaration(node)) return node.moduleSpecifier;
  if (isExternalModuleReference(node)) return node.expression;
  if (isImportTypeNode(node)) return node.argument.literal;
  return isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword ? node.arguments[0] : undefined;
}

function targetOf(file, specifier) {
  if (specifier === undefined) return [undefined];
  if (!specifier.startsWith(".")) return [];
  return [posix.join(posix.dirname(file), specifier).replace(/\.js$/, ".ts")];
}

function wrongImports(graph) {
  return [...graph].flatMap(([file, targets]) => {
    const place = placeOf(file);
    const allowed = FOLDERS[place] ?? TOP[place];
    if (!allowed) return [place === file ? `${file} is at the top; move it into a folder` : `${file} is in an unknown folder`];
    const isAllowed = (target) => target === "native.ts" || placeOf(target) === place || allowed.includes(placeOf(target));
    const refused = targets.filter((target) => target === undefined || !isAllowed(target));
    return refused.map((target) => `${file} imports ${target ?? "a module whose name is computed"}`);
  });
}

/** Returns the folder of a file, or the file itself if it is at the top. */
function placeOf(file) {
  return file.startsWith("../") || !file.includes("/") ? file : file.slice(0, file.indexOf("/"));
}

/** Returns the files of a cycle, the first of which is repeated at the end; an empty list if there is none. */
function cycleIn(graph) {
  const done = new Set();
  const visit = (file, path) => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    done.add(file);
    for (const target of graph.get(file) ?? []) {
      const cycle = visit(target, [...path, file]);
      if (cycle.length > 0) return cycle;
    }
    return [];
  };
  for (const file of graph.keys()) {
    const cycle = visit(file, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
