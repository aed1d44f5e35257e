import { debuglog } from "node:util";

import type { Refusal } from "./asking.js";
import { CallContext } from "./context.js";
import type { ServerCore } from "./core.js";
import { runInContext } from "./current.js";
import { failureJson } from "./failures.js";
import { toJson } from "./json.js";
import { sleep, until } from "./maybe.js";
import type { NativeShell } from "./native.js";
import { officialResourceResult } from "./official-results.js";
import type { Plan } from "./plan.js";
import { questionsIn } from "./questions.js";
import { type ComponentKind, ReplyKind, toReply } from "./reply.js";
import { ResourceResult } from "./results.js";
import { isPromise } from "./schema.js";
import { inSpan, tracing } from "./tracing.js";
import type { Principal, Revision } from "./types.js";

/** For those who look closely: written to stderr where NODE_DEBUG names "gudgeon". */
const log = debuglog("gudgeon");
/** A text this long, or with line breaks, goes beside the lines. */
const LONG = 4_096;
/** Replies that go out before their turn ends. */
const MANY = 1 << 20;
/** Kinds of lines beyond those of `ReplyKind`. */
const TEXT_BESIDE = 6;
const FAILURE = 7;
const QUESTIONS = 8;
/** How long handlers have to end after they were told to. */
const UNWIND_MS = 500;
/** How long the peer has to read the last replies. */
const DRAIN_MS = 1_000;

type Run = readonly [slot: number, handler: number, input: Record<string, unknown>, revision: Revision, id: string | number | null];
type Answer = readonly [slot: number, number: number, result: Readonly<Record<string, unknown>> | null, refusal: Refusal | null];
type Resume = readonly [slot: number, revision: Revision, id: string | number | null];
type Entry = Run | Answer | Resume | readonly [cancelled: number] | readonly [report: string] | readonly [detail: string, _: 0] | readonly [];

/** The program around a connection that knows who calls: the host of a mounted server, or a test. */
export interface Host {
  /** Takes what has come beside batches. */
  collect?(): void;
  /** Returns the principal of a call; `request` is the number of the host's HTTP request, where there is one. */
  principalOf(request: number | undefined): Principal | undefined;
}

/** What is served, seen by handlers: takes batches, runs them in place, and hands all replies of a turn back at once. */
export class Connection {
  readonly shell: NativeShell;
  /** Resolves when the peer will send no more. */
  readonly ended: Promise<void>;
  readonly #running = new Map<number, CallContext>();
  readonly #core: ServerCore;
  #end!: () => void;
  #isStarted = false;
  #isScheduled = false;
  /** Calls whose handlers have asked in this turn of the event loop. */
  readonly #asking = new Set<number>();
  /** Handlers that were told to end and have not. */
  #ending = 0;
  #lines = "";
  #texts: string[] = [];
  /** Of legacy sessions, by the numbers that facts give their conversations. */
  readonly #sessions = new Map<number, Map<string, unknown>>();
  readonly #host: Host | undefined;

  constructor(core: ServerCore, open: (wake: () => void) => NativeShell, host?: Host) {
    this.#core = core;
    this.#host = host;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.shell = open(() => this.drain());
  }

  /** Handlers run from now on; what needs none was answered before. */
  start(): void {
    this.#isStarted = true;
    this.drain();
  }

