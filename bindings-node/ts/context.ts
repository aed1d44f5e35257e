import { type Answer, Asking, type Refusal } from "./asking.js";
import type { Connection } from "./connection.js";
import { NotSupported } from "./errors.js";
import { tellForeign } from "./foreign.js";
import { toJson } from "./json.js";
import type { Plan } from "./plan.js";
import { ask, type Asked, isQuestion, outcomeOf } from "./questions.js";
import type { ResourceResult } from "./results.js";
import { isPromise, SchemaMismatch } from "./schema.js";
import { StepJournal } from "./steps.js";
import type {
  Context, Implementation, LogLevel, Maybe, Message, Meta, Outcome, Output, Principal, Question, Revision, Root,
  SampleOptions, SampleResult, Schema, ServerMembers,
} from "./types.js";

/** What the client said about itself and its request. */
interface Facts {
  readonly hasSession: boolean;
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

type Wire = Readonly<Record<string, unknown>>;

/** A question without an answer, and its place among those asked. */
interface Open {
  readonly question: Asked;
  readonly at: number;
  /** Why the answer that there was does not fit. */
  readonly unfit?: SchemaMismatch;
}

export class CallContext implements Context {
  #abort: AbortController | undefined;
  /** Why nobody waits for this run any more. */
  #end: DOMException | undefined;
  #facts: Facts | undefined;
  #headers: Headers | undefined;
  #principal: { readonly value: Principal | undefined } | undefined;
  #state: Map<unknown, unknown> | undefined;
  #asking: Asking | undefined;
  #steps: StepJournal | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly plan: Plan,
    private readonly slot: number,
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

  /** Only HTTP has them. */
  get headers(): Headers {
    return (this.#headers ??= new Headers(this.facts.headers as [string, string][] | undefined));
  }

  get sessionId(): string | undefined {
    return this.facts.sessionId;
  }

  /** A host knows it until its request is answered, and a handler may wait for longer. */
  get principal(): Principal | undefined {
    return (this.#principal ??= { value: this.connection.principalOf(this.facts.request) }).value;
  }

  get session(): Map<string, unknown> {
    if (!this.facts.hasSession) {
      throw new NotSupported(
        `revision ${this.revision} has no sessions, so there is no ctx.session`,
        { hint: "give the client a handle that it passes as an argument, or keep the data in a store of your own, by ctx.principal" },
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
      if (this.#end) this.#abort.abort(this.#end);
    }
    return this.#abort.signal;
  }

  /** The signal, where somebody has looked at it. */
  get usedSignal(): AbortSignal | undefined {
    return this.#abort?.signal;
  }

  /** Nobody waits for this run any more: it was cancelled, or is to run anew when its answers come. */
  cancel(): void {
    this.#end = new DOMException(END, "AbortError");
    this.#abort?.abort(this.#end);
    this.#asking?.end(this.#end);
  }

  /** The request may be answered while the handler waits. */
  keepFacts(): void {
    void this.principal;
  }

  /** From now on the handler runs for this request. */
  resume(revision: Revision, requestId: string | number): void {
    this.revision = revision;
    this.requestId = requestId;
    this.#facts = undefined;
    this.#headers = undefined;
    this.#principal = undefined;
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

  elicit<const S extends Schema>(message: string, schema: S, rest?: Keyed): Promise<Output<S>> {
    return heard(this.#one(() => ask.elicit(message, schema, rest)));
  }

  tryElicit<const S extends Schema>(message: string, schema: S, rest?: Keyed): Promise<Outcome<Output<S>>> {
    return heard(this.#outcome(() => ask.elicit(message, schema, rest)));
  }

  elicitUrl(message: string, url: string, rest?: Keyed): Promise<string> {
    return heard(this.#one(() => ask.elicitUrl(message, url, rest)));
  }

  sample(messages: string | readonly (string | Message)[], options?: SampleOptions & Keyed): Promise<SampleResult> {
    return heard(this.#one(() => ask.sample(messages, options)));
  }

  roots(rest?: Keyed): Promise<Root[]> {
    return heard(this.#one(() => ask.roots(rest)));
  }

  ask<const Q extends readonly Question<unknown>[]>(
    ...questions: Q
  ): Promise<{ -readonly [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }> {
    return heard(this.#all(questions)) as never;
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
    // Nobody waits for it: what it rejects with must not end the process.
    (answer as Promise<T>).catch(() => undefined);
    throw new TypeError(
      `ctx.answer() can't wait for the answer to ${JSON.stringify(asked.message)}, which an async schema checks: ` +
        "write `const [answer] = await ctx.ask(question)`, or use a schema that is not async",
    );
  }

  /** Questions that the handler returned, each under its key. */
  requests(questions: readonly Asked[]): readonly object[] {
    return questions.map((question) => ({ key: this.asking.keyOf(question), method: question.method, params: question.params }));
  }

  /** An answer of the client's has come. */
  answered(number: number, result: Readonly<Record<string, unknown>> | null, refusal: Refusal | null): void {
    this.asking.answered(number, result, refusal);
  }

  step<T>(key: string, fn: () => Maybe<T>): Promise<T> {
    return (this.#steps ??= new StepJournal(this.connection.shell, this.slot)).step(key, fn);
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

  async #one<T>(make: () => Question<T>): Promise<T> {
    const [answer] = await this.#all([make()]);
    return answer as T;
  }

  async #outcome<T>(make: () => Question<T>): Promise<Outcome<T>> {
    const question = make() as Asked<T>;
    const [outcome] = await this.#read([question], (_, result) => outcomeOf(question, result));
    return outcome as Outcome<T>;
  }

  async #all(questions: readonly unknown[]): Promise<unknown[]> {
    const asked = questions.map(checked);
    this.asking.check(asked);
    return this.#read(asked, (question, result) => question.read(result));
  }

  /** They are numbered and asked now; all are answered before any is looked at. What does not fit is asked again. */
  async #read<T>(questions: readonly Asked[], read: (question: Asked, result: Wire) => Maybe<T>): Promise<T[]> {
    const answers: T[] = [];
    let open = questions.map((question, at): Open => ({ question, at }));
    while (open.length > 0) {
      const results = await Promise.all(open.map(({ question, unfit }) => this.asking.put(question, unfit)));
      const misfits: Open[] = [];
      for (const [index, { question, at }] of open.entries()) {
        try {
          answers[at] = await read(question, resultOf(results[index]));
        } catch (unfit) {
          if (!(unfit instanceof SchemaMismatch)) throw unfit;
          misfits.push({ question, at, unfit });
        }
      }
      open = misfits;
    }
    return answers;
  }

  private get asking(): Asking {
    if (!this.#asking) {
      this.#asking = new Asking(this.connection.shell, this.slot, () => this.connection.wait(this.slot));
      if (this.#end) this.#asking.end(this.#end);
    }
    return this.#asking;
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

function resultOf(answer: Answer | undefined): Wire {
  if (answer instanceof Error) throw answer;
  return answer ?? {};
}

/** A handler that asks twice and dies of the first answer awaits the second no more: that must not end the process. */
function heard<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => {});
  return answer;
}

tellForeign("Context", CallContext);

const END =
  "nobody waits for this run of the handler any more: the client gave the call up, its time is over, the server stops, " +
  "or others needed its place, and it runs anew when its answers come";
