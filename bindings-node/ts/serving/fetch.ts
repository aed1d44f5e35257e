import type { NativePart } from "../native.js";
import type { Principal } from "../model/types/server.js";
import { type Admitted, type Head, MAX_UNREAD, type Mounted, type NoBody } from "./mounted.js";

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
const EMPTY = new Uint8Array();
/** The bytes read beyond the limit, since many clients read no answer while they send. */
const MAX_DISCARDED = 64 * 1024 * 1024;
/** The time for which the body of a refused request is read. */
const DISCARD_MS = 1_000;
/** The length of a body that is read at once, because that many bytes are not counted. */
const SMALL_BODY = 16 * 1024;
/** The length of the pieces in which a host takes a long response, so that it is known how much of it was read. */
const PIECE = 256 * 1024;

/** Releases the counts of responses that a host drops without reading or cancelling them. */
const dropped = new FinalizationRegistry<() => void>((release) => release());

/** Answers a request of a host with the `fetch` interface. */
export async function answerFetch(mounted: Mounted, request: Request, principal?: Principal, peer?: string): Promise<Response> {
  const head = headOf(request);
  const probed = mounted.probeBeforeStart(head);
  if (probed) return new Response(...respond(probed));
  await mounted.ready;
  if (request.bodyUsed || request.body?.locked) {
    throw new TypeError("app.fetch(request): the request's body was read before; pass request.clone()");
  }
  const admitted = await mounted.admit({ ...head, principal, peer });
  if (!("number" in admitted)) {
    await discardBody(request);
    return new Response(...respond(admitted));
  }
  const body = await readBody(mounted, admitted, request);
  if (typeof body === "string") return new Response(...respond(mounted.refuse(admitted, body)));
  return new Promise((resolve, reject) => {
    const answer = new Answer(resolve, (unread) => mounted.report(admitted, unread));
    const gone = mounted.request(admitted, body, (part) => answer.take(part));
    answer.leave = gone;
    const { signal } = request;
    const abort = (): void => {
      gone();
      answer.cut();
      reject(signal.reason);
    };
    if (signal.aborted) abort();
    else if (!answer.isComplete) {
      signal.addEventListener("abort", abort, { once: true });
      answer.ended = () => signal.removeEventListener("abort", abort);
    }
  });
}

/** A response in progress: complete, or a stream. */
class Answer {
  /** Tells the server that the client has left. */
  leave: () => void = () => {};
  ended: () => void = () => {};
  isComplete = false;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isCounted = false;
  #isEnding = false;

  /** @param report Reports the number of bytes that the client has not read. */
  constructor(
    private readonly resolve: (response: Response) => void,
    private readonly report: (unread: number) => void,
  ) {}

  /** Adds a part of the response; returns the number of bytes that the client has not read. */
  take(part: NativePart): number {
    this.#isCounted ||= part.counted;
    if (part.cut) this.#fail("the clients of this server leave too much unread");
    else if (part.status !== undefined && !part.more) return this.#whole(part);
    else if (part.status !== undefined) this.resolve(this.#begin(part));
    else if (part.body) this.#write(part.body);
    if (!part.more) this.#end();
    return this.#unread();
  }

  /** Ends the response without an error, because the client has left. */
  cut(): void {
    this.#finish((stream) => stream.close());
  }

  /** Makes a response of its only part. */
  #whole(part: NativePart): number {
    const { body } = part;
    const isLong = part.counted && body !== undefined && body.byteLength > PIECE;
    // Hosts know the length of bytes, but not of a stream.
    if (isLong) part.headers?.push("content-length", String(body.byteLength));
    this.resolve(new Response(isLong ? this.#inPieces(body) : respond(part)[0], respond(part)[1]));
    this.isComplete = true;
    this.ended();
    return isLong ? body.byteLength : 0;
  }

  #inPieces(body: Uint8Array): ReadableStream<Uint8Array> {
    const { report } = this;
    let rest = body;
    const stream = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          controller.enqueue(rest.subarray(0, PIECE));
          rest = rest.subarray(PIECE);
          report(rest.byteLength);
          if (rest.byteLength === 0) controller.close();
        },
        cancel: () => report(0),
      },
      { highWaterMark: 0 },
    );
    dropped.register(stream, () => report(0));
    return stream;
  }

  #begin(part: NativePart): Response {
    const { body } = part;
    const { report } = this;
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#stream = controller;
          if (body) controller.enqueue(body);
        },
        pull: () => this.#hasRead(),
        cancel: () => {
          this.#stream = undefined;
          this.leave();
          this.ended();
          report(0);
        },
      },
      { highWaterMark: MAX_UNREAD, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    dropped.register(stream, () => report(0));
    return new Response(stream, respond(part)[1]);
  }

  #write(bytes: Uint8Array): void {
    if ((this.#stream?.desiredSize ?? 1) > 0) return this.#stream?.enqueue(bytes);
    this.#fail(`the client leaves ${MAX_UNREAD} bytes unread`);
  }

  #fail(reason: string): void {
    this.leave();
    this.#finish((stream) => stream.error(new Error(reason)));
    this.ended();
  }

  #end(): void {
    this.isComplete = true;
    this.#isEnding = true;
    this.#hasRead();
    this.ended();
  }

  /** Reports what the client has read. A stream is closed once it has read all, because nothing is known of it afterwards. */
  #hasRead(): void {
    if (this.#isCounted) this.report(this.#unread());
    if (this.#isEnding && (!this.#isCounted || this.#unread() === 0)) this.#finish((stream) => stream.close());
  }

  #unread(): number {
    return MAX_UNREAD - (this.#stream?.desiredSize ?? MAX_UNREAD);
  }

  #finish(finish: (stream: ReadableStreamDefaultController<Uint8Array>) => void): void {
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream) finish(stream);
  }
}

