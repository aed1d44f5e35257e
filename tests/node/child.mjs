/** A server in a child process, spoken to frame by frame. */
import { spawn } from "node:child_process";
import { once } from "node:events";

export const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

export class Child {
  frames = [];
  stderr = "";
  #held = "";
  #changed = () => {};
  #hasEnded = false;

  /** `source` is the body of a module in which `Server` and the rest of gudgeon are imported as `g`. */
  constructor(source, { stdio = ["pipe", "pipe", "pipe"] } = {}) {
    const code = `import * as g from "gudgeon"; const { Server } = g;\n${source}`;
    this.process = spawn(process.execPath, ["--input-type=module", "-e", code], {
      cwd: new URL("../..", import.meta.url),
      stdio,
    });
    this.process.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (this.#held + text).split("\n");
      this.#held = lines.pop();
      for (const line of lines) this.frames.push(JSON.parse(line));
      this.#changed();
    });
    this.process.stderr.setEncoding("utf8").on("data", (text) => {
      this.stderr += text;
      this.#changed();
    });
    // At "exit" there may be output that was not read yet.
    this.exited = once(this.process, "close").then(([code, signal]) => {
      this.#hasEnded = true;
      this.#changed();
      return { code, signal };
    });
  }

  send(...messages) {
    const lines = messages.map((message) => (typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message })));
    this.process.stdin.write(lines.map((line) => `${line}\n`).join(""));
  }

  call(id, name, args = {}, meta) {
    this.send({ id, method: "tools/call", params: { name, arguments: args, ...(meta && { _meta: meta }) } });
  }

  async initialize(protocolVersion = "2025-11-25", capabilities = {}) {
    this.send({ id: "init", method: "initialize", params: { protocolVersion, capabilities, clientInfo: { name: "test", version: "1" } } });
    const reply = await this.reply("init");
    this.send({ method: "notifications/initialized" });
    return reply;
  }

  reply(id) {
    return this.frame((frame) => frame.id === id && !("method" in frame));
  }

  async frame(fits, milliseconds = 60_000) {
    const end = Date.now() + milliseconds;
    for (;;) {
      const found = this.frames.find(fits);
      if (found) return found;
      if (Date.now() > end || this.#hasEnded) {
        throw new Error(`no such frame; there were ${JSON.stringify(this.frames)}; exit ${this.process.exitCode}; stderr: ${this.stderr}`);
      }
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, 200);
        this.#changed = () => (clearTimeout(timer), resolve());
      });
    }
  }

  /** Ends its input and gives how it ended. */
  async end() {
    this.process.stdin.end();
    const timer = setTimeout(() => this.process.kill("SIGKILL"), 60_000);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }
}

/** Runs a test with a server that is stopped in any case. */
export async function withServer(source, test, options) {
  const child = new Child(source, options);
  try {
    await test(child);
  } finally {
    child.process.kill("SIGKILL");
  }
}
