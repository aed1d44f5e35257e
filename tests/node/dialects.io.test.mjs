/** Clients of the two older descriptions of the protocol, over every transport. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ResourceNotFound } from "gudgeon";

import { dialects, shelf } from "./dialect-shelf.mjs";

/** Returns the address of this transport of a server that listens at `url`. */
const at = (url, wire) => ({ http: url, websocket: url.replace("http", "ws"), sse: url.replace("/mcp", "/sse") })[wire];

for (const wire of ["http", "sse", "websocket"]) {
  for (const dialect of dialects) {
    test(`both are spoken over every wire: ${dialect}, ${wire}`, async (t) => {
      const here = await shelf({ dialects }).listen("http://127.0.0.1:0/mcp", { legacySse: true });
      t.after(() => here.close());
      const client = await Client.connect(at(here.url, wire), { revision: dialect });
      t.after(() => client.close());
      assert.equal(client.revision, dialect);
      assert.equal(client.sessionId !== undefined, dialect === "bare" && wire === "http");
      assert.deepEqual((await client.listTools()).map(({ name }) => name), ["add", "spoken", "fail"]);
      assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
      assert.equal((await client.callTool("spoken")).text, dialect);
      const read = await client.readResource("shelf://items/7?lang=de");
      assert.deepEqual(JSON.parse(read.contents[0].text), { id: "7", lang: "de" });
      assert.equal((await client.getPrompt("greet", { name: "Ada" })).messages[0].content.text, "Greet Ada, warm.");
      await assert.rejects(client.readResource("shelf://nothing"), ResourceNotFound);
      await client.ping();
    });
  }
}
