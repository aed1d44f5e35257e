/** Our JavaScript client against servers. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Cancelled, Client, Declined, text } from "gudgeon";

import { performAll, printLine } from "../jobs.mjs";

const ANSWERS = JSON.parse(readFileSync(new URL("../answers.json", import.meta.url), "utf8"));

function connect(era, target, logs) {
  const [command, ...args] = Array.isArray(target) ? target : [];
  return Client.connect(command === undefined ? target : { command, args }, {
    revision: era === "legacy" ? "2025-11-25" : era,
    onElicit: ({ message }) => {
      const { action, content } = ANSWERS.forms[message];
      return { accept: content ?? {}, decline: new Declined(message), cancel: new Cancelled(message) }[action];
    },
    onSample: ({ tools }) => {
      if (tools.length === 0) return ANSWERS.sample.content.text;
      const [said, { id, name, input }] = ANSWERS.tool_use.content;
      return { role: "assistant", text: said.text, content: [text(said.text), { ...text(""), type: "tool_use", id, name, input }], model: ANSWERS.tool_use.model, stopReason: "toolUse" };
    },
    roots: ANSWERS.roots.roots,
    onLog: (message) => void logs.push([message.level, message.data]),
  });
}

function describe(result, progress, logs) {
  const picture = result.content.find((block) => block.type === "image");
  return {
    is_error: result.isError,
    structured: result.structuredContent ?? null,
    data: result.data ?? null,
    types: result.content.map((block) => block.type),
    text: result.text,
    image: picture ? [picture.mimeType, picture.data.length] : null,
    links: result.content.filter((block) => block.type === "resource_link").map((block) => block.uri),
    progress,
    logs: [...logs],
  };
}

const peerOf = (client, logs) => ({
  connect: () => ({ revision: client.revision, server: client.server.name }),
  list_tools: async () => (await client.listTools()).map((tool) => tool.name).sort(),
  list_resources: async () => (await client.listResources()).map((resource) => resource.uri).sort(),
  list_templates: async () => (await client.listResourceTemplates()).map((template) => template.uriTemplate).sort(),
  list_prompts: async () => (await client.listPrompts()).map((prompt) => prompt.name).sort(),

  async call(step) {
    const progress = [];
    logs.length = 0;
    if (step.logs) await client.setLogLevel(step.logs);
    const result = await client.callTool(step.name, step.arguments, {
      throwOnError: false,
      onProgress: (at) => void progress.push([at.progress, at.total]),
    });
    return describe(result, progress, logs);
  },

  async cancel(step) {
    const witnessed = async () => Number((await client.callTool(step.witness)).text);
    const before = step.witness ? await witnessed() : 0;
    const abort = new AbortController();
    let isRunning = false;
    const refused = client.callTool(step.name, step.arguments, { signal: abort.signal, onProgress: () => void (isRunning = true) }).then(
      () => false,
      () => true,
    );
    // Progress shows that the handler runs. A server that counts no cancelled calls need not report any.
    for (let tries = step.witness ? 250 : 15; tries > 0 && !isRunning; tries -= 1) await sleep(20);
    abort.abort();
    if (!(await refused)) throw new Error("the cancelled call returned a result");
    if (!step.witness) return { cancelled: null };
    let count = 0;
    for (let tries = 0; tries < 60 && !count; tries += 1) {
      count = (await witnessed()) - before;
      if (!count) await sleep(50);
    }
    return { cancelled: count };
  },

  changes: async ({ uri }) => {
    const seen = new Set();
    const changes = client.subscribe({ uris: [uri], tools: true, resources: true, prompts: true });
    const listening = (async () => {
      for await (const change of changes) seen.add(change.kind === "updated" ? `updated ${change.uri}` : change.kind);
    })();
    for (let tries = 0; tries < 20 && seen.size < 4; tries += 1) {
      await client.callTool("touch");
      await client.callTool("grow");
      await sleep(50);
    }
    await changes.return();
    await listening;
    return [...seen].sort();
  },

  read: async (step) => ({ text: (await client.readResource(step.uri)).text }),
  prompt: async (step) =>
    (await client.getPrompt(step.name, step.arguments)).messages.map((message) => [message.role, message.text]),
  complete: async (step) => (await client.complete(step.prompt, step.argument, step.value)).values,
  ping: async () => (await client.ping()) >= 0,
});

await performAll(async ({ era, target, steps }) => {
  const logs = [];
  const client = await connect(era, target, logs);
  const peer = peerOf(client, logs);
  for (const step of steps) {
    let got;
    try {
      got = await peer[step.do](step);
    } catch (error) {
      got = { code: error.code ?? null, error: `${error.name}: ${error.message}` };
    }
    printLine({ check: step.check, got });
  }
  await client.close();
});
