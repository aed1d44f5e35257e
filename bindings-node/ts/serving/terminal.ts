import { fstatSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, relative } from "node:path";

const STDIN = 0;

/** Writes to stderr that a server waits for a client if standard input is a terminal, where it would look hung. */
export function hintInTerminal(server: string): void {
  if (!isTerminal()) return;
  const { argv0, argv, execArgv } = process;
  const words = [basename(argv0), ...execArgv, ...(argv[1] === undefined ? [] : [relative("", argv[1])]), ...argv.slice(2)];
  const isFile = words.length === 2 && /\.[cm]?[jt]s$/.test(words[1] ?? "");
  const target = (isFile ? words.slice(1) : ["--", ...words]).map((word) => (/^[\w./:=@-]+$/.test(word) ? word : JSON.stringify(word))).join(" ");
  console.error(
    `${server}: serving over stdio, waiting for an MCP client on standard input; to try it, run ` +
      `\`npx gudgeon inspect ${target}\`; Ctrl-C ends it`,
  );
}

/** node:tty is slow to load: most servers have a pipe here, and do without. */
function isTerminal(): boolean {
  try {
    if (!fstatSync(STDIN).isCharacterDevice()) return false;
  } catch {
    return false;
  }
  const { isatty } = createRequire(import.meta.url)("node:tty") as typeof import("node:tty");
  return isatty(STDIN);
}
