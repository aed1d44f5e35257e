/** Runs a suite's steps with one JavaScript client and prints what came of each, one JSON line a step. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

import { printLine } from "../jobs.mjs";

export { performAll } from "../jobs.mjs";

/** The official packages live in a scratch folder, outside Node's search path. */
export const require = createRequire(new URL("../../../.interop/node/package.json", import.meta.url));

/** The answers of the user, the model and the host. */
export const ANSWERS = JSON.parse(readFileSync(new URL("../answers.json", import.meta.url), "utf8"));
/** The capabilities of a client that answers every kind of question. */
export const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: { listChanged: true } };

/** Changes of lists, in the order in which the tool `grow` makes them. */
export const LISTS = ["tools", "resources", "prompts"];

/** Returns the model's message: a model that is offered tools calls one. */
export const sampled = ({ params }) => (params.tools ? ANSWERS.tool_use : ANSWERS.sample);

/** Returns an SDK's transport to a job's target. */
export function transportTo(target, { Stdio, Http, Sse, WebSocket }) {
  if (Array.isArray(target)) return new Stdio({ command: target[0], args: target.slice(1) });
  const url = new URL(target);
  if (url.protocol === "ws:") return new WebSocket(url);
  return url.pathname.endsWith("/sse") ? new Sse(url) : new Http(url);
}

/** `peer` has one method for each `do` of the suites; what it returns (or throws) is the line's `got`. */
export async function run(peer, steps) {
  for (const step of steps) {
    let got;
    try {
      got = await peer[step.do](step);
    } catch (error) {
      got = { code: typeof error.code === "number" ? error.code : null, error: `${error.name}: ${error.message}` };
    }
    printLine({ check: step.check, got: got ?? null });
  }
}

/** A tool's result as on the wire, in the terms that the suites expect. */
export function describe(result, progress = [], logs = []) {
  const of = (type) => result.content.filter((block) => block.type === type);
  const picture = of("image")[0];
  return {
    is_error: result.isError ?? false,
    structured: result.structuredContent ?? null,
    types: result.content.map((block) => block.type),
    text: of("text").map((block) => block.text).join("\n"),
    image: picture ? [picture.mimeType, Buffer.from(picture.data, "base64").length] : null,
    links: of("resource_link").map((block) => block.uri),
    progress,
    logs: [...logs],
  };
}

/** Waits for what comes beside a reply: notifications may be handed over after it. */
export async function until(condition, ms = 2_000) {
  const end = Date.now() + ms;
  while (!condition() && Date.now() < end) await sleep(10);
}

/** Asks the server's witness tool for its number of cancelled calls until it is above `before`. */
export async function witnessed(call, before, ms = 3_000) {
  const end = Date.now() + ms;
  for (;;) {
    const count = Number((await call()).text) - before;
    if (count || Date.now() > end) return count;
    await sleep(50);
  }
}

/** The two official SDKs differ in how they connect; their client objects are used the same way. */
export class OfficialPeer {
  constructor(client, era, revision, logs, seen) {
    Object.assign(this, { client, era, revision, logs, seen });
  }

