/** Aids for tests: `gudgeon/testing`. */

import { type Check, checkValues, oneOf, refuseUnknown, stringsByName, yesOrNo } from "./model/checks.js";
import { ProtocolError } from "./model/errors.js";
import type { ClientOptions, ElicitRequest, SampleRequest } from "./model/types/client.js";
import type { LogLevel, Revision } from "./model/types/components.js";
import type { AnyServer, Principal } from "./model/types/server.js";
import { isObject } from "./model/values.js";
import { coreOf } from "./server/core.js";
import { serveMemory } from "./serving/memory.js";
import { checkClientOptions } from "./client/options.js";
import { keyedCallback } from "./client/questions.js";
import { TestTarget } from "./client/target.js";
import { checkStore } from "./testing/check-store.js";
import { type Faults, Recorder } from "./testing/options.js";
import { tapped } from "./testing/transport.js";
import { Client } from "./client.js";

export { checkStore, type Faults, Recorder };

/** Every revision, oldest first. */
export const eras: readonly Revision[] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/** Options of `connect`: those of a client, and others for tests. */
export interface ConnectOptions extends Omit<ClientOptions, "headers" | "onLog" | "revision"> {
  /** The revision to speak. Default: the newest that the server speaks. */
  revision?: Revision | undefined;
  /** The principal of every call, as `ctx.principal` gives it. Default: none. */
  principal?: Principal | undefined;
  /** The HTTP headers of every call, as `ctx.headers` gives them. Default: none. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Receives the server's log messages. */
  onLog?: ((message: { level: LogLevel; logger: string | undefined; data: unknown }) => void) | undefined;
  /**
   * The answers to the server's questions, by a question's key (its own, or `elicit-1`, `sample-1`, `roots-1` by kind and
   * order) or by its message (of a sampling request: the text of any of its messages; of a request for roots: `roots`).
   * An answer is a value that `onElicit` may return, a string or `SampleResult`, a list of roots, or a function of the
   * request. With this option, even with an empty object, the client declares all three capabilities. An answer that
   * the handler's schema refuses is asked for three times; then the call fails. Default: the client declares none.
   */
  answers?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Discards a waiting handler at every question, so that it runs again from its top with the answers so far. Only
   * 2026-07-28 replays handlers; a tool with `replay: "forbid"` then can't ask. Default: false.
   */
  replay?: boolean | undefined;
  /** Messages that get lost or arrive twice. Default: none. */
  faults?: Faults | undefined;
  /** Writes a transcript. */
  recorder?: Recorder | undefined;
}

/** The options of a client that answer questions. */
const ANSWERING = ["onElicit", "onSample", "roots"] as const;

/** Each option that a client does not have, and what is wrong with a value that it can't have. */
const CHECKS: { readonly [K in Exclude<keyof ConnectOptions, Exclude<keyof ClientOptions, "headers" | "onLog" | "revision">>]-?: Check } = {
  revision: oneOf(...eras),
  principal: (value) =>
    isObject(value) && typeof value["subject"] === "string"
      ? undefined
      : 'must be a principal such as { subject: "ada", scopes: new Set(["read"]), claims: {} }',
  headers: stringsByName,
  onLog: (value) => (typeof value === "function" ? undefined : "must be a function"),
  answers: (value) => (isObject(value) ? undefined : "must be an object of answers by key or message"),
  replay: yesOrNo,
  faults: (value) => (isObject(value) ? undefined : "must be an object such as { drop: 0.1 }"),
  recorder: (value) => (value instanceof Recorder ? undefined : "must be a Recorder, as in new Recorder(path)"),
};

/**
 * An in-memory client for tests, pinned to one revision.
 *
 * @param options - Each is described where it is declared.
 * @throws TypeError when `server` is not a `Server`, or an option is unknown or has a value that it can't have.
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
 * for (const revision of eras) {
 *   const client = await connect(app, { revision });
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
export async function connect(server: AnyServer, options: ConnectOptions = {}): Promise<Client> {
  const place = "connect()";
  const core = coreOf(server, place);
  const { revision = "auto", principal, headers = {}, onLog, answers, replay = false, faults, recorder, ...client } = options;
  checkValues(place, CHECKS, { revision: options.revision, principal, headers: options.headers, onLog, answers, replay: options.replay, faults, recorder });
  checkRest(place, client);
  const unused = answers && ANSWERING.find((name) => client[name] !== undefined);
  if (unused) throw new TypeError(`${place}: answers answers every question, so ${unused} is never called; give one of them`);
  const stateKey = crypto.getRandomValues(new Uint8Array(32));
  const testMode = { replays: replay, stateKey, principal, headers: Object.entries(headers).flat() };
  const target = faults || recorder ? tapped(core, testMode, faults, recorder) : new TestTarget(server.name, (mode) => serveMemory(core, mode), testMode);
  return Client.connect(target as unknown as AnyServer, { ...client, revision, onLog, ...(answers && answering(answers)) });
}

/** Checks options that are those of a client; for unknown ones, names of `connect` itself are suggested first. */
function checkRest(place: string, client: ClientOptions): void {
  try {
    checkClientOptions(place, client);
  } catch (error) {
    for (const name of Object.keys(client)) {
      if (!String(error).includes(`unknown option '${name}'`)) continue;
      const own = caught(() => refuseUnknown(place, Object.keys(CHECKS), { [name]: true }, { era: "revision" }));
      if (String(own).includes("did you mean")) throw own;
    }
    throw error;
  }
}

function caught(run: () => void): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
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

/** The texts, other than its key, by which a question may be answered. */
function messagesOf(request: ElicitRequest | SampleRequest | undefined): string[] {
  if (request === undefined) return ["roots"];
  if ("message" in request) return [request.message];
  return request.messages.map((message) => message.text).reverse();
}
