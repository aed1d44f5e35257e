/** Answers that fit their form, and that the schema refuses all the same: they are asked for again, three times in all. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ask, Client, declined, Server } from "gudgeon";
import { connect } from "gudgeon/testing";
import * as z from "zod";

const string = { type: "string" };
const accept = (value) => ({ action: "accept", content: { value } });
const TOO_OFTEN = { name: "ProtocolError", code: -32602, message: /the client's answer to "How many\?" does not fit, 3 times: they come in pairs/ };

const even = (count) => count % 2 === 0;
const later = async (count) => even(count);
/** The smallest Standard Schema: its check takes a while, or fails at once. */
const standard = (validate) => ({
  "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input: () => ({ type: "integer" }), output: () => ({ type: "integer" }) } },
});
const checked = (value) => (even(value) ? { value } : { issues: [{ message: "they come in pairs" }] });
const schemas = {
  "zod refine": z.int().refine(even, "they come in pairs"),
  "zod async refine": z.int().refine(later, "they come in pairs"),
  "standard schema": standard(checked),
  "async standard schema": standard(async (value) => checked(value)),
};
const isAsync = (kind) => kind.includes("async");

const ERAS = [
  { revision: "2025-11-25" },
  { revision: "2026-07-28" },
  { revision: "2026-07-28", replay: true },
  { revision: "2026-07-28", faults: { restartBetweenRounds: true } },
];

function shop(schema) {
  const app = new Server("shop", { requestStateKeys: ["a secret of all ".repeat(2)] });
  const questions = () => [ask.elicit("Who?", string, { key: "who" }), ask.elicit("How many?", schema, { key: "many" })];
  app.tool("buy", {}, async (_, ctx) => String(await ctx.elicit("How many?", schema)));
  app.tool("tries", {}, async (_, ctx) => {
    const outcome = await ctx.tryElicit("How many?", schema);
    return outcome.action === "accept" ? String(outcome.value) : outcome.action;
  });
  app.tool("several", {}, async (_, ctx) => (await ctx.ask(...questions())).join(" "));
  app.tool("explicit", {}, (_, ctx) => {
    const asked = questions();
    const answers = asked.map((question) => ctx.answer(question));
    return answers.includes(undefined) ? asked : answers.join(" ");
  });
  app.tool("catches", {}, (_, ctx) => ctx.elicit("How many?", schema).catch(({ code }) => String(code)));
  return app;
}

/** The answers to "How many?", one after the other, and the questions. */
function says(...counts) {
  const asked = [];
  const heard = (answer) => (request) => (asked.push(request.message), answer(request));
  return { asked, answers: { "Who?": heard(() => "Ada"), "How many?": heard(() => counts.shift()) } };
}

async function call(name, schema, options) {
  const client = await connect(shop(schema), options);
  try {
    return (await client.callTool(name)).text;
  } finally {
    await client.close();
  }
}

for (const options of ERAS) {
  describe(`${options.revision} ${Object.keys(options)[1] ?? ""}`, () => {
    for (const [kind, schema] of Object.entries(schemas)) {
      test(`${kind}: what it refuses is asked again`, async () => {
        for (const name of ["buy", "tries"]) {
          const { asked, answers } = says(3, 5, 6);
          assert.equal(await call(name, schema, { ...options, answers }), "6");
          assert.deepEqual(asked, ["How many?", "How many?", "How many?"]);
        }
      });

      test(`${kind}: of several only the refused one is asked again`, async () => {
        for (const name of isAsync(kind) ? ["several"] : ["several", "explicit"]) {
          const { asked, answers } = says(3, 6);
          assert.equal(await call(name, schema, { ...options, answers }), "Ada 6");
          assert.deepEqual(asked.sort(), ["How many?", "How many?", "Who?"]);
        }
      });

      test(`${kind}: three invalid answers end in an error with the reason`, async () => {
        const answers = { "Who?": "Ada", "How many?": 3 };
        for (const name of isAsync(kind) ? ["buy", "tries", "several"] : ["buy", "tries", "several", "explicit"]) {
          await assert.rejects(call(name, schema, { ...options, answers }), TOO_OFTEN);
        }
        assert.equal(await call("catches", schema, { ...options, answers }), "-32602");
      });
    }

    test("declining the repeated question is declining", async () => {
      const { answers } = says(3, declined);
      assert.equal(await call("tries", schemas["zod refine"], { ...options, answers }), "decline");
    });

    test("what the schema's own code throws is not asked again", async () => {
      const { asked, answers } = says(3, 6);
      const broken = z.int().refine(() => {
        throw new RangeError("broken");
      });
      await assert.rejects(call("buy", broken, { ...options, answers }), /RangeError/);
      assert.deepEqual(asked, ["How many?"]);
    });
  });
}

test("another server asks again and knows the rest", async () => {
  const able = { onElicit: () => true };
  for (const name of ["several", "explicit"]) {
    const [one, two] = await Promise.all([1, 2].map(() => Client.connect(shop(schemas["zod refine"]), able)));
    const round = async (client, rest, ...keys) => {
      const { questions, state } = await client.callToolRound(name, {}, rest);
      assert.deepEqual(Object.keys(questions), keys);
      return state;
    };
    let state = await round(one, {}, "who", "many");
    state = await round(two, { state, answers: { who: accept("Ada"), many: accept(3) } }, "many");
    // Neither a client that says nothing nor the state brings back what was refused.
    state = await round(one, { state, answers: {} }, "many");
    state = await round(one, { state, answers: { many: accept(3) } }, "many");
    assert.equal((await two.callToolRound(name, {}, { state, answers: { many: accept(4) } })).text, "Ada 4");
    await assert.rejects(two.callToolRound(name, {}, { state, answers: { many: accept(3) } }), TOO_OFTEN);
    await Promise.all([one.close(), two.close()]);
  }
});
