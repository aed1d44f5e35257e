/** Tests of a server: in memory, in every revision, without a process or a port. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cancelled, declined, ToolError } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import { app } from "./bank.js";

for (const era of eras) {
  test(`withdraw in ${era}`, async () => {
    await using client = await connect(app, { revision: era });
    assert.equal((await client.callTool("withdraw", { name: "ada", euros: 30 })).text, "70");
    await assert.rejects(client.callTool("withdraw", { name: "eve", euros: 1 }), /Nobody here is called eve/);
  });
}

// The revisions in which a server may ask.
for (const era of eras.filter((era) => era >= "2025-06-18")) {
  describe(`close_account in ${era}`, () => {
    // With `replay` the handler runs again from its start for every answer.
    for (const replay of [false, true]) {
      test(`the customer answers, replay: ${replay}`, async () => {
        const answers = { "Close ada's account?": true, "Why do you leave?": "the coffee" };
        await using client = await connect(app, { revision: era, answers, replay });
        assert.equal((await client.callTool("close_account", { name: "ada" })).text, "closed, because: the coffee");
        await using other = await connect(app, { revision: era, answers: { sure: false, reason: "-" }, replay }); // by key
        assert.equal((await other.callTool("close_account", { name: "ada" })).text, "kept");
      });
    }

    for (const [no, verb] of [[declined, "declined"], [cancelled, "dismissed"]] as const) {
      test(`who does not answer keeps the account: ${String(no)}`, async () => {
        await using client = await connect(app, { revision: era, answers: { "Close ada's account?": no } });
        await assert.rejects(client.callTool("close_account", { name: "ada" }), (error) => {
          return error instanceof ToolError && error.text === `The user ${verb}: Close ada's account?`;
        });
      });
    }
  });
}
