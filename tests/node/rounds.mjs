// Rounds of questions by hand (2026-07-28): a tool that asks, and clients that answer.
import assert from "node:assert/strict";

import { Client, Server } from "gudgeon";

export const boolean = { type: "boolean" };
export const string = { type: "string" };
export const accept = (value) => ({ action: "accept", content: { value } });
export const REFUSED = { code: -32602, message: /Invalid or expired requestState/ };
/** The client answers by hand, and so declares only what it could. */
export const able = { onElicit: () => true, onSample: () => "hi", roots: ["file:///a"] };

/** Connects to each server; all are let go in the end. */
export async function using(servers, use) {
  const clients = [];
  try {
    for (const server of servers) clients.push(await Client.connect(server, able));
    await use(...clients);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** A promise and its resolver. */
export function later() {
  let resolve;
  const promise = new Promise((resolver) => (resolve = resolver));
  return Object.assign(promise, { resolve });
}

/** A server with the tool `deletes`, and what its runs have seen. */
export function deleting(options, tool = {}) {
  const seen = { runs: 0, charged: 0, ended: [], unwound: later() };
  const app = new Server("deletes", options);
  app.tool("deletes", tool, async (_, ctx) => {
    const run = ++seen.runs;
    try {
      const receipt = await ctx.step("charge", () => `r${++seen.charged}`);
      const sure = await ctx.elicit("Sure?", boolean);
      const why = await ctx.elicit("Why?", string);
      return `${sure} ${why} ${receipt} run ${run}`;
    } catch (error) {
      seen.ended.push({ error, aborted: ctx.signal.aborted });
      throw error;
    } finally {
      seen.unwound.resolve();
    }
  });
  return { app, seen };
}

/** Asks for the tool, and answers its first question. */
export async function firstRound(client, tool = "deletes") {
  const round = await client.callToolRound(tool, {});
  assert.deepEqual(Object.keys(round.questions), ["elicit-1"]);
  return { state: round.state, answers: { "elicit-1": accept(true) } };
}
