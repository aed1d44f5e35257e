import { questionsIn } from "../model/questions.js";
import { type ResourceResult, resourceResultFromWire } from "../model/results.js";
import { native } from "../native.js";
import { toReply } from "./replies.js";

/** Returns the value of a resource's handler as a client would receive it. */
export function resourceResult(uri: string, mimeType: string | null, value: unknown): ResourceResult {
  if (questionsIn(value)) throw new TypeError(`the resource ${uri} asks its client a question; ctx.readResource() can't read it`);
  const result = native().NativeMiddleware.result("resource", uri, mimeType, ...toReply("resource", value));
  return resourceResultFromWire(JSON.parse(result) as Record<string, unknown>);
}
