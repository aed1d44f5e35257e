/** Every transcript of a client, against a server that plays it: frames, results, and the arguments of callbacks. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, McpError } from "gudgeon";

const folder = fileURLToPath(new URL("../client_transcripts/", import.meta.url));
const files = readdirSync(folder).filter((file) => file.endsWith(".txt")).sort();
const PATIENCE_MS = 60_000;

/** The text `<any>` stands for any text. */
function equal(expected, actual) {
  if (expected === "<any>") return typeof actual === "string";
  if (typeof expected !== "object" || expected === null) return expected === actual;
  if (typeof actual !== "object" || actual === null || Array.isArray(expected) !== Array.isArray(actual)) return false;
  const names = Object.keys(expected);
  return names.length === Object.keys(actual).length && names.every((name) => Object.hasOwn(actual, name) && equal(expected[name], actual[name]));
}

class Queue {
  #items = [];
  #takers = [];

  get isEmpty() {
    return this.#items.length === 0;
  }

  put(item) {
    const taker = this.#takers.shift();
    if (taker) taker(item);
    else this.#items.push(item);
  }

  take() {
    return this.isEmpty ? new Promise((resolve) => this.#takers.push(resolve)) : Promise.resolve(this.#items.shift());
  }
}

/** The transcript's end of a client's connection: `said` holds the messages from the client, `hears` those to it. */
class Wire {
  said = new Queue();
  hears = new Queue();

  receive() {
    return this.hears.take();
  }

  async send(message) {
    this.said.put(message);
  }

  async close() {
    this.said.put(undefined);
    this.hears.put(undefined);
  }
}

class Player {
  told = new Queue();
  acts = [];

  constructor(revision) {
    this.revision = revision;
  }

  tell(what, value) {
    this.told.put([what, value]);
  }

  /** The actions of a client's user. */
  async act(name, given, signal) {
    const { client } = this;
    switch (name) {
      case "connect":
        this.wire = new Wire();
        this.client = await Client.connect(this.wire, {
          revision: this.revision,
          clientInfo: { name: "c", version: "1" },
          roots: ["file:///a"],
          onSample: () => "Sheep.",
          onLog: ({ level, logger, data }) => this.tell("log", [level, logger ?? null, data]),
          onListChanged: (kind) => this.tell("list_changed", kind),
        });
        return this.client.revision;
      case "list_tools":
        return (await client.listTools()).map((tool) => [tool.name, tool.inputSchema]);
      case "list_resources":
        return (await client.listResources()).map((resource) => [resource.uri, resource.name]);
      case "list_resource_templates":
        return (await client.listResourceTemplates()).map((template) => [template.uriTemplate, template.name]);
      case "list_prompts":
        return (await client.listPrompts()).map((prompt) => [prompt.name, prompt.arguments.map((arg) => [arg.name, arg.required])]);
      case "call_tool": {
        const onProgress = ({ progress, total }) => this.tell("progress", [progress, total]);
        const called = await client.callTool(given.name, given.arguments, { throwOnError: false, onProgress, signal });
        return [called.data, called.isError];
      }
      case "read_resource":
        return (await client.readResource(given)).contents.map((content) => content.text);
      case "get_prompt":
        return (await client.getPrompt(given.name, given.arguments)).messages.map((message) => [message.role, message.content.text]);
      case "ping":
        return (await client.ping()) >= 0;
      case "set_roots":
        client.setRoots(given);
        return null;
      case "subscribe": {
        const changes = await client.subscribe({ uris: [given] }).open();
        this.listen(changes);
        return null;
      }
      default:
        throw new Error(`what is ${name}?`);
    }
  }

  async listen(changes) {
    for await (const { uri } of changes) this.tell("updated", uri);
  }

  begin(name, given) {
    const giving = new AbortController();
    const outcome = this.act(name, given, giving.signal).catch((error) => {
      // The message of an error begins with the server.
      if (error instanceof McpError) return { code: error.code ?? null, message: error.message.replace(`${error.target}: `, "") };
      if (giving.signal.aborted) return undefined;
      throw error;
    });
    this.acts.push({ giving, outcome });
  }

  async take(mark) {
    if (mark === "*") return this.told.take();
    if (mark === "=") return this.acts.shift().outcome;
    const message = await this.wire.said.take();
    return message && JSON.parse(message);
  }

  /** The client says nothing more, and nobody waits. */
  async end() {
    assert.deepEqual(this.acts, []);
    await this.client.close();
    assert.equal(await this.wire.said.take(), undefined);
    assert(this.told.isEmpty);
  }
}

async function replay(file) {
  const lines = readFileSync(folder + file, "utf8").split("\n");
  const player = new Player(lines.find((line) => line.startsWith("revision: ")).slice("revision: ".length));
  for (const [index, line] of lines.entries()) {
    const [, mark, rest] = /^(\S+) (.*)$/.exec(line) ?? [];
    const [, name, value] = /^(\S+) ?(.*)$/.exec(rest ?? "") ?? [];
    if (mark === "!" && name === "cancel") player.acts.shift().giving.abort();
    else if (mark === "!") player.begin(name, value ? JSON.parse(value) : undefined);
    else if (mark === "<") player.wire.hears.put(rest);
    else if (mark === ">" || mark === "=" || mark === "*") {
      const expected = mark === "*" ? [name, JSON.parse(value)] : JSON.parse(rest);
      const actual = await player.take(mark);
      assert(equal(expected, actual), `line ${index + 1}, expected\n${rest}\ngot\n${JSON.stringify(actual)}`);
    }
  }
  await player.end();
}

describe("transcripts of clients", () => {
  for (const file of files) test(file, { timeout: PATIENCE_MS }, () => replay(file));
});

test("the transcripts are there", () => assert(files.length >= 5));
