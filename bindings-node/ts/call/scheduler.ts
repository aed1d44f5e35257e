import { parseJson, parseMarked } from "../model/big-integers.js";
import type { NativeWorkQueue } from "../native.js";
import { toJson } from "../model/json.js";
import type { KeepAlive } from "../model/keep-alive.js";
import { logError } from "../model/logging.js";
import { isPromise, sleep, until } from "../model/promises.js";
import { questionsIn } from "../model/questions.js";
import type { ResourceResult } from "../model/results.js";
import { tracing } from "../model/tracing.js";
import type { Context } from "../model/types/context.js";
import type { Logger } from "../model/types/logging.js";
import type { Principal } from "../model/types/server.js";
import type { Plan } from "../plan/plan.js";
import { ReplyKind, toReply } from "../plan/replies.js";
import { type Entry, EntryKind, type Run } from "./batch.js";
import { CallContext } from "./context.js";
import { runInContext } from "./current.js";
import { failureJson } from "./failures.js";
import { CallHandle, type SharedByCalls } from "./handle.js";
import { FAILURE, QUESTIONS, ReplyLines } from "./reply-lines.js";
import { answeredSpan, inSpan } from "./tracing.js";

/** The time for cancelled handlers to end. */
const UNWIND_MS = 500;
/** The time for the peer to read the last replies. */
const DRAIN_MS = 1_000;

/** The time until handlers that wait for slow readers are looked at. It doubles while none may start. */
const FIRST_LOOK_MS = 1;
const MAX_INTERVAL_MS = 64;
/** The handlers that start at once after they have waited: not all of them, because none of them has answered yet. */
const MAX_AT_ONCE = 16;

/** The server whose handlers are run. */
export interface Served {
  /** The plans by handler number, as the native half refers to them. */
  readonly plans: readonly (Plan | undefined)[];
  readonly logger: Logger;
  /** Reads a resource of this server or of its upstream servers on behalf of a handler. */
  readResource(ctx: Context, uri: string): Promise<ResourceResult>;
}

export interface SchedulerOptions {
  /** Returns the principal of a call; `request` is the number of the host's HTTP request, where there is one. */
  readonly principalOf?: ((request: number | undefined) => Principal | undefined) | undefined;
  /** Called after batches were run and after replies were sent. */
  readonly afterTurn?: (() => void) | undefined;
  /** Called when the peer has ended its input. */
  readonly onEnd?: (() => void) | undefined;
  /** Held while handlers run, for a stream that does not keep the process alive itself. */
  readonly keepAlive?: KeepAlive | undefined;
}

/** Runs the handlers of a server: takes batches of calls from the native half, and returns all replies of one turn together. */
export class CallScheduler implements SharedByCalls {
  readonly workQueue: NativeWorkQueue;
  private readonly served: Served;
  private readonly options: SchedulerOptions;
  private readonly replies: ReplyLines;
  private readonly running = new Map<number, CallContext>();
  /** Calls whose handlers wait until their clients have read. */
  private waiting: Run[] = [];
  private lookInterval = FIRST_LOOK_MS;
  /** Calls whose handlers have asked in this turn of the event loop. */
  private readonly asking = new Set<number>();
  /** The values of `ctx.session`, by the number of the session. */
  private readonly sessions = new Map<number, Map<string, unknown>>();
  private isStarted = false;
  /** The number of cancelled handlers that have not ended. */
  private ending = 0;

  /** `open` connects to the native half, which calls `wake` when there are batches. */
  constructor(served: Served, open: (wake: () => void) => NativeWorkQueue, options: SchedulerOptions = {}) {
    this.served = served;
    this.options = options;
    this.workQueue = open(() => this.drain());
    if (tracing()) this.workQueue.traceRequests();
    this.replies = new ReplyLines(this.workQueue, () => this.options.afterTurn?.());
  }

  /** Waits for the upstream servers to be reached, for a while. */
  async reachUpstreams(): Promise<void> {
    await this.workQueue.reachUpstreams();
  }

  /** Starts to run handlers. Requests that need none were answered before. */
  start(): void {
    this.isStarted = true;
    this.drain();
  }

