/** Gudgeon's Node client signs in at the servers of its jobs and calls a tool. */
import { Client } from "gudgeon";
import { oauth } from "gudgeon/auth";

import { performAll, printLine } from "../jobs.mjs";
import { follow } from "./follow.mjs";

await performAll(async ({ url, tool }) => {
  const client = await Client.connect(url, { auth: oauth({ onRedirect: follow }) });
  const tools = await client.listTools();
  const result = await client.callTool(tool);
  printLine({ tools: tools.length, text: result.text });
  await client.close();
});
