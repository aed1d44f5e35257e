/** The fixture server of the transcripts in TypeScript's API. Its options are those of README.md. */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import {
  ProtocolError, ResourceNotFound, Server, ToolError, ask, assistant, audio, embed, image, other, resourceLink, user,
} from "gudgeon";

const integer = { type: "integer" };
const string = { type: "string" };
const object = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const taken = (properties) => ({ ...object(properties), additionalProperties: false });
const book = object({ id: integer, title: string });

const text = { type: "string" };
const options = { limit: text, dialects: text, around: { type: "boolean" }, listen: text };

/** Returns the server with these options. */
export function fixture(args) {
  const { values: given } = parseArgs({ args, options });
  const dialects = given.dialects?.split(",");
  const app = new Server("fixture", {
    version: "1.0",
    instructions: "Ask the fixture.",
    pageSize: 100,
    ...(dialects && { dialects }),
    ...(given.limit && { maxMessage: Number(given.limit) }),
  });

  app.tool("add", { description: "Add two numbers.", input: taken({ a: integer, b: integer }), output: integer }, ({ a, b }) => a + b);
  app.tool("echo", { description: "Say it again.", input: taken({ text: string }) }, ({ text }) => text);
  app.tool("book", { description: "Find a book.", input: taken({ id: integer }), output: book }, ({ id }) => ({ id, title: "Dune" }));
  app.tool("content", { description: "Every kind of content." }, () => [
    "Here",
    image(Buffer.from("PNG"), "png"),
    audio(Buffer.from("WAV"), "wav"),
    embed({ uri: "fixture://about", text: "About.", mimeType: "text/plain" }),
    resourceLink({ uri: "fixture://about", name: "about" }),
  ]);
  app.tool("custom", { description: "Content of its own kind." }, () => other({ type: "acme/thing", data: [1] }));
  app.tool("fail", { description: "Fail.", input: taken({ message: string }) }, ({ message }) => {
    throw new ToolError(message);
  });
  app.tool("crash", { description: "Crash." }, () => {
    throw new RangeError("a secret");
  });
  app.tool("refuse", { description: "Refuse." }, () => {
    throw new ProtocolError(1234, "Refused.", { why: "because" });
  });
  app.tool("count", { description: "Count.", input: taken({ steps: integer }) }, async ({ steps }, ctx) => {
    for (let step = 1; step <= steps; step++) await ctx.progress(step, { total: steps, message: `step ${step}` });
    return "done";
  });
  app.tool("say", { description: "Log.", input: taken({ level: string, text: string }) }, async ({ level, text }, ctx) => {
    await ctx.log(level, text, { logger: "fixture" });
    return "said";
  });
  app.tool("wait", { description: "Wait." }, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
  app.tool("confirm", { description: "Ask first." }, async (_, ctx) => ((await ctx.elicit("Sure?", { type: "boolean" })) ? "yes" : "no"));
  app.tool("dream", { description: "Ask the model.", input: taken({ prompt: string }) }, async ({ prompt }, ctx) => {
    const { text } = await ctx.sample(prompt, { maxTokens: 100 });
    return text;
  });
  app.tool("places", { description: "Ask for the roots." }, async (_, ctx) => (await ctx.roots()).map(({ uri }) => uri).join(", "));
  const colours = {
    "~standard": {
      version: 1,
      vendor: "fixture",
      validate: (value) => (typeof value !== "string" || value === "none" ? { issues: [{ message: "no such colour" }] } : { value }),
      jsonSchema: { input: () => string, output: () => string },
    },
  };
  app.tool("interview", { description: "Ask twice." }, (_, ctx) => {
    const [name, colour] = [ask.elicit("Who?", string, { key: "name" }), ask.elicit("Colour?", colours, { key: "colour" })];
    const open = [name, colour].find((question) => ctx.answer(question) === undefined);
    return open ?? `${ctx.answer(name)} likes ${ctx.answer(colour)}`;
  });
  app.tool("hidden", { description: "Hidden.", enabled: false }, () => {});

  app.resource("fixture://about", { name: "about", description: "About the fixture.", mimeType: "text/plain" }, () => "About.");
  app.resource("fixture://bytes", { name: "bytes" }, () => Uint8Array.of(0, 1, 2));
  app.resource("fixture://items/{id}", { name: "items", description: "An item." }, ({ id }) => {
    // Variables are texts here: what is not an integer is refused by hand, as the type hint does it in Python.
    if (!/^-?\d+$/.test(id)) throw new ProtocolError(-32602, "id: expected an integer");
    if (id === "404") throw new ResourceNotFound("fixture://items/404");
    return { id: Number(id) };
  });

  const greeting = { type: "object", properties: { name: string, style: string }, required: ["name"] };
  app.prompt("greet", { description: "Greet somebody.", args: greeting }, ({ name, style = "warm" }) => `Greet ${name}, ${style}.`);
  app.complete("greet", "name", (prefix) => ["Ada", "Alan"].filter((name) => name.startsWith(prefix)));
  app.onRootsChanged(async (ctx) => {
    const roots = await ctx.roots();
    await ctx.log("info", roots.map(({ uri }) => uri).join(", "), { logger: "fixture" });
  });
  app.method("acme/echo", { params: object({ text: string }) }, ({ text }) => ({ echo: text }));
  app.method("acme/signed", { params: object({}) }, () => ({
    resultType: "complete",
    signed: true,
    _meta: { "acme/by": "us", "io.modelcontextprotocol/serverInfo": { name: "else", version: "0" } },
  }));

  if (dialects) {
    app.tool("slow", { description: "Too slow.", timeoutMs: 10 }, () => new Promise(() => {}));
    const changes = {
      tools: () => app.tools.enable("hidden"),
      resources: () => app.resources.disable("fixture://bytes"),
      prompts: () => app.prompts.disable("greet"),
    };
    app.tool("change", { description: "Change something.", input: taken({ what: string }) }, ({ what }) => {
      if (Object.hasOwn(changes, what)) changes[what]();
      else app.notifyUpdated(what);
      return "changed";
    });
    app.resource("fixture://broken", { name: "broken", description: "Broken." }, () => {
      throw new RangeError("a secret");
    });
    app.resource("fixture://search{?q,limit}", { name: "search", description: "Search." }, ({ q, limit = "10" }) => ({ q, limit: Number(limit) }));
    app.prompt("talk", { description: "Two messages." }, () => [user("Hello."), assistant("Hello you.")]);
    app.prompt("lost", { description: "Lost." }, () => {
      throw new RangeError("a secret");
    });
  }

  if (given.around) {
    app.middleware(({ method }, next) => {
      if (method === "completion/complete") throw new ProtocolError(1234, "Not now.");
      return next();
    });
    app.middleware(async (_, next) => {
      const page = await next();
      return { ...page, items: page.items.filter(({ name }) => name === "add" || name === "echo") };
    }, { on: "tools/list" });
    app.middleware(async ({ params }, next) => {
      if (params.name === "fail") throw new ToolError("Refused before it ran.");
      if (params.name === "add") params.arguments.b = 100;
      if (params.name === "greet") params.arguments.style = "loud";
      const result = await next();
      return params.name === "echo" ? `${result}!` : result;
    }, { on: ["tools/call", "prompts/get"] });
    app.middleware(async ({ params }, next) => {
      if (params.uri === "fixture://bytes") throw new ProtocolError(1234, "Not these.", { uri: "fixture://bytes" });
      return `Read: ${await next()}`;
    }, { on: "resources/read" });
  }
  return app;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2);
  const { listen } = parseArgs({ args, options }).values;
  const app = fixture(args);
  if (listen) console.error(listen);
  await (listen ? app.run(listen, { legacySse: true, keepAliveMs: 200, shutdownGraceMs: 500 }) : app.run());
}
