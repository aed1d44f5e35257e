/** A client whose calls all fail, and the errors that it catches. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CallTimeout, Cancelled, cancelled, Client, declined, McpError, NotSupported, ProtocolError, type Revision, type Target,
  ToolError,
} from "gudgeon";

/** Returns the error that the call must fail with. */
async function failure<E extends McpError>(kind: abstract new (...args: never[]) => E, call: Promise<unknown>): Promise<E> {
  const error: unknown = await call.then(() => undefined, (reason: unknown) => reason);
  assert(error instanceof kind, `expected ${kind.name}, got ${String(error)}`);
  return error;
}

export async function story(target: Target, revision: Revision): Promise<void> {
  const modern = revision === "2026-07-28";
  let no: unknown = declined;
  await using customer = await Client.connect(target, { revision, onElicit: () => no });
  const call = (tool: string, args: object = {}) => customer.callTool(tool, args);
  assert.equal((await call("withdraw", { name: "ada", euros: 30 })).data, 70);

  // Errors that the model can correct: it reads their text.
  const unknown = await failure(ToolError, call("withdraw", { name: "eve", euros: 1 }));
  assert.equal(unknown.text, "Nobody here is called eve.");
  assert.equal(unknown.result.meta["bank.example/known"], 2);
  const exposed = await failure(ToolError, call("withdraw", { name: "bob", euros: 30 }));
  assert.equal(exposed.text, "bob has 20 euros");
  const misfit = await failure(ToolError, call("withdraw", { name: "bob", euros: "all" }));
  assert.match(misfit.text, /euros/);
  // The same error as a result, without an exception.
  assert((await customer.callTool("withdraw", { name: "eve", euros: 1 }, { throwOnError: false })).isError);

  // Unexpected exceptions of the server: the client gets their type and a reference id only.
  const ours = await failure(ToolError, call("audit"));
  assert(ours.text.includes("reference") && !ours.text.includes("division"), ours.text);
  const inPrompt = await failure(ProtocolError, customer.getPrompt("reminder", { name: "ada" }));
  assert(inPrompt.code === -32603 && !inPrompt.message.includes("template"), inPrompt.message);
  const late = await failure(ToolError, call("loan"));
  assert.match(late.text, /took longer/);

  // Protocol errors, for the program: code, data, target and phase.
  const closed = await failure(ProtocolError, call("transfer", { euros: 5 }));
  assert.deepEqual([closed.code, closed.data], [4001, { opens: "09:00" }]);
  assert.match(closed.message, /The counter is closed\./);
  const nowhere = await failure(ProtocolError, call("rob"));
  assert(nowhere.code === -32602 && nowhere.message.includes("rob"), nowhere.message);
  assert.equal((await customer.readResource("bank://accounts/bob")).text, "20 euros");
  const lost = await failure(McpError, customer.readResource("bank://accounts/eve"));
  assert.deepEqual([lost.code, lost.data], [modern ? -32602 : -32002, { uri: "bank://accounts/eve" }]);

  // A refusal that the handler does not catch, and a form that is closed.
  const kept = await failure(ToolError, call("close_account", { name: "ada" }));
  assert.equal(kept.text, "The user declined: Close ada's account?");
  no = cancelled;
  const dismissed = await failure(ToolError, call("close_account", { name: "ada" }));
  assert.equal(dismissed.text, "The user dismissed: Close ada's account?");

  // Timeouts and cancellation: the handler ends as well, and cleans up.
  const atTheExpert = async (): Promise<string> => (await customer.readResource("bank://expert")).text;
  await failure(CallTimeout, customer.callTool("appraise", { thing: "vase" }, { timeoutMs: 100 }));
  const leaving = new AbortController();
  const ring = failure(Cancelled, customer.callTool("appraise", { thing: "ring" }, { signal: leaving.signal }));
  while (!(await atTheExpert()).includes("ring")) await sleep(10);
  leaving.abort();
  await ring;
  while ((await atTheExpert()) !== "[]") await sleep(10);

  // A client that can't be asked; the error depends on the revision.
  await using mute = await Client.connect(target, { revision });
  const refused = await failure(McpError, mute.callTool("close_account", { name: "ada" }));
  assert(refused.message.includes("elicitation") && (modern ? refused.code === -32021 : refused instanceof ToolError));
  // A call whose capability the server did not declare fails before it is sent.
  const unable = await failure(NotSupported, mute.complete("reminder", "name", "a"));
  assert.match(unable.message, /complet/);
}
