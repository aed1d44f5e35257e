/** Aids for tests: `gudgeon/testing`. */

import { keyedCallback } from "./client-questions.js";
import { TestTarget } from "./client-target.js";
import { Client } from "./client.js";
import { isObject } from "./content.js";
import { coreOf } from "./core.js";
import { ProtocolError } from "./errors.js";
import { type Faults, Recorder } from "./testing-options.js";
import { tapped } from "./testing-wire.js";
import type { AnyServer, ClientOptions, ElicitRequest, Revision, SampleRequest } from "./types.js";

export { type Faults, Recorder };

/** Every revision, oldest first. */
export const eras: readonly Revision[] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/**
 * An in-memory client for tests, pinned to one revision.
 *
 * @param options - `era`: the revision. Default: the newest that the server speaks.
 *
 *   `answers`: what is answered, by a question's key (its own, or `elicit-1`, `sample-1`, `roots-1` by kind and order) or
 *   its message (a model's: any message's text; for roots: `roots`): what `onElicit` may give, a text or SampleResult, a
 *   list of roots, or a function of the request. With it, even an empty one, the client declares that it answers
 *   everything. What the handler's schema refuses is asked for three times, and then an error that says why. Default: it
 *   answers nothing.
 *
 *   `replay`: whether handlers that wait are thrown away at every question, so that each runs again from its top with the
 *   answers so far. Only 2026-07-28 has rounds to replay between; a tool with `replay: "forbid"` can't ask then.
 *   Default: false.
 *
 *   `faults`: how bad the wire is. Default: perfect. `recorder`: writes a transcript.
 * @throws TypeError where this is no `Server`, there is no such era, or an option is of another type.
 *
 * Spec: Base Protocol › Patterns › Multi round-trip requests.
 *
 * @example
 * ```ts
 * import { Server } from "gudgeon";
 * import { connect, eras } from "gudgeon/testing";
 * import * as z from "zod";
 *
 * const app = new Server("shelf");
 * app.tool("count", {}, () => 2);
 * for (const era of eras) {
 *   const client = await connect(app, { era });
 *   console.assert((await client.callTool("count")).text === "2");
 *   await client.close();
 * }
 * let runs = 0;
 * app.tool("remove", {}, async (_, ctx) => {
 *   runs += 1;
 *   return (await ctx.elicit("Delete a?", z.boolean())) ? "gone" : "kept";
 * });
 * const client = await connect(app, { answers: { "Delete a?": false }, replay: true });
 * console.log((await client.callTool("remove")).text, runs); // kept 2
 * await client.close();
 * ```
 */
export async function connect(
  server: AnyServer,
  options: {
    era?: Revision | undefined;
    answers?: Readonly<Record<string, unknown>> | undefined;
    replay?: boolean | undefined;
    faults?: Faults | undefined;
    recorder?: Recorder | undefined;
  } = {},
): Promise<Client> {
  const { era, answers, replay = false, faults, recorder } = options;
  const core = coreOf(server, "connect()");
  if (era !== undefined && !eras.includes(era)) {
    throw new TypeError(`connect(), era: one of ${eras.join(", ")}, not ${JSON.stringify(era)}`);
  }
  if (answers !== undefined && !isObject(answers)) throw new TypeError("connect(), answers: an object of answers by key or message");
  if (recorder !== undefined && !(recorder instanceof Recorder)) throw new TypeError("connect(), recorder: a Recorder, as in new Recorder(path)");
  const testMode = { replays: Boolean(replay), stateKey: crypto.getRandomValues(new Uint8Array(32)) };
  const target = faults || recorder ? tapped(core, testMode, faults, recorder) : new TestTarget(server, testMode);
  return Client.connect(target as unknown as AnyServer, { revision: era ?? "auto", ...(answers && answering(answers)) });
}

function answering(answers: Readonly<Record<string, unknown>>): ClientOptions {
  const answer = keyedCallback((key, request) => {
    const messages = messagesOf(request);
    const name = [key, ...messages].find((one) => one !== undefined && Object.hasOwn(answers, one));
    if (name !== undefined) {
      const given = answers[name];
      return typeof given === "function" ? (given as (request: unknown) => unknown)(request) : given;
    }
    const asked = JSON.stringify(messages[0] ?? "") + (key === undefined ? "" : ` (key ${JSON.stringify(key)})`);
    const known = Object.keys(answers).map((one) => JSON.stringify(one)).join(", ") || "none";
    throw new ProtocolError(-32603, `answers has nothing for ${asked}: it answers ${known}`);
  });
  return { onElicit: answer, onSample: answer, roots: answer };
}

/** What a question may be answered by beside its key. */
function messagesOf(request: ElicitRequest | SampleRequest | undefined): string[] {
  if (request === undefined) return ["roots"];
  if ("message" in request) return [request.message];
  return request.messages.map((message) => message.text).reverse();
}
