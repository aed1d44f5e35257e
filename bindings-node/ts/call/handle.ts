import { parseJson } from "../model/big-integers.js";
import { toJson } from "../model/json.js";
import type { NativeQuestions, NativeWorkQueue } from "../native.js";
import type { LogEvent } from "../model/logging.js";
import { principalFromJson, type PrincipalJson } from "../model/principal.js";
import type { SpanDescription } from "../model/tracing.js";
import type { ResourceResult } from "../model/results.js";
import type { Implementation, LogLevel } from "../model/types/components.js";
import type { Meta } from "../model/types/content.js";
import type { Context } from "../model/types/context.js";
import type { Principal } from "../model/types/server.js";

/** The facts that the native half knows about a call and its client. */
export interface Facts {
  readonly hasSession: boolean;
  /** The number of the session, unique in its connection or endpoint. */
  readonly session: number;
  readonly sessionId?: string;
  /** The address that the client calls from. */
  readonly remote?: string;
  /** The caller, as this server or its host authenticated it. */
  readonly principal?: PrincipalJson;
  /** The number of the host's HTTP request. */
  readonly request?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly meta?: Meta;
  readonly client?: Partial<Implementation>;
  readonly capabilities?: Meta;
}

/** The state that the calls of one scheduler share. */
export interface SharedByCalls {
  readonly workQueue: NativeWorkQueue;
  /** Notes that the handler of a call has asked its client. */
  noteQuestion(slot: number): void;
  /** Waits until the peer has read enough of the output. */
  waitForRoom(): Promise<void>;
  /** Returns the values of the session of a call, which live as long as the session, and whether a store has them. */
  session(slot: number, number: number): readonly [values: Map<string, unknown>, isStored: boolean];
  /** Returns the principal of the call that came with this request of the host. */
  principalOf(request: number | undefined): Principal | undefined;
  readResource(ctx: Context, uri: string): Promise<ResourceResult>;
}

const DONE = Promise.resolve();

/** One call in the native half: what its handler reads, sends and asks. */
export class CallHandle {
  /** The values of its session, once the handler has used them. */
  private values: Map<string, unknown> | undefined;
  /** True if a store has them, and they were not passed on to it yet. */
  private isToBeStored = false;

  constructor(
    private readonly shared: SharedByCalls,
    private readonly slot: number,
  ) {}

  /** Throws an error after the handler has returned. */
  facts(): Facts {
    const json = this.shared.workQueue.facts(this.slot);
    if (json !== null) return parseJson(json) as Facts;
    throw new Error("the context knows its call's facts only until the handler returns; read them before");
  }

  /** Returns the span of the call for this method, of the tool or prompt `name`. */
  span(method: string, name: string | undefined): SpanDescription {
    const json = this.shared.workQueue.span(this.slot, method, name);
    if (json !== null) return JSON.parse(json) as SpanDescription;
    throw new Error("the call has ended");
  }

  /** Returns the event that ready-made middleware logs about the request. */
  requestEvent(stage: string, method: string, named: string | undefined, text: string | undefined, milliseconds: number): LogEvent {
    return JSON.parse(this.shared.workQueue.requestEvent(this.slot, stage, method, named, text, milliseconds)) as LogEvent;
  }

  principal({ request, principal }: Facts): Principal | undefined {
    return this.shared.principalOf(request === undefined ? undefined : Number(request)) ?? (principal && principalFromJson(principal));
  }

  session({ session }: Facts): Map<string, unknown> {
    if (this.values === undefined) [this.values, this.isToBeStored] = this.shared.session(this.slot, session);
    return this.values;
  }

  /** Passes the values of the session, if the handler has used them, on to the store. Throws a TypeError if they have no JSON. */
  leaveSession(): void {
    if (!this.isToBeStored || this.values === undefined) return;
    this.isToBeStored = false;
    let json: string | undefined;
    try {
      json = toJson(Object.fromEntries(this.values), "ctx.session");
    } finally {
      this.shared.workQueue.leftSession(this.slot, json);
    }
  }

  /** Resolves when the peer has read enough of the output; likewise `log`. */
  progress(progress: number, total: number | undefined, message: string | undefined): Promise<void> {
    return this.#room(this.shared.workQueue.progress(this.slot, progress, total, message));
  }

  /** `data` is JSON. */
  log(level: LogLevel, logger: string | undefined, data: string): Promise<void> {
    return this.#room(this.shared.workQueue.log(this.slot, level, logger, data));
  }

  closeStream(retryMs: number | undefined): void {
    this.shared.workQueue.closeStream(this.slot, retryMs);
  }

  readResource(ctx: Context, uri: string): Promise<ResourceResult> {
    return this.shared.readResource(ctx, uri);
  }

  /** Returns the JSON of the answer that came with the call, or null if it came without one. `params` is JSON, here and below. */
  answer(key: string, method: string, params: string): string | null {
    return this.shared.workQueue.answer(this.slot, key, method, params);
  }

  /** Discards the answer that came with the call. Returns the JSON of a `Refusal` if the question can't be asked again. */
  refuseAnswer(key: string, method: string, params: string, problem: string): string | null {
    return this.shared.workQueue.refuse(this.slot, key, method, params, problem);
  }

  /** Begins to ask questions together; null if the handler has ended. */
  ask(keys: string[], methods: string[], params: string[]): NativeQuestions | null {
    return this.shared.workQueue.ask(this.slot, keys, methods, params);
  }

  /** Notes that questions were sent; those of one turn of the event loop are sent together. */
  noteQuestion(): void {
    this.shared.noteQuestion(this.slot);
  }

  /** Returns the JSON that a step recorded in an earlier run of the handler, or null if it has not run before. */
  knownStep(key: string): string | null {
    return this.shared.workQueue.knownStep(this.slot, key);
  }

  recordStep(key: string, value: string): void {
    this.shared.workQueue.step(this.slot, key, value);
  }

  /** Returns the kind and the key of the native handler that the middleware runs around, and the argument of a completion. */
  nativeSubject(): readonly [kind: string, key: string, argument: string] {
    const subject = this.shared.workQueue.nativeSubject(this.slot);
    if (subject !== null) return subject as [string, string, string];
    throw new Error("the call has ended");
  }

  /** Passes the call on to that handler; `input` is JSON, as are the result and the failure, one of which is null. */
  passOn(input: string): Promise<readonly [result: string | null, failure: string | null]> {
    return this.shared.workQueue.passOn(this.slot, input);
  }

  /** Reads a resource of an upstream server; null if none has this URI. */
  readUpstream(uri: string): Promise<readonly [result: string | null, failure: string | null]> | null {
    return this.shared.workQueue.readUpstream(this.slot, uri);
  }

  #room(hasRoom: boolean): Promise<void> {
    return hasRoom ? DONE : this.shared.waitForRoom();
  }
}
