/** Aids for tests: `gudgeon/testing`. */
import { Client } from "./client.js";
import { coreOf } from "./core.js";
import { NotSupported } from "./errors.js";
import { serveTransport } from "./serving.js";
import { type Faults, Recorder, tapped } from "./testing-wire.js";
import type { AnyServer, ClientOptions, Revision } from "./types.js";

export { type Faults, Recorder };

/** Every revision, oldest first. */
export const eras: readonly Revision[] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/**
 * An in-memory client, pinned to one revision, for tests.
 *
 * @param options - `era`: the revision (default: the newest); `answers` by what the user or the model is asked;
 *   `faults` and `recorder` of the wire.
 * @throws NotSupported for `replay` and `restartBetweenRounds`: no handler here asks.
 *
 * @example
 * ```ts
 * import { Server } from "gudgeon";
 * import { connect, eras } from "gudgeon/testing";
 *
 * const app = new Server("shelf");
 * app.tool("count", {}, () => 2);
 * for (const era of eras) {
 *   const client = await connect(app, { era });
 *   console.assert((await client.callTool("count")).text === "2");
 *   await client.close();
 * }
 * console.log(eras.length); // 5
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
  const { era, answers, replay, faults, recorder } = options;
  const core = coreOf(server, "connect()");
  if (replay || faults?.restartBetweenRounds) {
    throw new NotSupported(`connect(): ${replay ? "replay" : "faults.restartBetweenRounds"} needs handlers that ask, and in this version of gudgeon none does`);
  }
  const clientOptions: ClientOptions = { revision: era ?? "auto", ...(answers && answering(answers)) };
  if (!faults && !recorder) return Client.connect(server, clientOptions);
  const [ours, theirs] = tapped(faults, recorder);
  const served = serveTransport(core, theirs, 0);
  // The client hears that the wire is gone; here the reason is only kept from being nobody's.
  served.catch(() => undefined);
  return Client.connect(ours, clientOptions);
}

function answering(answers: Readonly<Record<string, unknown>>): ClientOptions {
  const find = (...asked: readonly string[]): unknown => {
    const key = asked.find((one) => Object.hasOwn(answers, one));
    if (key !== undefined) return answers[key];
    const known = Object.keys(answers).map((one) => JSON.stringify(one)).join(", ") || "none";
    throw new Error(`answers has nothing for ${JSON.stringify(asked[0] ?? "")}: it answers ${known}`);
  };
  return {
    onElicit: ({ message }) => find(message),
    onSample: ({ messages }) => find(...messages.map((message) => message.text).reverse()) as string,
  };
}
