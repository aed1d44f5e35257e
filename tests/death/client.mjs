/**
 * A client of a server whose tool does not stop. Starts the server, calls the tool, and ends once its input ends.
 *
 * Arguments: how it ends ("close", "exit" or "error"), the tool, the file that the tool writes, and the server's command.
 */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "gudgeon";

const [end, tool, at, command, ...args] = process.argv.slice(2);
const client = await Client.connect({ command, args });
client.callTool(tool, { at }).catch(() => {}); // the server or the client has ended
while (!existsSync(at)) await sleep(10);
console.log("ready");
for await (const _ of process.stdin);
if (end === "close") await client.close();
if (end === "error") throw new Error("the program failed");
process.exit(0);
