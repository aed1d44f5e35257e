/** A text that was cut amid a character holds half a surrogate pair, which UTF-8 has no bytes for: it arrives as U+FFFD. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ProtocolError, Server, ToolError, ToolResult } from "gudgeon";

const CUT = "a😀".slice(0, 2);
const SEEN = "a\ufffd";

const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

const app = new Server("cuts", { suspendedTtlMs: 60_000 });
app.tool("fail", {}, () => {
  throw new ToolError(CUT);
});
app.tool("refuse", {}, () => {
  throw new ProtocolError(-32000, CUT, { of: CUT });
});
app.tool("checked", { output: TEXT }, () => ({ text: CUT }));
app.tool("whole", {}, () => new ToolResult([CUT], { structuredContent: { [CUT]: CUT } }));
app.tool("escaped", {}, () => ({ text: "\\ud83d \\\\ud83d", pair: "😀" }));
app.tool("echo", { input: TEXT }, ({ text }) => text);
app.tool("ask", {}, (_, ctx) => ctx.elicit(`${CUT}?`, { type: "string" }));
app.tool("keep", {}, (_, ctx) => ctx.step("cut", () => ({ text: CUT })));
app.prompt("review", { args: TEXT }, ({ text }) => [text]);
app.complete("review", "text", (prefix) => [prefix]);

for (const revision of ["2026-07-28", "2025-06-18"]) {
  test(`${revision}: in messages of both sides, at any place`, async () => {
    const asked = [];
    const client = await Client.connect(app, { revision, onElicit: ({ message }) => (asked.push(message), CUT) });
    try {
      const call = (name, args) => client.callTool(name, args, { throwOnError: false });
      assert.equal((await call("fail")).text, SEEN);
      await assert.rejects(client.callTool("refuse"), { code: -32000, message: SEEN, data: { of: SEEN } });
      assert.deepEqual((await call("checked")).structuredContent, { text: SEEN });
      assert.deepEqual((await call("whole")).structuredContent, { [SEEN]: SEEN });
      assert.deepEqual((await call("escaped")).structuredContent, { text: "\\ud83d \\\\ud83d", pair: "😀" });
      assert.equal((await call("echo", { text: CUT })).text, SEEN);
      assert.equal((await call("ask")).text, SEEN);
      assert.deepEqual(asked, [`${SEEN}?`]);
      assert.deepEqual((await call("keep")).structuredContent, { text: SEEN });
      assert.equal((await client.getPrompt("review", { text: CUT })).messages[0].text, SEEN);
      assert.deepEqual((await client.complete("review", "text", CUT)).values, [SEEN]);
      await assert.rejects(client.callTool(CUT), ProtocolError);
    } finally {
      await client.close();
    }
  });
}
