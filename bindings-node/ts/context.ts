import { isObject } from "./content.js";
import type { Connection } from "./connection.js";
import { Cancelled, NotSupported } from "./errors.js";
import { toJson } from "./json.js";
import type { Plan } from "./plan.js";
import { ask, type Asked } from "./questions.js";
import type { ResourceResult } from "./results.js";
import type {
  Context, Implementation, LogLevel, Maybe, Message, Meta, Outcome, Output, Principal, Question, Revision, Root,
  SampleOptions, SampleResult, Schema, ServerMembers,
} from "./types.js";

/** What the client said about itself and its request. */
interface Facts {
  readonly stateless: boolean;
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
  #state: Map<unknown, unknown> | undefined;

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
    return new Headers();
  }

  get sessionId(): string | undefined {
    return undefined;
  }

  get principal(): Principal | undefined {
    return undefined;
  }

  get session(): Map<string, unknown> {
    if (this.facts.stateless) {
      throw new NotSupported(
        `ctx.session: revision ${this.revision} has no sessions. Give the client a handle that it passes as an argument, ` +
          "or keep the data in a store of your own, by ctx.principal.",
      );
    }
    return this.connection.session;
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
  }

  progress(progress: number, rest: { total?: number | undefined; message?: string | undefined } = {}): Promise<void> {
    const { total, message } = rest;
    if (!Number.isFinite(progress) || (total !== undefined && !Number.isFinite(total))) {
      throw new TypeError(`progress(${progress}, { total: ${total} }): both must be finite numbers`);
    }
    return this.connection.room(this.connection.stream.progress(this.slot, progress, total, message));
  }

  log(level: LogLevel, data: unknown, rest: { logger?: string | undefined } = {}): Promise<void> {
    const json = toJson(data === undefined ? null : data, "what is logged");
    return this.connection.room(this.connection.stream.log(this.slot, level, rest.logger, json));
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
    return { action: "accept", value: await this.elicit(message, schema, rest) };
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
    if (questions.length === 0) return [] as never;
    throw this.cannotAsk(questions as unknown as readonly Asked[]);
  }

  answer<T>(_question: Question<T>): T | undefined {
    return undefined;
  }

  /** Why these questions can't reach the client. */
  cannotAsk(questions: readonly Asked[]): NotSupported {
    const missing = questions.map(({ kind }) => CAPABILITIES[kind]).find((it) => !isObject(this.client.capabilities[it]));
    return new NotSupported(
      missing === undefined
        ? "this server can't put questions to its client: take what it would ask as arguments"
        : `the client did not declare the capability "${missing}"`,
    );
  }

  /** Nothing is replayed here, so the function runs; its result has gone through JSON, as a journal would give it. */
  async step<T>(key: string, fn: () => Maybe<T>): Promise<T> {
    const value = await fn();
    return value === undefined ? value : (JSON.parse(toJson(value, `the result of step "${key}"`)) as T);
  }

  async readResource(uri: string): Promise<ResourceResult> {
    return this.connection.readResource(this, uri);
  }

  /** Only HTTP streams can be closed before their answer. */
  async closeStream(_rest?: { retryMs?: number | undefined }): Promise<void> {}

  private get facts(): Facts {
    return (this.#facts ??= this.readFacts());
  }

  private readFacts(): Facts {
    const json = this.connection.stream.facts(this.slot);
    if (json !== null) return JSON.parse(json) as Facts;
    throw new Error("what the client said of itself is known until the call is over: read it before the handler returns");
  }
}

const CAPABILITIES = { elicit: "elicitation", elicitUrl: "elicitation", sample: "sampling", roots: "roots" } as const;

function cancellation(): Cancelled {
  return new Cancelled("nobody waits for this call any more: the client gave it up, its time is over, or the server stops");
}