  /** Waits for the calls in flight, at most `graceMs`, cancels the others, and closes the native half. */
  async stop(graceMs: number): Promise<void> {
    this.workQueue.pause();
    await until(() => this.workQueue.underWay() === 0 && this.replies.isEmpty, graceMs);
    this.workQueue.cancelAll();
    this.isStarted = true;
    this.drain();
    await until(() => this.running.size === 0 && this.ending === 0, UNWIND_MS);
    this.replies.flush();
    await until(() => this.workQueue.unwritten() === 0, DRAIN_MS);
    this.workQueue.close();
  }

  /** Runs the batches that are ready. */
  drain(): void {
    if (this.isStarted) this.runBatch();
    this.options.afterTurn?.();
  }

  /** Questions of one turn of the event loop are sent together. */
  noteQuestion(slot: number): void {
    if (this.asking.size === 0) setImmediate(this.sendQuestions);
    this.asking.add(slot);
  }

  async waitForRoom(): Promise<void> {
    while (!this.workQueue.hasRoom()) await sleep(5);
  }

  session(slot: number, number: number): readonly [values: Map<string, unknown>, isStored: boolean] {
    const use = this.workQueue.useSession(slot);
    for (const ended of use?.ended ?? []) this.sessions.delete(ended);
    const values = this.sessions.get(number) ?? new Map<string, unknown>();
    this.sessions.set(number, values);
    if (use?.changes === undefined) return [values, false];
    if (use.replaces) values.clear();
    for (const change of parseJson(use.changes) as (readonly [name: string, value?: unknown])[]) {
      if (change.length === 1) values.delete(change[0]);
      else values.set(change[0], change[1]);
    }
    return [values, true];
  }

  principalOf(request: number | undefined): Principal | undefined {
    return this.options.principalOf?.(request);
  }

  readResource(ctx: Context, uri: string): Promise<ResourceResult> {
    return this.served.readResource(ctx, uri);
  }

  private readonly sendQuestions = (): void => {
    const slots = [...this.asking];
    this.asking.clear();
    // The host forgets the principal when its request is answered with the questions.
    if (this.options.principalOf) for (const slot of slots) this.running.get(slot)?.keepFacts();
    this.workQueue.waits(slots);
    this.drain();
  };

  private runBatch(): void {
    const batch = this.workQueue.takeBatch();
    if (batch === null) return;
    let hasPending = false;
    const entries = parseMarked(batch) as Entry[];
    // By index here and below, because every call would pay for iterators.
    for (let at = 0; at < entries.length; at++) {
      const entry = entries[at]!;
      if (entry[0] === EntryKind.run) hasPending = this.runOrKeep(entry) || hasPending;
      else this.onEvent(entry);
      this.replies.flushIfLong();
    }
    this.sendReplies(hasPending);
  }

  private sendReplies(hasPending: boolean): void {
    // Async functions without an await settle in this turn; their replies are sent with the others.
    if (hasPending) this.replies.schedule();
    else this.replies.flush();
  }

  /** Runs a call's handler, unless its client leaves too much unread; returns true if its reply is pending. */
  private runOrKeep(entry: Run): boolean {
    if (!this.replies.hasBacklog || this.workQueue.mayStart(entry[1])) return this.run(entry);
    if (this.waiting.length === 0) setTimeout(this.runWaiting, this.lookInterval);
    this.waiting.push(entry);
    return false;
  }

  private readonly runWaiting = (): void => {
    const waiting = this.waiting;
    this.waiting = [];
    let left = MAX_AT_ONCE;
    let hasPending = false;
    for (const entry of waiting) {
      if (left > 0 && this.workQueue.mayStart(entry[1])) {
        left--;
        hasPending = this.run(entry) || hasPending;
        this.replies.flushIfLong();
      } else {
        this.waiting.push(entry);
      }
    }
    this.lookInterval = left < MAX_AT_ONCE ? FIRST_LOOK_MS : Math.min(2 * this.lookInterval, MAX_INTERVAL_MS);
    if (this.waiting.length > 0) setTimeout(this.runWaiting, this.lookInterval);
    this.sendReplies(hasPending);
    this.options.afterTurn?.();
  };

  private onEvent(entry: Exclude<Entry, Run>): void {
    switch (entry[0]) {
      case EntryKind.answer:
        return this.running.get(entry[1])?.answered(entry[2]);
      case EntryKind.resume: {
        const [, slot, revision, request] = entry;
        return this.running.get(slot)?.resume(revision, request ?? "");
      }
      case EntryKind.cancel:
        return this.cancel(entry[1]);
      case EntryKind.report:
        return logError(this.served.logger, entry[1], entry[2]);
      case EntryKind.span: {
        const traces = tracing();
        if (traces) answeredSpan(traces, entry[1], entry[2], entry[3]);
        return;
      }
      case EntryKind.end:
        return this.options.onEnd?.();
    }
  }