  connect = () => ({ revision: this.revision, server: this.client.getServerVersion().name });
  /** Every tool, and how many pages they came on. */
  async tools() {
    const found = [];
    let pages = 0;
    let cursor;
    do {
      // With a cursor this SDK gives a page, without one it may give all of them.
      const page = await this.client.listTools(cursor === undefined ? undefined : { cursor });
      found.push(...page.tools);
      pages += 1;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return { found, pages };
  }

  list_tools = async () => (await this.tools()).found.map((tool) => tool.name).sort();
  pages = async () => (await this.tools()).pages;
  bad_cursor = async () => (await this.client.listTools({ cursor: "made-up" })).nextCursor;
  list_resources = async () => (await this.client.listResources()).resources.map((resource) => resource.uri).sort();
  list_templates = async () =>
    (await this.client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate).sort();
  list_prompts = async () => (await this.client.listPrompts()).prompts.map((prompt) => prompt.name).sort();

  async callTool(params, options) {
    return this.client.callTool(params, options);
  }

  async call(step) {
    const progress = [];
    const params = { name: step.name, arguments: step.arguments ?? {} };
    this.logs.length = 0;
    if (step.logs && this.era === "legacy") await this.client.setLoggingLevel(step.logs);
    const level = step.logs && this.era !== "legacy" ? { "io.modelcontextprotocol/logLevel": step.logs } : undefined;
    if (step.meta || level) params._meta = { ...step.meta, ...level };
    const result = await this.callTool(
      params,
      step.progress ? { onprogress: (at) => progress.push([at.progress, at.total]) } : undefined,
    );
    if (step.logs) await until(() => this.logs.length);
    if (step.progress) await until(() => progress.length && progress.at(-1)[0] === progress.at(-1)[1]);
    return describe(result, progress, this.logs);
  }

  async cancel(step) {
    const witness = step.witness && (() => this.call({ name: step.witness }));
    const before = witness ? Number((await witness()).text) : 0;
    const abort = new AbortController();
    const progress = [];
    const options = { signal: abort.signal, onprogress: (at) => progress.push(at) };
    const call = this.callTool({ name: step.name, arguments: step.arguments }, options);
    const refused = call.then(
      () => false,
      () => true,
    );
    // Progress shows that the handler runs. A server that counts no cancelled calls need not report any.
    await until(() => progress.length, witness ? 5_000 : 300);
    abort.abort();
    if (!(await refused)) throw new Error("the cancelled call returned a result");
    return { cancelled: witness ? await witnessed(witness, before) : null };
  }

  /** Makes the server change until all of these notifications came: a stream may open after the first. */
  async told(wanted) {
    this.seen.clear();
    const all = () => wanted.every((one) => this.seen.has(one));
    for (let tries = 0; tries < 20 && !all(); tries += 1) {
      await this.callTool({ name: "touch", arguments: {} });
      await this.callTool({ name: "grow", arguments: {} });
      await until(all, 300);
    }
    return [...this.seen].sort();
  }

  /** Returns the notifications of a stream with this filter, until the wanted ones have come. */
  async heard(filter, wanted) {
    const listening = await this.client.listen(filter);
    const told = await this.told(wanted);
    await listening.close();
    return told;
  }

  async changes({ uri }) {
    const wanted = [...LISTS, `updated ${uri}`];
    if (this.revision >= "2026-07-28") {
      const lists = { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true };
      return this.heard({ ...lists, resourceSubscriptions: [uri] }, wanted);
    }
    await this.client.subscribeResource({ uri });
    return this.told(wanted);
  }

  filtered = () => this.heard({ promptsListChanged: true }, ["prompts"]);

  async ended() {
    const { closed } = await this.client.listen({ toolsListChanged: true });
    console.error("listening");
    return closed;
  }

  async unsubscribed({ uri }) {
    await this.client.unsubscribeResource({ uri });
    // Messages that were on their way come before these.
    await this.told(LISTS);
    return this.told(LISTS);
  }

  async page_done() {
    this.seen.clear();
    for (const name of ["send", "arrive"]) await this.call({ name });
    await until(() => this.seen.size > 0);
    return [...this.seen];
  }

  async roots_changed() {
    const before = Number((await this.call({ name: "moves" })).text);
    await this.client.sendRootsListChanged();
    return witnessed(() => this.call({ name: "moves" }), before);
  }

  async kept({ uri }) {
    const { ttlMs, cacheScope } = await this.client.readResource({ uri });
    return [ttlMs, cacheScope];
  }

  async lists_kept() {
    const { ttlMs, cacheScope } = await this.client.listTools();
    return [ttlMs, cacheScope];
  }

  read = async (step) => ({ text: (await this.client.readResource({ uri: step.uri })).contents[0].text });
  prompt = async (step) =>
    (await this.client.getPrompt({ name: step.name, arguments: step.arguments })).messages.map((message) => [
      message.role,
      message.content.text,
    ]);
  complete = async (step) =>
    (
      await this.client.complete({
        ref: { type: "ref/prompt", name: step.prompt },
        argument: { name: step.argument, value: step.value },
      })
    ).completion.values;
  ping = async () => (await this.client.ping(), true);
}
