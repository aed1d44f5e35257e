/** Clients of the pizzeria: calls that succeed, calls that are rejected, and one that is cancelled. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Cancelled, Client, ProtocolError, type Revision, type Target } from "gudgeon";

const isProtocolError = (code: number) => (error: unknown) => error instanceof ProtocolError && error.code === code;

export async function story(target: Target, revision: Revision): Promise<void> {
  await using guest = await Client.connect(target, { revision, clientInfo: { name: "Ada", version: "1.0" } });
  const say = async (tool: string, args: object = {}): Promise<unknown> => (await guest.callTool(tool, args)).data;

  // A kitchen for the whole process; its oven is released, after a failure as well.
  assert.equal(await say("bake", { pizza: "margherita" }), "margherita, 0 ovens free");
  const failed = await guest.callTool("bake", { pizza: "hawaii" }, { throwOnError: false });
  assert(failed.isError && !failed.text.includes("not in this house"));
  assert.equal(await say("ovens"), 1);
  const tools = await guest.listTools();
  assert.deepEqual(Object.keys(tools.find(({ name }) => name === "bake")?.inputSchema.properties ?? {}), ["pizza"]);

  // Middleware, and a rate limit that rejects the third call.
  assert.equal(await say("greet"), "Buongiorno, Ada");
  for (const _ of [1, 2]) {
    const recipe = await guest.getPrompt("recipe", { pizza: "margherita" });
    assert.equal(recipe.messages[0]?.text, "How do I bake a margherita?");
  }
  await assert.rejects(guest.getPrompt("recipe", { pizza: "margherita" }), isProtocolError(429));

  // A timeout, a concurrency limit of one, and a cancelled call.
  const late = await guest.callTool("sourdough", {}, { throwOnError: false });
  assert(late.isError && late.text.includes("took longer"));
  const served = await Promise.all([1, 2, 3, 4, 5].map((table) => say("serve_table", { table })));
  assert.deepEqual(served, [1, 2, 3, 4, 5].map((table) => `table ${table}, 1 at once`));
  const leaving = new AbortController();
  const waiting = guest.callTool("wait_for_table", { name: "Ada" }, { signal: leaving.signal, onProgress: () => leaving.abort() });
  await assert.rejects(waiting, Cancelled);
  while (JSON.stringify(await say("who_left")) !== '["Ada"]') await sleep(10);

  // A tool that is not visible to a caller does not exist for it.
  assert(!tools.some(({ name }) => name === "open_till"));
  await assert.rejects(guest.callTool("open_till"), isProtocolError(-32602));

  // The bar is another server, mounted under a prefix.
  assert.equal(await say("bar_pour", { drink: "wine" }), "a glass of wine");
  const [page, ...others] = await guest.listResources();
  assert(page && others.length === 0);
  assert.equal((await guest.readResource(page.uri)).text, "water, wine");

  const specials = await guest.request("pizzeria/specials", { day: "Friday" }); // the result as on the wire
  assert.equal((specials as Record<string, unknown>)["Friday"], "quattro stagioni");
  await assert.rejects(guest.request("pizzeria/leftovers"), isProtocolError(-32601));

  // Tags enable or disable several tools at once.
  assert.equal(await say("close_kitchen"), "closed");
  const left = (await guest.listTools()).map(({ name }) => name);
  assert(!left.includes("bake") && !left.includes("ovens") && left.includes("greet"));
  await assert.rejects(say("bake", { pizza: "margherita" }), /bake/);
}
