/** A server for clients of the two older descriptions of the protocol. */
import { Server, ToolError } from "gudgeon";

export const dialects = ["0.7", "bare"];
const integer = { type: "integer" };
const sum = { type: "object", properties: { a: integer, b: integer }, required: ["a", "b"] };
const greeting = { type: "object", properties: { name: { type: "string" }, style: { type: "string" } }, required: ["name"] };

export function shelf(options) {
  const app = new Server("shelf", options);
  app.tool("add", { input: sum, output: integer }, ({ a, b }) => a + b);
  app.tool("spoken", {}, (_, ctx) => ctx.revision);
  app.tool("fail", {}, () => {
    throw new ToolError("Try again.");
  });
  app.resource("shelf://items/{id}{?lang}", {}, ({ id, lang = "en" }) => ({ id, lang }));
  app.prompt("greet", { args: greeting }, ({ name, style = "warm" }) => `Greet ${name}, ${style}.`);
  return app;
}
