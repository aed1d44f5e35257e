import { bindSomeMethods } from "../model/bound-methods.js";
import { refuseUnknown } from "../model/checks.js";
import { NotSupported } from "../model/errors.js";
import { toJson } from "../model/json.js";
import { logRequest } from "../model/logging.js";
import { isPromise } from "../model/promises.js";
import { type Asked, isQuestion, outcomeOf } from "../model/questions.js";
import type { ResourceResult } from "../model/results.js";
import { explainSdkNames } from "../model/sdk-names.js";
import type { SpanDescription } from "../model/tracing.js";
import type { Implementation, LogLevel, Maybe, Revision, Root } from "../model/types/components.js";
import type { Meta } from "../model/types/content.js";
import type { Context, ServerMembers } from "../model/types/context.js";
import type { Outcome, Question, SampledMessages, SampleOptions, SampleResult, SpecSampleRequest } from "../model/types/questions.js";
import type { Output, Schema } from "../model/types/schema.js";
import type { Principal } from "../model/types/server.js";
import { ask } from "../schema/ask.js";
import { SchemaMismatch } from "../schema/compile.js";
import type { Plan, Subject } from "../plan/plan.js";
import { Asking } from "./asking.js";
import type { CallHandle, Facts } from "./handle.js";
import { StepJournal } from "./steps.js";

interface Keyed {
  key?: string | undefined;
}

/** The parts of a context that most handlers never use. */
interface MadeAtFirstUse {
  abort?: AbortController;
  /** The reason that this run of the handler was cancelled. */
  end?: DOMException;
  facts?: Facts | undefined;
  headers?: Headers | undefined;
  principal?: { readonly value: Principal | undefined } | undefined;
  state?: Map<unknown, unknown>;
  asking?: Asking;
  steps?: StepJournal;
}

export class CallContext implements Context {
  /** In one object, because every call would pay for each private field. */
  readonly #made: MadeAtFirstUse = {};

  constructor(
    private readonly call: CallHandle,
    private readonly plan: Plan,
    public requestId: string | number,
    public revision: Revision,
  ) {}

  get server(): ServerMembers<unknown> {
    return this.plan.owner.server;
  }

  get lifespan(): unknown {
    return this.plan.owner.lifespan.value;
  }

  get meta(): Meta {
    return this.facts.meta ?? {};
  }

  get client(): Implementation & { readonly capabilities: Meta } {
    const { client = {}, capabilities = {} } = this.facts;
    return { name: "", version: "", ...client, capabilities };
  }

  get clientCapabilities(): Meta {
    return this.facts.capabilities ?? {};
  }

