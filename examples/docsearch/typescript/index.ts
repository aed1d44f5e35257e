/** Full-text search over a folder of Markdown, with MiniSearch. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import MiniSearch from "minisearch";

const SKIPPED = new Set(["node_modules", "target", "dist"]); // beside every folder whose name begins with a dot
const MAX_WORDS = 32; // of a query
const SNIPPET_WORDS = 24;

/** The number of files done, the number of all files, and the path of the last one. */
export type Report = (done: number, total: number, path: string) => unknown;

export interface Hit {
  path: string;
  title: string; // of the section
  line: number; // where the section begins
  score: number; // higher is better; compares within one answer only
  snippet: string;
}
export interface Heading {
  level: number;
  title: string;
  line: number;
}
interface Section {
  title: string;
  line: number;
  body: string;
}

export class NoSuchDocument extends Error {
  constructor(path: string) {
    super(`There is no document "${path}": give a path as search returns it, such as "README.md".`);
  }
}

/** The contents of a folder when it was indexed. Documents are looked up by path in it, so no path opens a file. */
export class Index {
  readonly documents = new Map<string, string>();
  readonly #sections: (Section & { path: string; id: number })[] = [];
  readonly #search = new MiniSearch({
    fields: ["title", "body"],
    tokenize: words,
    processTerm: fold,
    searchOptions: { boost: { title: 3 }, bm25: { k: 1.2, b: 0.75, d: 0 } },
  });

  static async of(folder: string, report: Report = () => {}): Promise<Index> {
    const index = new Index();
    const paths = (await markdownFiles(folder)).sort();
    const step = Math.max(1, Math.floor(paths.length / 100));
    for (const [position, path] of paths.entries()) {
      const text = await readFile(join(folder, path), "utf8").catch(() => undefined);
      if (text !== undefined) index.#add(path, text);
      const done = position + 1;
      if (done % step === 0 || done === paths.length) report(done, paths.length, path);
    }
    return index;
  }

  get sections(): number {
    return this.#sections.length;
  }

  #add(path: string, text: string): void {
    this.documents.set(path, text);
    for (const section of splitSections(path, text)) {
      const entry = { ...section, path, id: this.#sections.length };
      this.#sections.push(entry);
      this.#search.add(entry);
    }
  }

  /** Returns the sections with any of the query's words, best first; a word in the title counts three times. */
  search(query: string, limit = 10): Hit[] {
    const wanted = [...new Set(words(query).map(fold))].slice(0, MAX_WORDS);
    const found = this.#search.search(wanted.join(" "));
    found.sort((a, b) => b.score - a.score || a.id - b.id);
    return found.slice(0, limit).flatMap(({ id, score }) => {
      const section = this.#sections[id];
      if (section === undefined) return [];
      const { path, title, line, body } = section;
      return [{ path, title, line, score: Math.round(score * 1e4) / 1e4, snippet: snippet(body, wanted) }];
    });
  }

  outline(path: string): Heading[] {
    return headings(this.read(path));
  }

  read(path: string): string {
    const text = this.documents.get(path);
    if (text === undefined) throw new NoSuchDocument(path);
    return text;
  }

  /** Returns the paths that begin with the given text, then those that contain it elsewhere. */
  complete(typed: string): string[] {
    const wanted = typed.toLowerCase();
    const found = [...this.documents.keys()].filter((path) => path.toLowerCase().includes(wanted));
    const begins = (path: string): number => (path.toLowerCase().startsWith(wanted) ? 0 : 1);
    return found.sort((a, b) => begins(a) - begins(b));
  }
}

/** Paths relative to the folder. Symbolic links are left out: they could lead out of it, or round in circles. */
async function markdownFiles(folder: string, inside = ""): Promise<string[]> {
  const entries = await readdir(join(folder, inside), { withFileTypes: true }).catch(() => []);
  const found: string[] = [];
  for (const entry of entries) {
    const path = inside + entry.name;
    if (entry.isFile() && entry.name.endsWith(".md")) found.push(path);
    if (entry.isDirectory() && !entry.name.startsWith(".") && !SKIPPED.has(entry.name)) {
      found.push(...(await markdownFiles(folder, `${path}/`)));
    }
  }
  return found;
}

/** A section is a heading and what follows up to the next one; text before the first heading goes under the path. */
function splitSections(path: string, text: string): Section[] {
  const lines = text.split("\n");
  const starts = headings(text);
  const bodyOf = (from: number, next: Heading | undefined): string =>
    lines.slice(from, next === undefined ? lines.length : next.line - 1).join("\n");
  const preamble = bodyOf(0, starts[0]);
  const sections = starts.map(({ title, line }, i) => ({ title, line, body: bodyOf(line, starts[i + 1]) }));
  return preamble.trim() === "" ? sections : [{ title: path, line: 1, body: preamble }, ...sections];
}

/** The `#` headings that are not inside a code fence. */
function headings(text: string): Heading[] {
  const found: Heading[] = [];
  let fence = "";
  for (const [position, line] of text.split("\n").entries()) {
    const [, mark = "", rest = ""] = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)/s.exec(line) ?? [];
    const [, hashes = "", after = ""] = /^ {0,3}(#{1,6})[ \t](.*)/s.exec(line) ?? [];
    const title = bareTitle(after);
    if (fence !== "") {
      if (mark.startsWith(fence) && rest.trim() === "") fence = "";
    } else if (mark !== "") {
      fence = mark;
    } else if (title !== "") {
      found.push({ level: hashes.length, title, line: position + 1 });
    }
  }
  return found;
}

/** Removes the spaces around it and closing hashes after a space: `# C#` keeps its hash. */
function bareTitle(text: string): string {
  const title = text.trim();
  let end = title.length;
  while (title[end - 1] === "#") end -= 1;
  const bare = title.slice(0, end);
  return bare === "" || /\s$/.test(bare) ? bare.trimEnd() : title;
}

/** The words of the body around the first that was looked for; its beginning when none is in it. */
function snippet(body: string, wanted: readonly string[]): string {
  const all = body.split(/\s+/).filter((word) => word !== "");
  const match = all.findIndex((word) => words(word).some((part) => wanted.includes(fold(part))));
  const start = Math.max(0, Math.min(match - SNIPPET_WORDS / 2, all.length - SNIPPET_WORDS));
  const end = start + SNIPPET_WORDS;
  return (start > 0 ? "…" : "") + all.slice(start, end).join(" ") + (end < all.length ? "…" : "");
}

/** Quotes, operators and the like are removed, so that any text is a valid query. */
function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** "CAFÉ" and "cafe" are one word. */
function fold(word: string): string {
  return word.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "");
}
