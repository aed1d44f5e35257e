import { Asking, type Refusal } from "./asking.js";
import type { Connection } from "./connection.js";
import { Cancelled, McpError, NotSupported } from "./errors.js";
import { toJson } from "./json.js";
import type { Plan } from "./plan.js";
import { ask, type Asked, isQuestion, outcomeOf } from "./questions.js";
import type { ResourceResult } from "./results.js";
import { isPromise } from "./schema.js";
import type {
  Context, Implementation, LogLevel, Maybe, Message, Meta, Outcome, Output, Principal, Question, Revision, Root,
  SampleOptions, SampleResult, Schema, ServerMembers,
} from "./types.js";

/** What the client said about itself and its request. */
interface Facts {
  readonly stateless: boolean;
  readonly conversation: number;
  readonly sessionId?: string;
  /** The number of a host's request. */
  readonly request?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly meta?: Meta;
  readonly client?: Partial<Implementation>;
  readonly capabilities?: Meta;
}

interface Keyed {
  key?: string | undefined;
}

export class CallContext implements Context {
  #abort: AbortController | undefined;
  #isCancelled = false;
  #facts: Facts | undefined;
  #headers: Headers | undefined;
  #state: Map<unknown, unknown> | undefined;
  #asking: Asking | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly plan: Plan,
    private readonly slot: number,
    readonly requestId: string | number,
    readonly revision: Revision,
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

  /** Only HTTP has them. */
  get headers(): Headers {
    return (this.#headers ??= new Headers(this.facts.headers as [string, string][] | undefined));
  }

  get sessionId(): string | undefined {
    return this.facts.sessionId;
  }

  get principal(): Principal | undefined {
    return this.connection.principalOf(this.facts.request);
  }

  get session(): Map<string, unknown> {
    if (this.facts.stateless) {
      throw new NotSupported(
        `ctx.session: revision ${this.revision} has no sessions. Give the client a handle that it passes as an argument, ` +
          "or keep the data in a store of your own, by ctx.principal.",
      );
    }
    return this.connection.session(this.facts.conversation);
  }

  get state(): Map<unknown, unknown> {
    return (this.#state ??= new Map());
  }

  /** Made when it is first looked at: most handlers never do. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#isCancelled) this.#abort.abort(cancellation());
    }
    return this.#abort.signal;
  }

  /** The signal, where somebody has looked at it. */
  get usedSignal(): AbortSignal | undefined {
    return this.#abort?.signal;
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#abort?.abort(cancellation());
    this.#asking?.cancel(cancellation());
  }

  progress(progress: number, rest: { total?: number | undefined; message?: string | undefined } = {}): Promise<void> {
    const { total, message } = rest;
    if (!Number.isFinite(progress) || (total !== undefined && !Number.isFinite(total))) {
      throw new TypeError(`progress(${progress}, { total: ${total} }): both must be finite numbers`);
    }
    return this.connection.room(this.connection.shell.progress(this.slot, progress, total, message));
  }

  log(level: LogLevel, data: unknown, rest: { logger?: string | undefined } = {}): Promise<void> {
    const json = toJson(data === undefined ? null : data, "what is logged");
    return this.connection.room(this.connection.shell.log(this.slot, level, rest.logger, json));
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

  async elicit<const S extends Schema>(message: string, schema: S, rest?: Keyed): Promise<Output<S>> {
    const [answer] = await this.ask(ask.elicit(message, schema, rest));
    return answer;
  }

  async tryElicit<const S extends Schema>(message: string, schema: S, rest?: Keyed): Promise<Outcome<Output<S>>> {
    const question = ask.elicit(message, schema, rest) as unknown as Asked<Output<S>>;
    return outcomeOf(question, resultOf(await this.asking.put(question)));
  }

  async elicitUrl(message: string, url: string, rest?: Keyed): Promise<string> {
    const [id] = await this.ask(ask.elicitUrl(message, url, rest));
    return id;
  }

  async sample(
    messages: string | readonly (string | Message)[],
    options?: SampleOptions & Keyed,
  ): Promise<SampleResult> {
    const [result] = await this.ask(ask.sample(messages, options));
    return result;
  }

  async roots(rest?: Keyed): Promise<Root[]> {
    const [roots] = await this.ask(ask.roots(rest));
    return roots;
  }

  async ask<const Q extends readonly Question<unknown>[]>(
    ...questions: Q
  ): Promise<{ -readonly [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }> {
    // They are numbered and sent now; all are answered before any is looked at.
    const asked = questions.map(checked);
    const results = await Promise.all(asked.map((question) => this.asking.put(question)));
    const answers = [];
    for (const [at, question] of asked.entries()) answers.push(await question.read(resultOf(results[at])));
    return answers as never;
  }

  answer<T>(question: Question<T>): T | undefined {
    const asked = checked(question) as Asked<T>;
    const known = this.asking.known(asked);
    if (known === undefined) return undefined;
    const answer = asked.read(known);
    if (!isPromise(answer)) return answer as T;
    throw new TypeError(`the answer to ${JSON.stringify(asked.message)} is checked by an async schema: use one that is not`);
  }

  /** Questions that the handler returned, each under its key. */
  requests(questions: readonly Asked[]): readonly object[] {
    return questions.map((question) => ({ key: this.asking.keyOf(question), method: question.method, params: question.params }));
  }

  /** An answer of the client's has come. */
  answered(number: number, result: Readonly<Record<string, unknown>> | null, refusal: Refusal | null): void {
    this.asking.answered(number, result, refusal);
  }

  /** Nothing is replayed here, so the function runs; its result has gone through JSON, as a journal would give it. */
  async step<T>(key: string, fn: () => Maybe<T>): Promise<T> {
    const value = await fn();
    return value === undefined ? value : (JSON.parse(toJson(value, `the result of step "${key}"`)) as T);
  }

  async readResource(uri: string): Promise<ResourceResult> {
    return this.connection.readResource(this, uri);
  }

  /** Only HTTP streams of sessions can be closed before their answer. */
  async closeStream(rest: { retryMs?: number | undefined } = {}): Promise<void> {
    const { retryMs } = rest;
    if (retryMs !== undefined && !(retryMs >= 0 && Number.isFinite(retryMs))) {
      throw new TypeError(`closeStream({ retryMs: ${retryMs} }): it must be a number of milliseconds`);
    }
    this.connection.shell.closeStream(this.slot, retryMs);
  }

  private get asking(): Asking {
    return (this.#asking ??= new Asking(this.connection.shell, this.slot));
  }

  private get facts(): Facts {
    return (this.#facts ??= this.readFacts());
  }

  private readFacts(): Facts {
    const json = this.connection.shell.facts(this.slot);
    if (json !== null) return JSON.parse(json) as Facts;
    throw new Error("what the client said of itself is known until the call is over: read it before the handler returns");
  }
}

function checked(question: unknown): Asked {
  if (isQuestion(question)) return question;
  throw new TypeError("ctx.ask and ctx.answer take questions, made by ask.elicit, ask.sample and their kin");
}

function resultOf(answer: Readonly<Record<string, unknown>> | McpError | undefined): Readonly<Record<string, unknown>> {
  if (answer instanceof McpError) throw answer;
  return answer ?? {};
}

function cancellation(): Cancelled {
  return new Cancelled("nobody waits for this call any more: the client gave it up, its time is over, or the server stops");
}
