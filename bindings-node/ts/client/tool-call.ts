import { refuseUnknown } from "../model/checks.js";
import { isObject } from "../model/values.js";

/** A call of a tool in one object, as other SDKs take it. */
export interface ToolCall {
  name: string;
  arguments?: object | undefined;
}

/** The arguments of `callTool`: the name, the arguments and the options, or the call in one object and the options. */
export type ToolCallArguments<Options> =
  | [name: string, args?: object | undefined, options?: Options | undefined]
  | [call: ToolCall, options?: Options | undefined];

type Separate<Options> = [name: string, args?: object | undefined, options?: Options | undefined];

/** Returns the name, the arguments and the options, however they were given. */
export function toolCall<Options>(given: ToolCallArguments<Options>): Separate<Options> {
  if (!isObject(given[0])) return given as Separate<Options>;
  const [call, options] = given as [call: ToolCall, options?: Options | undefined];
  refuseUnknown("callTool()", ["name", "arguments"], call, { args: "arguments", params: "arguments", _meta: "write { meta } in the options" }, "member");
  if (typeof call.name !== "string") throw new TypeError("callTool(): the name must be a string, as in callTool(\"add\", { a: 1 })");
  return options === undefined ? [call.name, call.arguments ?? {}] : [call.name, call.arguments ?? {}, options];
}