  /** Runs a call's handler; returns true if its reply is pending. */
  private run(entry: Run): boolean {
    const slot = entry[1];
    const input = entry[3];
    const texts = entry[6];
    // Without them the call was cancelled before it began.
    if (texts !== undefined && !this.takeTexts(slot, input, texts)) return false;
    const plan = this.served.plans[entry[2]];
    if (!plan) {
      this.replies.add(slot, FAILURE, failureJson(new Error("its handler was removed"), { logger: this.served.logger }));
      return false;
    }
    const ctx = new CallContext(new CallHandle(this, slot), plan, entry[5] ?? "", entry[4]);
    try {
      const traces = tracing();
      const value =
        traces && plan.subject
          ? inSpan(traces, ctx.span(plan.subject(input)), () => runInContext(ctx, plan.invoke, input))
          : runInContext(ctx, plan.invoke, input);
      if (isPromise(value)) {
        this.running.set(slot, ctx);
        this.options.keepAlive?.hold();
        value.then(
          (settled) => this.settle(slot, plan, ctx, settled),
          (thrown: unknown) => this.settleFailed(slot, plan, ctx, thrown),
        );
        return true;
      }
      this.answer(slot, plan, ctx, value);
    } catch (thrown) {
      this.fail(slot, plan, ctx, thrown);
    }
    return false;
  }

  /** Puts the large strings of an input in their places; returns false if the call was cancelled. */
  private takeTexts(slot: number, input: Record<string, unknown>, names: readonly string[]): boolean {
    for (const [index, name] of names.entries()) {
      const text = this.workQueue.takeText(slot, index);
      if (text === null) return false;
      input[name] = text;
    }
    return true;
  }

  private settle(slot: number, plan: Plan, ctx: CallContext, value: unknown): void {
    if (!this.forget(slot)) return this.cancelledEnded();
    try {
      this.answer(slot, plan, ctx, value);
    } catch (thrown) {
      this.fail(slot, plan, ctx, thrown);
    }
    this.replies.schedule();
  }

  private settleFailed(slot: number, plan: Plan, ctx: CallContext, thrown: unknown): void {
    if (!this.forget(slot)) return this.cancelledEnded();
    this.fail(slot, plan, ctx, thrown);
    this.replies.schedule();
  }

  private answer(slot: number, plan: Plan, ctx: CallContext, value: unknown): void {
    ctx.leaveSession();
    if (plan.kind === "notification") return this.replies.add(slot, ReplyKind.nothing, "");
    const questions = typeof value === "object" && value !== null ? questionsIn(value) : undefined;
    if (questions) return this.replies.add(slot, QUESTIONS, toJson(ctx.requests(questions), "the questions"));
    const reply = toReply(plan.kind, value, plan.hasContentKey);
    this.replies.add(slot, reply[0], reply[1]);
  }

  private fail(slot: number, plan: Plan, ctx: CallContext, thrown: unknown): void {
    try {
      ctx.leaveSession();
    } catch (error) {
      this.served.logger.error("the values of ctx.session are not stored:", error);
    }
    if (plan.kind === "notification") {
      this.served.logger.error("a notification's handler failed:", thrown);
      return this.replies.add(slot, ReplyKind.nothing, "");
    }
    this.replies.add(slot, FAILURE, failureJson(thrown, { exposeErrors: plan.exposeErrors, signal: ctx.usedSignal, logger: this.served.logger }));
  }

  /** Cancels a handler. Its result and errors are dropped from now on. */
  private cancel(slot: number): void {
    if (this.waiting.length > 0) this.waiting = this.waiting.filter((entry) => entry[1] !== slot);
    const ctx = this.running.get(slot);
    if (!this.forget(slot)) return;
    this.ending++;
    ctx?.cancel();
  }

  private cancelledEnded(): void {
    this.ending--;
  }

  /** Returns whether the call was running. */
  private forget(slot: number): boolean {
    const wasRunning = this.running.delete(slot);
    if (wasRunning) this.options.keepAlive?.release();
    return wasRunning;
  }
}
