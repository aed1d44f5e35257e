import { questionsIn } from "../model/questions.js";
import { ResourceResult } from "../model/results.js";
import { officialResourceResult } from "./official-results.js";
import { type ComponentKind, ReplyKind, toReply } from "./replies.js";

/** Returns the value of a resource's handler as a client would receive it. */
export function resourceResult(uri: string, mimeType: string | null, value: unknown): ResourceResult {
  if (value instanceof ResourceResult) return value;
  const official = officialResourceResult(value);
  if (official) return official;
  if (questionsIn(value)) throw new TypeError(`the resource ${uri} asks its client a question; ctx.readResource() can't read it`);
  const [kind, payload] = toReply("resource" satisfies ComponentKind, value);
  const type = mimeType ?? (kind === ReplyKind.json ? "application/json" : kind === ReplyKind.blob ? "application/octet-stream" : "text/plain");
  const held = kind === ReplyKind.blob ? { blob: new Uint8Array(Buffer.from(payload, "base64")) } : { text: payload };
  return new ResourceResult([{ uri, mimeType: type, ...held }]);
}
