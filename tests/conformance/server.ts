/** The fixture server in TypeScript: what the official suite asks of a server, and a few tools of ours. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Server, ToolError, ask, audio, embed, image, user, type Context, type JsonSchema, type Question } from "gudgeon";
import { oauthProxy } from "gudgeon/auth";
import { httpOptions, serve } from "./serving.js";

const PIXEL = bytes("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
const SILENCE = bytes("UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=");
// Seen from where the compiled file is.
const SCHEMA_FILE = new URL("../../tests/conformance/json_schema_2020_12.json", import.meta.url);
const SCHEMA = JSON.parse(readFileSync(SCHEMA_FILE, "utf8")) as JsonSchema;
const PAUSE = 50; // milliseconds; official TypeScript clients lose a notification that is read together with the result
const STRING = { type: "string" } as const;

const { values: given } = parseArgs({
  options: {
    stdio: { type: "boolean" },
    http: { type: "string" },
    mount: { type: "string" },
    "page-size": { type: "string" },
    dialects: { type: "string" },
    issuer: { type: "string" }, // of the tokens that callers need
    proxy: { type: "string" }, // the provider behind an OAuth proxy, for the client "proxy"
    options: { type: "string" },
  },
});
const app = new Server("conformance", {
  version: "1.0.0",
  schemaProfile: "full", // keeps the schema of json_schema_2020_12_tool as it is
  pageSize: Number(given["page-size"] ?? 100),
  http: httpOptions(given.options),
  dialects: (given.dialects?.split(",") ?? []) as ("0.7" | "bare")[],
  auth: given.proxy === undefined ? given.issuer : oauthProxy(given.proxy, { clientId: "proxy", clientSecret: "s3cret" }),
});
let started = 0;
let cancelled = 0;
let changes = 0;

function bytes(base64: string): Uint8Array {
  return Buffer.from(base64, "base64");
}

// ── content ─────────────────────────────────────────────────────────────────────────────────────────

app.tool("test_simple_text", { description: "Returns a text." }, () => "This is a simple text response for testing.");
app.tool("test_image_content", { description: "Returns a picture." }, () => image(PIXEL, "png"));
app.tool("test_audio_content", { description: "Returns a sound." }, () => audio(SILENCE, "wav"));
app.tool("test_embedded_resource", { description: "Returns a resource." }, () =>
  embed({ uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." }),
);
app.tool("test_multiple_content_types", { description: "Returns a text, a picture and a resource." }, () => [
  "Multiple content types test:",
  image(PIXEL, "png"),
  embed({ uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' }),
]);
app.tool("test_error_handling", { description: "Fails." }, () => {
  throw new ToolError("This tool intentionally returns an error for testing");
});

// ── notifications of running calls ─────────────────────────────────────────────────────────────────

app.tool("test_tool_with_progress", { description: "Reports progress three times." }, async (_, ctx) => {
  for (const done of [0, 50, 100]) {
    await ctx.progress(done, { total: 100 });
    await sleep(PAUSE);
  }
  return "Progress was reported";
});
app.tool("test_tool_with_logging", { description: "Logs three messages." }, async (_, ctx) => {
  for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    await ctx.info(message);
    await sleep(PAUSE);
  }
  return "Messages were logged";
});
app.tool("test_logging_tool", { description: "Logs one message." }, async (_, ctx) => {
  await ctx.info("heard by those who asked for logs only");
  return "A message was logged";
});
app.tool(
  "test_reconnection",
  { description: "Over legacy HTTP: ends its stream, so that the client comes back for the answer." },
  async (_, ctx) => {
    if (ctx.sessionId !== undefined) await ctx.closeStream({ retryMs: PAUSE });
    await sleep(2 * PAUSE);
    return "Reconnection test completed";
  },
);
app.tool(
  "test_slow",
  {
    description: "Answers after that time; ends early when it is cancelled.",
    input: { type: "object", properties: { ms: { type: "integer" } }, required: ["ms"] },
  },
  async ({ ms }, ctx) => {
    started += 1;
    ctx.signal.addEventListener("abort", () => void (cancelled += 1));
    await sleep(ms, undefined, { signal: ctx.signal });
    return `Took ${ms} ms`;
  },
);
app.tool("test_started", { description: "The number of calls of test_slow that have started." }, () => String(started));
app.tool("test_cancelled", { description: "The number of cancelled calls of test_slow." }, () => String(cancelled));

// ── changes ─────────────────────────────────────────────────────────────────────────────────────────

app.tool("test_trigger_tool_change", { description: "Changes the list of tools." }, () => {
  app.tools.update("test_trigger_tool_change", { meta: { changes: ++changes } });
  return "The list of tools has changed";
});
app.tool("test_trigger_prompt_change", { description: "Changes the list of prompts." }, () => {
  app.prompts.update("test_simple_prompt", { meta: { changes: ++changes } });
  return "The list of prompts has changed";
});
app.tool(
  "test_touch_resource",
  {
    description: "Announces that a resource was updated.",
    input: { type: "object", properties: { uri: STRING }, required: ["uri"] },
  },
  ({ uri }) => {
    app.notifyUpdated(uri);
    return `${uri} was touched`;
  },
);

// ── schemas ─────────────────────────────────────────────────────────────────────────────────────────

app.tool(
  "json_schema_2020_12_tool",
  { description: "Has a schema with keywords of JSON Schema 2020-12.", input: SCHEMA },
  (person) => `Got ${Object.keys(person as object).join(", ")}`,
);
app.tool(
  "test_x_mcp_header",
  {
    description: "Has parameters that clients mirror in headers.",
    input: {
      type: "object",
      properties: {
        region: { type: "string", "x-mcp-header": "Region" },
        priority: { type: "integer", "x-mcp-header": "Priority" },
        urgent: { type: "boolean", "x-mcp-header": "Urgent" },
      },
    },
  },
  ({ region = "none", priority = 0, urgent = false }) =>
    `region ${region}, priority ${priority}, ${urgent ? "urgent" : "not urgent"}`,
);

// ── questions that wait for their answer ────────────────────────────────────────────────────────────

const LETTERS = ["option1", "option2", "option3"];
const TITLED = ["First", "Second", "Third"].map((word, at) => ({ const: `value${at + 1}`, title: `${word} Option` }));

app.tool(
  "test_sampling",
  {
    description: "Asks the client's model.",
    input: { type: "object", properties: { prompt: STRING }, required: ["prompt"] },
  },
  async ({ prompt }, ctx) => `LLM response: ${(await ctx.sample(prompt, { maxTokens: 100 })).text}`,
);

async function elicited(ctx: Context, message: string, properties: Record<string, object>, required: string[] = []): Promise<string> {
  const outcome = await ctx.tryElicit(message, { type: "object", properties, required });
  return `action=${outcome.action}${outcome.action === "accept" ? `, content=${JSON.stringify(outcome.value)}` : ""}`;
}

app.tool(
  "test_elicitation",
  {
    description: "Asks the user.",
    input: { type: "object", properties: { message: STRING }, required: ["message"] },
  },
  async ({ message }, ctx) => {
    const properties = {
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" },
    };
    return `User response: ${await elicited(ctx, message, properties, ["username", "email"])}`;
  },
);
app.tool(
  "test_elicitation_sep1034_defaults",
  { description: "Asks the user with a default for each kind of property." },
  async (_, ctx) => {
    const properties = {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    };
    return `Elicitation completed: ${await elicited(ctx, "Please review your details", properties)}`;
  },
);
app.tool("test_elicitation_sep1330_enums", { description: "Asks the user with each kind of choice." }, async (_, ctx) => {
  const properties = {
    untitledSingle: { type: "string", enum: LETTERS },
    titledSingle: { type: "string", oneOf: TITLED },
    legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: LETTERS } },
    titledMulti: { type: "array", items: { anyOf: TITLED } },
  };
  return `Elicitation completed: ${await elicited(ctx, "Please choose", properties)}`;
});

// ── questions with keys of their own ────────────────────────────────────────────────────────────────

const NAME = { type: "object", properties: { name: STRING }, required: ["name"] } as const;

app.tool("test_missing_capability", { description: "Needs a client that has a model." }, async (_, ctx) => {
  const { text } = await ctx.sample("Say something.", { key: "needed" });
  return text;
});
app.tool("test_streaming_elicitation", { description: "Asks for a confirmation." }, async (_, ctx) =>
  `confirmed: ${await ctx.elicit("Go on?", { type: "boolean" }, { key: "confirm" })}`,
);
app.tool("test_input_required_result_elicitation", { description: "Asks for the user's name." }, async (_, ctx) => {
  const { name } = await ctx.elicit("What is your name?", NAME, { key: "user_name" });
  return `Hello, ${name}!`;
});
app.tool("test_input_required_result_sampling", { description: "Asks the client's model." }, async (_, ctx) => {
  const { text } = await ctx.sample("What is the capital of France?", { key: "capital_question", maxTokens: 100 });
  return text;
});
app.tool("test_input_required_result_list_roots", { description: "Asks for the client's roots." }, async (_, ctx) => {
  const roots = await ctx.roots({ key: "client_roots" });
  return `${roots.length} roots: ${roots.map((root) => root.uri).join(", ")}`;
});
app.tool(
  "test_input_required_result_request_state",
  { description: "Asks, and knows its client again by the state." },
  async (_, ctx) => {
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } as const;
    const { ok } = await ctx.elicit("Please confirm", schema, { key: "confirm" });
    return `state-ok, confirmed: ${ok}`;
  },
);
app.tool(
  "test_input_required_result_multiple_inputs",
  { description: "Asks the user, the model and the client at once." },
  async (_, ctx) => {
    const [name, greeting, roots] = await ctx.ask(
      ask.elicit("What is your name?", NAME, { key: "user_name" }),
      ask.sample("Generate a greeting", { key: "greeting", maxTokens: 50 }),
      ask.roots({ key: "client_roots" }),
    );
    return `${greeting.text} ${name.name}, ${roots.length} roots`;
  },
);
app.tool("test_input_required_result_multi_round", { description: "Asks twice, one after the other." }, async (_, ctx) => {
  const { name } = await ctx.elicit("Step 1: What is your name?", NAME, { key: "step1" });
  const schema = { type: "object", properties: { color: STRING }, required: ["color"] } as const;
  const { color } = await ctx.elicit("Step 2: What is your favorite color?", schema, { key: "step2" });
  return `${name} likes ${color}`;
});
app.tool(
  "test_input_required_result_tampered_state",
  { description: "Asks; a state that was changed is refused." },
  async (_, ctx) => {
    await ctx.elicit("Please confirm", { type: "boolean" }, { key: "confirm" });
    return "state-ok";
  },
);
app.tool(
  "test_input_required_result_capabilities",
  { description: "Asks only what the client declared that it can answer." },
  async (_, ctx) => {
    const known: Record<string, Question<unknown>> = {
      sampling: ask.sample("Say hello.", { key: "model" }),
      elicitation: ask.elicit("Hello?", { type: "boolean" }, { key: "user" }),
    };
    const questions = Object.entries(known).flatMap(([name, question]) => (name in ctx.client.capabilities ? [question] : []));
    const answers = questions.length > 0 ? await ctx.ask(...questions) : [];
    return `${answers.length} answers`;
  },
);

// ── resources ───────────────────────────────────────────────────────────────────────────────────────

app.resource(
  "test://static-text",
  { name: "static_text", description: "A text", mimeType: "text/plain" },
  () => "This is the content of the static text resource.",
);
app.resource("test://static-binary", { name: "static_binary", description: "A picture", mimeType: "image/png" }, () => PIXEL);
app.resource(
  "test://watched-resource",
  { name: "watched_resource", description: "One to subscribe to", mimeType: "text/plain" },
  () => "Watched resource content",
);
app.resource(
  "test://template/{id}/data",
  { name: "template_data", description: "Data by id", mimeType: "application/json" },
  ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
);

// ── prompts ─────────────────────────────────────────────────────────────────────────────────────────

app.prompt("test_simple_prompt", { description: "A prompt without arguments." }, () => "This is a simple prompt for testing.");
app.prompt(
  "test_prompt_with_arguments",
  {
    description: "A prompt with arguments.",
    args: {
      type: "object",
      properties: {
        arg1: { type: "string", description: "First test argument" },
        arg2: { type: "string", description: "Second test argument" },
      },
      required: ["arg1", "arg2"],
    },
  },
  ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
);
app.complete("test_prompt_with_arguments", "arg1", (prefix) =>
  ["test", "testing", "paris", "park", "party"].filter((value) => value.startsWith(prefix)),
);
app.prompt(
  "test_prompt_with_embedded_resource",
  {
    description: "A prompt with a resource.",
    args: {
      type: "object",
      properties: { resourceUri: { type: "string", description: "URI of the resource to embed" } },
      required: ["resourceUri"],
    },
  },
  ({ resourceUri }) => [
    user(embed({ uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." })),
    user("Please process the embedded resource above."),
  ],
);
app.prompt("test_prompt_with_image", { description: "A prompt with a picture." }, () => [
  user(image(PIXEL, "png")),
  user("Please analyze the image above."),
]);
app.prompt("test_input_required_result_prompt", { description: "A prompt that asks for a context." }, async (_, ctx) => {
  const schema = { type: "object", properties: { context: STRING }, required: ["context"] } as const;
  const { context } = await ctx.elicit("What context should the prompt use?", schema, { key: "user_context" });
  return `Use this context: ${context}`;
});

// ── routes ──────────────────────────────────────────────────────────────────────────────────────────

// A host has routes of its own.
if (given.http !== undefined && given.mount === undefined) {
  app.route("POST", "/hooks", async (request) => {
    const { pathname, search } = new URL(request.url);
    const headers = {
      "Content-Type": "application/octet-stream",
      "X-Asked": `${request.method} ${pathname}${search}`,
      "X-Signature": request.headers.get("x-signature") ?? "none",
    };
    return new Response(await request.arrayBuffer(), { status: 201, headers });
  });
  app.route("GET", "/status", () => new Response("fine"));
  app.route("GET", "/broken", () => {
    throw new RangeError("a secret");
  });
  app.route("POST", "/slow", async ({ signal }) => {
    started += 1;
    signal.addEventListener("abort", () => void (cancelled += 1));
    await sleep(600_000, undefined, { signal });
    return new Response();
  });
}

await serve(app, given);
