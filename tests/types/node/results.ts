/** Types of content, results and errors; each `@ts-expect-error` line must fail. */
import {
  CallTimeout, ConnectFailed, McpError, PromptResult, ProtocolError, ResourceResult, ToolError, ToolResult,
  assistant, cancelled, declined, embed, file, image, resourceLink, text, user,
} from "gudgeon";
import type {
  Audio, AudioContent, Content, Context, EmbeddedResource, ErrorKind, Image, ImageContent, Message, Outcome, SampleResult, Text, TextContent,
} from "gudgeon";
import * as z from "zod";

import { same } from "./same.js";

const picture = image(new Uint8Array(), "png");
same<typeof picture, ImageContent>(true);
// The names that hide the DOM's classes stand for these.
same<[Text, Image, Audio], [TextContent, ImageContent, AudioContent]>(true);
same<Awaited<ReturnType<typeof file>>, EmbeddedResource>(true);
// @ts-expect-error: a like-shaped object is not content
const forged: TextContent = { type: "text", text: "a" };
// @ts-expect-error: bytes, not a path
image("a.png", "png");
// @ts-expect-error: a link has a name
resourceLink({ uri: "a://b" });
void forged;

const said: Message = user(["Look", picture, embed({ uri: "a://b", text: "t" })]);
same<typeof said.content, Content | readonly Content[]>(true);
new PromptResult([said, assistant("Nice"), "Hi"], { description: undefined });
// @ts-expect-error: content belongs into a message
new PromptResult([text("a")]);

const result = new ToolResult<{ n: number }>("a", { structuredContent: { n: 1 }, isError: undefined });
same<typeof result.data, { n: number }>(true);
same<typeof result.content, readonly Content[]>(true);
new ResourceResult(new Uint8Array(), { mimeType: "image/png" });
// @ts-expect-error: results do not change
result.isError = true;

const describe = (content: Content): string => {
  switch (content.type) {
    case "text": return content.text;
    case "image": case "audio": return content.mimeType;
    case "resource_link": return content.name;
    case "resource": return content.resource.uri;
    case "tool_use": return content.id;
    case "tool_result": return content.toolUseId;
    case "other": return String(content.raw["type"]);
  }
};
void describe;

const explain = (error: unknown): void => {
  if (error instanceof ToolError) same<typeof error.result, ToolResult>(true);
  else if (error instanceof ConnectFailed) same<typeof error.exitStatus, number | undefined>(true);
  else if (error instanceof McpError) {
    same<typeof error.kind, ErrorKind>(true);
    same<typeof error.code, number | undefined>(true);
    same<typeof error.hint, string | undefined>(true);
  }
};
void explain;
new ToolError("kept", { k: 1 });
new ProtocolError(-32000, "busy", { after: 1 });
new CallTimeout("late");
// @ts-expect-error: the code comes first
new ProtocolError("busy");
// @ts-expect-error: two different symbols
const mixed: typeof declined = cancelled;
void mixed;

const handler = async (ctx: Context<Map<string, number>>): Promise<void> => {
  same<typeof ctx.lifespan, Map<string, number>>(true);
  const sure = await ctx.elicit("Sure?", z.boolean());
  same<typeof sure, boolean>(true);
  const outcome = await ctx.tryElicit("Why?", z.string());
  same<typeof outcome, Outcome<string>>(true);
  // @ts-expect-error: only an accepted outcome has a value
  outcome.value;
  same<Awaited<ReturnType<typeof ctx.sample>>, SampleResult>(true);
  ctx.server.tool("later", { input: z.object({ a: z.number() }) }, ({ a }) => a);
  // @ts-expect-error: no such argument
  ctx.server.tool("later", { input: z.object({ a: z.number() }) }, ({ b }) => b);
};
void handler;