function headOf(request: Request): Head {
  const { protocol, hostname, host, pathname, search } = new URL(request.url);
  const headers: string[] = [];
  for (const [name, value] of request.headers) headers.push(name, value);
  const named = request.headers.get("host");
  // Some hosts leave out the Host header, which the URL contains.
  if (named === null) headers.push("host", host);
  // Others make the URL of the address that they listen at. Any other name comes from a request line in absolute form, and
  // is checked as the Host header is.
  const isChecked = named === null || named.toLowerCase() === host || LOOPBACK.has(hostname);
  const target = pathname + search;
  // The host does not say to which address of this machine the request came.
  const arrival = { prefix: "", isEncrypted: protocol === "https:" };
  return { method: request.method, target: isChecked ? target : `${protocol}//${host}${target}`, headers, arrival };
}

/** Returns the body, or the reason that there is none. */
async function readBody(mounted: Mounted, admitted: Admitted, request: Request): Promise<Uint8Array | NoBody> {
  if (!request.body) return EMPTY;
  const length = request.headers.get("content-length");
  try {
    if (length !== null && Number(length) <= Math.min(SMALL_BODY, mounted.maxBody)) return new Uint8Array(await request.arrayBuffer());
    return await readStream(mounted, admitted, request.body);
  } catch {
    // The client left while sending its body; to the host this is not an error of the server.
    return "gone";
  }
}

/** Reads some of a body that nobody needs, since many clients read no answer while they send. */
async function discardBody(request: Request): Promise<void> {
  if (!request.body) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  let size = 0;
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), DISCARD_MS);
  try {
    for (let read = await reader.read(); !read.done && size < MAX_DISCARDED; read = await reader.read()) size += read.value.byteLength;
  } catch {
    // The client left while sending.
  } finally {
    clearTimeout(timer);
    await reader.cancel().catch(() => {});
  }
}

async function readStream(mounted: Mounted, admitted: Admitted, body: ReadableStream<Uint8Array>): Promise<Uint8Array | NoBody> {
  const chunks: Uint8Array[] = [];
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const cancel = (): void => void reader.cancel().catch(() => {});
  let size = 0;
  let refusal: NoBody | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.byteLength;
      // Some of a refused body is read, since many clients read no answer while they send.
      if (size > mounted.maxBody + MAX_DISCARDED) cancel();
      if (refusal !== undefined) continue;
      const left = size > mounted.maxBody ? undefined : mounted.received(admitted, size);
      clearTimeout(timer);
      if (left === undefined) {
        refusal = size > mounted.maxBody ? "too long" : "too much";
        chunks.length = 0;
        timer = setTimeout(cancel, DISCARD_MS);
        continue;
      }
      chunks.push(read.value);
      timer = setTimeout(() => {
        refusal = "too slow";
        cancel();
      }, left);
    }
  } finally {
    clearTimeout(timer);
  }
  return refusal ?? Buffer.concat(chunks, size);
}

function respond({ status, headers = [], body }: NativePart): [Uint8Array<ArrayBuffer> | null, ResponseInit] {
  const pairs: [string, string][] = [];
  for (let at = 0; at < headers.length; at += 2) pairs.push([headers[at] ?? "", headers[at + 1] ?? ""]);
  return [(body as Uint8Array<ArrayBuffer> | undefined) ?? null, { status: status ?? 500, headers: pairs }];
}
