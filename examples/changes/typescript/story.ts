/** A client that subscribes to changes. The same code works with sessions and in the revision without them. */
import assert from "node:assert/strict";
import { type Change, Client, ProtocolError, type Revision, type Target, ToolError } from "gudgeon";

const COUNTER = "bakery://counter";

/** Waits for this change. Equal changes that are not taken yet are merged; others may come in between. */
async function see(changes: AsyncIterator<Change>, wanted: Change): Promise<void> {
  for (;;) {
    const { value, done } = await changes.next();
    assert(!done, "the subscription must go on");
    if (JSON.stringify(value) === JSON.stringify(wanted)) return;
  }
}

export async function story(target: Target, revision: Revision): Promise<void> {
  await using customer = await Client.connect(target, { revision });
  const names = async (): Promise<string[]> => (await customer.listTools()).map((tool) => tool.name);

  {
    await using changes = await customer.subscribe({ uris: [COUNTER], tools: true }).open();
    assert.equal((await customer.callTool("bake", { bread: "rye", loaves: 2 })).text, "5 rye");
    await see(changes, { kind: "updated", uri: COUNTER });
    assert.equal((await customer.readResource(COUNTER)).text, '{"rye":5}');

    assert((await names()).includes("bake"));
    await customer.callTool("close_oven");
    await see(changes, { kind: "tools" });
    assert(!(await names()).includes("bake"));
    await assert.rejects(customer.callTool("bake", { bread: "rye", loaves: 1 }), (error) => {
      return error instanceof ProtocolError && error.code === -32602 && error.message.includes("bake");
    });
    await customer.callTool("light_oven");
    await see(changes, { kind: "tools" });
    assert((await names()).includes("bake"));
  }

  // Changes of the three lists, in a separate subscription.
  {
    await using changes = await customer.subscribe({ tools: true, resources: true, prompts: true }).open();
    await customer.callTool("new_recipe", { bread: "spelt" });
    const kinds = new Set<string>();
    while (kinds.size < 3) {
      const { value } = await changes.next();
      assert(value && value.kind !== "updated", "nobody subscribed to a resource here");
      kinds.add(value.kind);
    }
    assert.deepEqual([...kinds].sort(), ["prompts", "resources", "tools"]);
    assert.equal((await customer.callTool("slice_spelt")).text, "sliced spelt");
    assert.match((await customer.readResource("bakery://recipes/spelt")).text, /spelt/);
    assert.deepEqual((await customer.listPrompts()).map((prompt) => prompt.name), ["praise", "praise_spelt"]);
    await assert.rejects(customer.callTool("new_recipe", { bread: "spelt" }), (error) => {
      return error instanceof ToolError && error.text === "There is spelt already.";
    });
    await customer.callTool("forget_recipe", { bread: "spelt" });
    await see(changes, { kind: "prompts" });
    assert(!(await names()).includes("slice_spelt"));
  }

  // Leaving the block ends the subscription; a new one reports the changes from then on.
  await customer.callTool("sell", { bread: "rye" });
  {
    await using changes = await customer.subscribe({ uris: [COUNTER] }).open();
    await customer.callTool("sell", { bread: "rye" });
    assert.deepEqual((await changes.next()).value, { kind: "updated", uri: COUNTER });

    // A pending wait ends when the subscription is left.
    const waiting = changes.next();
    await changes.return?.();
    assert.equal((await waiting).done, true);
  }
  assert.throws(() => customer.subscribe({}), /nothing to subscribe to/);
}
