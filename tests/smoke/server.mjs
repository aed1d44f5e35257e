// A server in TypeScript's package: over stdio, or at the address that its argument names.
import { Server } from "gudgeon";

const app = new Server("smoke");
const input = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } };
app.tool("add", { input }, ({ a, b }) => a + b);
await app.run(...process.argv.slice(2));
