/** Gudgeon's Node client signs in at a server and calls a tool. */
import { Client } from "gudgeon";
import { oauth } from "gudgeon/auth";

import { follow } from "./follow.mjs";

const [url, tool] = process.argv.slice(2);
const client = await Client.connect(url, { auth: oauth({ onRedirect: follow }) });
const tools = await client.listTools();
const result = await client.callTool(tool);
console.log(JSON.stringify({ tools: tools.length, text: result.text }));
await client.close();
