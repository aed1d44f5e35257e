// Calls a server: at an address, or one that it starts with the command that its arguments are.
import { Client } from "gudgeon";

const [target, ...args] = process.argv.slice(2);
const client = await Client.connect(args.length ? { command: target, args } : target);
console.log((await client.callTool("add", { a: 1, b: 2 })).data);
await client.close();