  /** The headers of the HTTP request; empty on other transports. */
  get headers(): Headers {
    return (this.#made.headers ??= new Headers(this.facts.headers as [string, string][] | undefined));
  }

  /** The address that the client calls from, if the host knows it. */
  get remote(): string | undefined {
    return this.facts.remote;
  }

  get sessionId(): string | undefined {
    return this.facts.sessionId;
  }

  /** Read once and kept: a host forgets it when its request is answered, and a handler may wait for longer. */
  get principal(): Principal | undefined {
    return (this.#made.principal ??= { value: this.call.principal(this.facts) }).value;
  }

  get session(): Map<string, unknown> {
    if (!this.facts.hasSession) {
      throw new NotSupported(
        `revision ${this.revision} has no sessions, so there is no ctx.session`,
        { hint: "give the client a handle that it passes as an argument, or keep the data in a store of your own, by ctx.principal" },
      );
    }
    return this.call.session(this.facts);
  }

  /** Passes the values of the session on to the store. Throws a TypeError if they have no JSON. */
  leaveSession(): void {
    this.call.leaveSession();
  }

  get state(): Map<unknown, unknown> {
    return (this.#made.state ??= new Map());
  }

  /** Created at first use, since most handlers never read it. */
  get signal(): AbortSignal {
    const made = this.#made;
    if (!made.abort) {
      made.abort = new AbortController();
      if (made.end) made.abort.abort(made.end);
    }
    return made.abort.signal;
  }

  /** The signal, if the handler has read it. */
  get usedSignal(): AbortSignal | undefined {
    return this.#made.abort?.signal;
  }

  /** Cancels this run of the handler: the call was cancelled, or is replayed when its answers arrive. */
  cancel(): void {
    const end = new DOMException(END, "AbortError");
    this.#made.end = end;
    this.#made.abort?.abort(end);
    this.#made.asking?.end(end);
  }

  /** Returns the registration that the middleware of this call runs around: its kind, its key, and the argument of a completion. */
  nativeSubject(): readonly [kind: string, key: string, argument: string] {
    return this.call.nativeSubject();
  }

  /** Passes the call on to the native handler that its middleware runs around. Resolves with its result and its failure, JSON. */
  passOn(input: string): Promise<readonly [result: string | null, failure: string | null]> {
    return this.call.passOn(input);
  }

  /** Reads a resource of an upstream server; null if none has this URI. Resolves as `passOn`. */
  readUpstream(uri: string): Promise<readonly [result: string | null, failure: string | null]> | null {
    return this.call.readUpstream(uri);
  }

  /** Returns the span of the call. */
  span([method, name]: Subject): SpanDescription {
    return this.call.span(method, name);
  }

  /** Logs what ready-made middleware tells of the request: that it was `received`, with `text` if it is given, `done`, `failed` or `timed`. */
  logRequest(stage: string, method: string, named: string | undefined, text?: string, milliseconds = 0): void {
    logRequest(this.plan.owner.logger, this.call.requestEvent(stage, method, named, text, milliseconds));
  }

  /** Reads the facts that are lost when the request is answered while the handler waits. */
  keepFacts(): void {
    void this.principal;
  }

  /** Continues the handler on behalf of a new request. */
  resume(revision: Revision, requestId: string | number): void {
    this.revision = revision;
    this.requestId = requestId;
    const made = this.#made;
    made.facts = undefined;
    made.headers = undefined;
    made.principal = undefined;
  }

  progress(progress: number, rest: { total?: number | undefined; message?: string | undefined } = {}): Promise<void> {
    refuseUnknown("progress()", ["total", "message"], rest);
    const { total, message } = rest;
    if (!Number.isFinite(progress) || (total !== undefined && !Number.isFinite(total))) {
      throw new TypeError(`progress(${progress}, { total: ${total} }): both must be finite numbers`);
    }
    return this.call.progress(progress, total, message);
  }

  log(level: LogLevel, data: unknown, rest: { logger?: string | undefined } = {}): Promise<void> {
    refuseUnknown("log()", ["logger"], rest);
    return this.call.log(level, rest.logger, toJson(data === undefined ? null : data, "the logged value"));
  }

  debug(data: unknown): Promise<void> {
    return this.log("debug", data);
  }

  info(data: unknown): Promise<void> {
    return this.log("info", data);
  }

  warning(data: unknown): Promise<void> {
    return this.log("warning", data);
  }

  error(data: unknown): Promise<void> {
    return this.log("error", data);
  }

  elicit<const S extends Schema>(message: string, schema: S, rest?: Keyed): Promise<Output<S>> {
    return handled(this.#one(() => ask.elicit(message, schema, rest)));
  }

  tryElicit<const S extends Schema>(message: string, schema: S, rest?: Keyed): Promise<Outcome<Output<S>>> {
    return handled(this.#outcome(() => ask.elicit(message, schema, rest)));
  }

  elicitUrl(message: string, url: string, rest?: Keyed): Promise<string> {
    return handled(this.#one(() => ask.elicitUrl(message, url, rest)));
  }

  sample(messages: SampledMessages | SpecSampleRequest, options?: SampleOptions & Keyed): Promise<SampleResult> {
    return handled(this.#one(() => ask.sample(messages, options)));
  }

  roots(rest?: Keyed): Promise<Root[]> {
    return handled(this.#one(() => ask.roots(rest)));
  }

  ask<const Q extends readonly Question<unknown>[]>(
    ...questions: Q
  ): Promise<{ -readonly [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }> {
    return handled(this.#all(questions)) as never;
  }

  answer<T>(question: Question<T>): T | undefined {
    const asked = checked(question) as Asked<T>;
    const known = this.asking.known(asked);
    if (known === undefined) return undefined;
    let answer: Maybe<T>;
    try {
      answer = asked.read(known);
    } catch (error) {
      if (!(error instanceof SchemaMismatch)) throw error;
      this.asking.refuse(asked, error);
      return undefined;
    }
    if (!isPromise(answer)) return answer as T;
    // Nothing awaits this promise; its rejection must not end the process.
    (answer as Promise<T>).catch(() => undefined);
    throw new TypeError(
      `ctx.answer() can't wait for the answer to ${JSON.stringify(asked.message)}, which an async schema checks; ` +
        "write `const [answer] = await ctx.ask(question)`, or use a schema that is not async",
    );
  }

  /** Returns the wire's form of questions that the handler returned, with their keys. */
  requests(questions: readonly Asked[]): readonly object[] {
    return questions.map((question) => ({ key: this.asking.keyOf(question), method: question.method, params: question.params }));
  }

  /** Settles the questions of this number. */
  answered(number: number): void {
    this.asking.answered(number);
  }

  step<T>(key: string, fn: () => Maybe<T>): Promise<T> {
    return (this.#made.steps ??= new StepJournal(this.call)).step(key, fn);
  }

  async readResource(uri: string): Promise<ResourceResult> {
    return this.call.readResource(this, uri);
  }

  /** Closes the stream of an HTTP session before the answer; elsewhere it does nothing. */
  async closeStream(rest: { retryMs?: number | undefined } = {}): Promise<void> {
    refuseUnknown("closeStream()", ["retryMs"], rest);
    const { retryMs } = rest;
    if (retryMs !== undefined && !(retryMs >= 0 && Number.isFinite(retryMs))) {
      throw new TypeError(`closeStream({ retryMs: ${retryMs} }): retryMs must be a number of milliseconds`);
    }
    this.call.closeStream(retryMs);
  }

  async #one<T>(make: () => Question<T>): Promise<T> {
    const [answer] = await this.#all([make()]);
    return answer as T;
  }

  async #outcome<T>(make: () => Question<T>): Promise<Outcome<T>> {
    const question = make() as Asked<T>;
    const [outcome] = await this.asking.ask([question], (_, result) => outcomeOf(question, result));
    return outcome as Outcome<T>;
  }

  async #all(questions: readonly unknown[]): Promise<unknown[]> {
    return this.asking.ask(questions.map(checked), (question, result) => question.read(result));
  }

  private get asking(): Asking {
    const made = this.#made;
    if (!made.asking) {
      made.asking = new Asking(this.call);
      if (made.end) made.asking.end(made.end);
    }
    return made.asking;
  }

  private get facts(): Facts {
    return (this.#made.facts ??= this.call.facts());
  }
}

function checked(question: unknown): Asked {
  if (isQuestion(question)) return question;
  throw new TypeError("ctx.ask and ctx.answer take questions made by ask.elicit(), ask.elicitUrl(), ask.sample() or ask.roots()");
}

/** Handles the rejection of a promise that a failed handler no longer awaits; it must not end the process. */
function handled<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => {});
  return answer;
}

explainSdkNames("Context", CallContext);
bindSomeMethods(CallContext, [
  "answer", "ask", "closeStream", "debug", "elicit", "elicitUrl", "error", "info", "log", "progress", "readResource", "roots", "sample", "step",
  "tryElicit", "warning",
]);

const END =
  "this run of the handler was cancelled: by the client, by its timeout, because the server stops, or to be replayed when " +
  "the answers arrive";
