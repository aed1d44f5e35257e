import { debuglog } from "node:util";

import type { NativeShell } from "../native.js";
import { toJson } from "../model/json.js";
import type { KeepAlive } from "../model/keep-alive.js";
import { isPromise, sleep, until } from "../model/promises.js";
import { questionsIn } from "../model/questions.js";
import type { ResourceResult } from "../model/results.js";
import { tracing } from "../model/tracing.js";
import type { Revision } from "../model/types/components.js";
import type { Context } from "../model/types/context.js";
import type { Principal } from "../model/types/server.js";
import type { Plan } from "../plan/plan.js";
import { ReplyKind, toReply } from "../plan/replies.js";
import type { Refusal } from "./asking.js";
import { CallContext } from "./context.js";
import { runInContext } from "./current.js";
import { failureJson } from "./failures.js";
import { inSpan } from "./tracing.js";

/** Writes to stderr if NODE_DEBUG contains "gudgeon". */
const log = debuglog("gudgeon");
/** A longer text, or one with line breaks, is passed beside the reply lines. */
const LONG = 4_096;
/** The length of reply lines at which they are sent before the turn of the event loop ends. */
const MANY = 1 << 20;
/** Kinds of reply lines beyond those of `ReplyKind`. */
const TEXT_BESIDE = 6;
const FAILURE = 7;
const QUESTIONS = 8;
/** The time for cancelled handlers to end. */
const UNWIND_MS = 500;
/** The time for the peer to read the last replies. */
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

/** The server whose handlers a connection runs. */
export interface Served {
  /** The plans by handler number, as the native half refers to them. */
  readonly plans: readonly (Plan | undefined)[];
  /** Reads a resource of this server on behalf of a handler. */
  readResource(ctx: Context, uri: string): Promise<ResourceResult>;
}

/** Runs the handlers of a served connection: takes batches of calls, and returns all replies of one turn together. */
export class Connection {
  readonly shell: NativeShell;
  /** Resolves when the peer has ended its input. */
  readonly ended: Promise<void>;
  readonly #running = new Map<number, CallContext>();
  readonly #served: Served;
  #end!: () => void;
  #isStarted = false;
  #isScheduled = false;
  /** Calls whose handlers have asked in this turn of the event loop. */
  readonly #asking = new Set<number>();
  /** The number of cancelled handlers that have not ended. */
  #ending = 0;
  #lines = "";
  #texts: string[] = [];
  /** The values of `ctx.session`, by the number of the session. */
  readonly #sessions = new Map<number, Map<string, unknown>>();
  readonly #host: Host | undefined;
  readonly #alive: KeepAlive | undefined;

  /** `alive` is held while handlers run, for a stream that does not keep the process alive itself. */
  constructor(served: Served, open: (wake: () => void) => NativeShell, host?: Host, alive?: KeepAlive) {
    this.#served = served;
    this.#host = host;
    this.#alive = alive;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.shell = open(() => this.drain());
  }

  /** Starts to run handlers. Requests that need none were answered before. */
  start(): void {
    this.#isStarted = true;
    this.drain();
  }

  /** Waits for the calls in flight, at most `graceMs`, and closes the stream. */
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
    this.#alive?.end();
  }

  /** Waits until the peer has read enough of the output. */
  room(hasRoom: boolean): Promise<void> {
    return hasRoom ? DONE : this.#waitForRoom();
  }

  async readResource(ctx: CallContext, uri: string): Promise<ResourceResult> {
    return this.#served.readResource(ctx, uri);
  }

  /** Notes that this call's handler has asked. Questions of one turn of the event loop are sent together. */
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

  /** Returns the value of `ctx.session`, which lives as long as the session. */
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

  /** Runs the batches that are ready. */
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
    // Async functions without an await settle in this turn; their replies are sent with the others.
    if (hasPending) this.#schedule();
    else this.#flush();
  }

  /** Runs a call's handler; returns true if its reply is pending. */
  #run([slot, handler, input, revision, id]: Run): boolean {
    const plan = this.#served.plans[handler];
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
        this.#alive?.hold();
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
    if (!this.#forget(slot)) return this.#ended();
    try {
      this.#answer(slot, plan, ctx, value);
    } catch (thrown) {
      this.#fail(slot, plan, ctx, thrown);
    }
    this.#schedule();
  }

  #settleFailed(slot: number, plan: Plan, ctx: CallContext, thrown: unknown): void {
    if (!this.#forget(slot)) return this.#ended();
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

  /** Cancels a handler. Its result and errors are dropped from now on. */
  #cancel(slot: number): void {
    const ctx = this.#running.get(slot);
    if (!this.#forget(slot)) return;
    this.#ending++;
    ctx?.cancel();
  }

  #ended(): void {
    this.#ending--;
  }

  /** Returns whether the call was running. */
  #forget(slot: number): boolean {
    const wasRunning = this.#running.delete(slot);
    if (wasRunning) this.#alive?.letGo();
    return wasRunning;
  }

  #put(slot: number, kind: number, payload: string): void {
    this.#lines += `${slot} ${kind} ${payload}\n`;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // A tick requested in a microtask runs after all microtasks.
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
