/**
 * Plays the stories: `node examples/dist/run.js [story …]`, by default all of them, each in every way.
 *
 * A story is `story(...targets, revision)` in `<story>/typescript/story.ts`. It is given a target for each process in its
 * `processes` (their environments; default: one process) and rejects with an AssertionError where a server surprises it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Command, Revision, Target } from "gudgeon";

export const STORIES = ["asking", "answering", "state", "changes", "results", "around", "errors"];
export const WAYS = ["stdio", "http"] as const;
export const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
export const SERVERS = ["typescript", "python"] as const;
const PATIENCE_MS = 60_000;
const URL_SAID = /http:\/\/127\.0\.0\.1:[1-9]\d*\S*/;

interface Story {
  story(...given: [...Target[], Revision]): Promise<void>;
  processes?: readonly Record<string, string>[];
}

/** Runs one example with its own servers. */
export async function play(name: string, way: (typeof WAYS)[number], revision: Revision, server: (typeof SERVERS)[number]): Promise<void> {
  const { story, processes = [{}] } = (await import(`./${name}/typescript/story.js`)) as Story;
  const command = server === "typescript" ? typescriptServer(name) : pythonServer(name);
  const started: ChildProcess[] = [];
  let timer: NodeJS.Timeout | undefined;
  try {
    const targets: Target[] = [];
    for (const env of processes) {
      targets.push(way === "stdio" ? { ...command, env } : await serve({ ...command, env }, started));
    }
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the story took longer than ${PATIENCE_MS} ms`)), PATIENCE_MS);
    });
    await Promise.race([story(...targets, revision), late]);
  } finally {
    clearTimeout(timer);
    for (const child of started) {
      child.kill();
      if (child.exitCode === null) await once(child, "exit");
    }
  }
}

function typescriptServer(name: string): Command {
  return { command: process.execPath, args: [here(`./${name}/typescript/server.js`)] };
}

function pythonServer(name: string): Command {
  return { command: here("../../.venv/bin/python"), args: [here(`../${name}/python/server.py`)] };
}

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Starts a server on a free port; returns the URL that it writes to stderr. */
async function serve({ command, args = [], env }: Command, started: ChildProcess[]): Promise<string> {
  const child = spawn(command, [...args, "http://127.0.0.1:0/mcp"], {
    env: env === "inherit" ? process.env : { ...process.env, ...env },
    stdio: ["ignore", "inherit", "pipe"],
  });
  started.push(child);
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      const url = URL_SAID.exec(said)?.[0];
      if (url !== undefined) resolve(url);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`${command} ${args.join(" ")} did not say where it serves:\n${said}`)));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const chosen = process.argv.slice(2);
  for (const name of chosen.length > 0 ? chosen : STORIES) {
    for (const way of WAYS) {
      for (const revision of REVISIONS) {
        for (const server of SERVERS) {
          const outcome = await play(name, way, revision, server).then(
            () => "ok",
            (error: unknown) => {
              console.error(error);
              process.exitCode = 1;
              return "FAILED";
            },
          );
          console.log(`${name.padEnd(10)} ${way.padEnd(6)} ${revision}  ${server.padEnd(11)} ${outcome}`);
        }
      }
    }
  }
}
