/** docsearch's index in TypeScript against the cases that all three languages share. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { Index, NoSuchDocument } from "../../examples/docsearch/typescript/dist/index.js";

const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8"));
const base = mkdtempSync(join(tmpdir(), "docsearch-"));
const root = join(base, "docs");
let index;

before(async () => {
  for (const [path, lines] of Object.entries(cases.documents)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), lines.join("\n"));
  }
  writeFileSync(join(base, "outside.md"), "# Outside pelican");
  symlinkSync(join(base, "outside.md"), join(root, "outside.md"));
  symlinkSync(join(root, "README.md"), join(root, "link.md"));
  symlinkSync(join(root, "guide"), join(root, "linked"));
  index = await Index.of(root);
});
after(() => rmSync(base, { recursive: true }));

/** A fresh folder with these files in it. */
function folderOf(files) {
  const folder = mkdtempSync(join(base, "folder-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

test("indexes the Markdown files of the folder", () => {
  assert.deepEqual([...index.documents.keys()], cases.paths);
  assert.equal(index.sections, cases.sections);
});

test("reports each file of a small folder", async () => {
  const seen = [];
  await Index.of(root, (...report) => seen.push(report));
  const expected = cases.paths.map((path, i) => [i + 1, cases.paths.length, path]);
  assert.deepEqual(seen, expected);
});

test("reports a large folder about a hundred times", async () => {
  const files = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`${i}.md`, "# x"]));
  const seen = [];
  await Index.of(folderOf(files), (done) => seen.push(done));
  assert.deepEqual(seen, Array.from({ length: 125 }, (_, i) => 2 * i + 2));
});

for (const { query, limit, hits, snippet = "" } of cases.searches) {
  test(`search: ${query}, limit ${limit ?? "unset"}`, () => {
    const found = index.search(query, limit);
    assert.deepEqual(found.map((hit) => [hit.path, hit.title, hit.line]), hits);
    assert.deepEqual(found, found.toSorted((a, b) => b.score - a.score));
    for (const hit of found) {
      assert.ok(hit.score > 0);
      assert.ok(hit.snippet.includes(snippet), hit.snippet);
      const words = hit.snippet.split(" ").length;
      assert.ok(hit.snippet !== "" && words <= 24, `${words} words`);
    }
  });
}

test("any text is a valid query", () => {
  const long = ["word ".repeat(10_000), "w".repeat(100_000), Array.from({ length: 10_000 }, (_, i) => i).join(" ")];
  for (const query of [...cases.hostile_queries, ...long]) assert.ok(Array.isArray(index.search(query)));
});

for (const path of cases.unknown_paths) {
  test(`only indexed documents can be read, not ${JSON.stringify(path)}`, () => {
    assert.throws(() => index.read(path), NoSuchDocument);
    assert.throws(() => index.outline(path), /There is no document/);
  });
}

test("reads what was indexed", () => {
  assert.equal(index.read("guide/café.md"), "# Das Café\nEin Ort für Kaffee.");
});

for (const [path, headings] of Object.entries(cases.outlines)) {
  test(`outline: ${path}`, () => assert.deepEqual(index.outline(path), headings));
}

for (const { typed, paths } of cases.completions) {
  test(`complete: ${typed}`, () => assert.deepEqual(index.complete(typed), paths));
}

test("bytes that are not text", async () => {
  const folder = folderOf({ "bad.md": Buffer.from("# Ibis \xff\nnest", "latin1") });
  mkdirSync(join(folder, "folder.md"));
  const unnamed = Buffer.concat([Buffer.from(folder), Buffer.from("/\xff", "latin1")]);
  mkdirSync(unnamed);
  writeFileSync(Buffer.concat([unnamed, Buffer.from("/unnamed.md")]), "# Ibis");
  const index = await Index.of(folder);
  assert.deepEqual(index.search("ibis").map((hit) => hit.title), ["Ibis \ufffd"]);
  assert.deepEqual([...index.documents.keys()], ["bad.md"]);
});
