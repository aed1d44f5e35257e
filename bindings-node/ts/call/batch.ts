import type { SpanDescription } from "../model/tracing.js";
import type { Revision } from "../model/types/components.js";

/** The kinds of entries of a batch, the same numbers as in `batch.rs`. */
export const EntryKind = { run: 0, answer: 1, resume: 2, cancel: 3, report: 4, span: 5, end: 6 } as const;
type Kinds = typeof EntryKind;

/** The id of a JSON-RPC request; null for a notification. */
type RequestId = string | number | null;

/**
 * An entry that runs a handler. `slot` is the number of the call in all other entries. `texts` names the members of the
 * input that are large strings: they are empty in the entry, and taken from the native half one by one.
 */
export type Run = readonly [
  kind: Kinds["run"], slot: number, handler: number, input: Record<string, unknown>, revision: Revision, request: RequestId,
  texts?: readonly string[],
];

/** An entry of a batch: work of the native half for the event loop. */
export type Entry =
  | Run
  /** The questions of this number are answered. */
  | readonly [kind: Kinds["answer"], slot: number, number: number]
  /** Continues a handler on behalf of another request. */
  | readonly [kind: Kinds["resume"], slot: number, revision: Revision, request: RequestId]
  /** Cancels a handler. Of a call that was cancelled before its handler began, this is what is left of the entry that runs it. */
  | readonly [kind: Kinds["cancel"], slot: number, ...notRead: unknown[]]
  /** An error in the server's own code, for its log, with the fields of the event. */
  | readonly [kind: Kinds["report"], text: string, fields: Readonly<Record<string, unknown>>]
  /** A request was answered without a handler: its span, the message of its error, and its duration in milliseconds. */
  | readonly [kind: Kinds["span"], span: SpanDescription, error: string | null, milliseconds: number]
  /** The peer has ended its input. */
  | readonly [kind: Kinds["end"]];