  /** Finishes what is in flight, within the grace, and ends the stream. */
  async stop(graceMs: number): Promise<void> {
    this.shell.pause();
    await until(() => this.shell.underWay() === 0 && this.#lines === "", graceMs);
    this.shell.cancelAll();
    this.#isStarted = true;
    this.drain();
    await until(() => this.#running.size === 0 && this.#ending === 0, UNWIND_MS);
    this.#flush();
    await until(() => this.shell.unwritten() === 0, DRAIN_MS);
    this.shell.close();
  }

  /** Waits until the peer has read enough. */
  room(hasRoom: boolean): Promise<void> {
    return hasRoom ? DONE : this.#waitForRoom();
  }

  async readResource(ctx: CallContext, uri: string): Promise<ResourceResult> {
    return this.#core.readResource(ctx, uri);
  }

  /** This call's handler has asked; what it asks in this turn of the event loop goes out together. */
  wait(slot: number): void {
    if (this.#asking.size === 0) setImmediate(this.#sendAsked);
    this.#asking.add(slot);
  }

  readonly #sendAsked = (): void => {
    const slots = [...this.#asking];
    this.#asking.clear();
    if (this.#host) for (const slot of slots) this.#running.get(slot)?.keepFacts();
    this.shell.waits(slots);
    this.drain();
  };

  async #waitForRoom(): Promise<void> {
    while (!this.shell.hasRoom()) await sleep(5);
  }

  /** What a legacy session keeps as long as it lives. */
  session(conversation: number): Map<string, unknown> {
    const known = this.#sessions.get(conversation);
    if (known) return known;
    for (const ended of this.shell.takeEndedConversations()) this.#sessions.delete(ended);
    const session = new Map<string, unknown>();
    this.#sessions.set(conversation, session);
    return session;
  }

  /** Returns the principal of a call that came with this request of the host. */
  principalOf(request: string | undefined): Principal | undefined {
    return this.#host?.principalOf(request === undefined ? undefined : Number(request));
  }

  /** Does what there is to do. */
  drain(): void {
    if (this.#isStarted) this.#runBatch();
    this.#host?.collect?.();
  }

  #runBatch(): void {
    const batch = this.shell.takeBatch();
    if (batch === null) return;
    let hasPending = false;
    for (const entry of JSON.parse(batch) as Entry[]) {
      if (entry.length === 5) hasPending = this.#run(entry) || hasPending;
      else if (entry.length === 4) this.#running.get(entry[0])?.answered(entry[1], entry[2], entry[3]);
      else if (entry.length === 3) this.#running.get(entry[0])?.resume(entry[1], entry[2] ?? "");
      else if (entry.length === 2) log("%s", entry[0]);
      else if (entry.length === 0) this.#end();
      else if (typeof entry[0] === "string") console.error(entry[0]);
      else this.#cancel(entry[0]);
      if (this.#lines.length > MANY) this.#flush();
    }
    // Handlers that are async in name only end before this turn does: their replies go out with the others.
    if (hasPending) this.#schedule();
    else this.#flush();
  }

  /** Whether its reply is still to come. */
  #run([slot, handler, input, revision, id]: Run): boolean {
    const plan = this.#core.plans[handler];
    if (!plan) {
      this.#put(slot, FAILURE, failureJson(new Error("its handler was removed")));
      return false;
    }
    const ctx = new CallContext(this, plan, slot, id ?? "", revision);
    try {
      const traces = tracing();
      const value =
        traces && plan.subject
          ? inSpan(traces, plan.subject(input), ctx, () => runInContext(ctx, plan.invoke, input))
          : runInContext(ctx, plan.invoke, input);
      if (isPromise(value)) {
        this.#running.set(slot, ctx);
        value.then(
          (settled) => this.#settle(slot, plan, ctx, settled),
          (thrown: unknown) => this.#settleFailed(slot, plan, ctx, thrown),
        );
        return true;
      }
      this.#answer(slot, plan, ctx, value);
    } catch (thrown) {
      this.#fail(slot, plan, ctx, thrown);
    }
    return false;
  }

  #settle(slot: number, plan: Plan, ctx: CallContext, value: unknown): void {
    if (!this.#running.delete(slot)) return this.#ended();
    try {
      this.#answer(slot, plan, ctx, value);
    } catch (thrown) {
      this.#fail(slot, plan, ctx, thrown);
    }
    this.#schedule();
  }

  #settleFailed(slot: number, plan: Plan, ctx: CallContext, thrown: unknown): void {
    if (!this.#running.delete(slot)) return this.#ended();
    this.#fail(slot, plan, ctx, thrown);
    this.#schedule();
  }

  #answer(slot: number, plan: Plan, ctx: CallContext, value: unknown): void {
    if (plan.kind === "notification") return this.#put(slot, ReplyKind.nothing, "");
    const questions = typeof value === "object" && value !== null ? questionsIn(value) : undefined;
    if (questions) return this.#put(slot, QUESTIONS, toJson(ctx.requests(questions), "the questions"));
    const [kind, payload] = toReply(plan.kind, value, plan.hasContentKey);
    if (kind === ReplyKind.text && (payload.length > LONG || payload.includes("\n"))) {
      this.#put(slot, TEXT_BESIDE, String(this.#texts.push(payload) - 1));
    } else {
      this.#put(slot, kind, payload);
    }
  }

  #fail(slot: number, plan: Plan, ctx: CallContext, thrown: unknown): void {
    if (plan.kind === "notification") {
      console.error("a notification's handler failed:", thrown);
      return this.#put(slot, ReplyKind.nothing, "");
    }
    this.#put(slot, FAILURE, failureJson(thrown, { exposeErrors: plan.exposeErrors, signal: ctx.usedSignal }));
  }

  /** What it gives and throws from now on is nobody's. */
  #cancel(slot: number): void {
    const ctx = this.#running.get(slot);
    if (!this.#running.delete(slot)) return;
    this.#ending++;
    ctx?.cancel();
  }

  #ended(): void {
    this.#ending--;
  }

  #put(slot: number, kind: number, payload: string): void {
    this.#lines += `${slot} ${kind} ${payload}\n`;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // A tick that is asked for in a microtask comes after all microtasks.
    queueMicrotask(() => process.nextTick(this.#flushScheduled));
  }

  readonly #flushScheduled = (): void => {
    this.#isScheduled = false;
    this.#flush();
    this.#host?.collect?.();
  };

  #flush(): void {
    if (this.#lines === "") return;
    const [lines, texts] = [this.#lines, this.#texts];
    this.#lines = "";
    if (texts.length > 0) this.#texts = [];
    this.shell.reply(lines, texts.length > 0 ? texts : undefined);
  }
}

const DONE = Promise.resolve();

/** What a resource's handler gave, as a client would read it. */
export function resourceResult(uri: string, mimeType: string | null, value: unknown): ResourceResult {
  if (value instanceof ResourceResult) return value;
  const official = officialResourceResult(value);
  if (official) return official;
  if (questionsIn(value)) throw new TypeError(`the resource ${uri} asks its client first: only a client can read it`);
  const [kind, payload] = toReply("resource" satisfies ComponentKind, value);
  const type = mimeType ?? (kind === ReplyKind.json ? "application/json" : kind === ReplyKind.blob ? "application/octet-stream" : "text/plain");
  const held = kind === ReplyKind.blob ? { blob: new Uint8Array(Buffer.from(payload, "base64")) } : { text: payload };
  return new ResourceResult([{ uri, mimeType: type, ...held }]);
}
