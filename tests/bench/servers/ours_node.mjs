/** Gudgeon in Node. */
import { Server } from "gudgeon";

const app = new Server("bench");
const input = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
app.tool("echo", { input }, ({ text }) => text);
await app.run();
