import type { NativePart } from "../native.js";
import type { Principal } from "../model/types/server.js";
import { type Head, MAX_UNREAD, type Mounted } from "./mounted.js";

const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
const EMPTY = new Uint8Array();
/** The bytes read beyond the limit, since many clients read no answer while they send. */
const MAX_DISCARDED = 64 * 1024 * 1024;
/** The time for which the body of a refused request is read. */
const DISCARD_MS = 1_000;

/** Answers a request of a host with the `fetch` interface. */
export async function answerFetch(mounted: Mounted, request: Request, principal?: Principal): Promise<Response> {
  await mounted.ready;
  if (request.bodyUsed || request.body?.locked) {
    throw new TypeError("app.fetch(request): the request's body was read before; pass request.clone()");
  }
  const admitted = mounted.admit({ ...headOf(request), principal });
  if (!("number" in admitted)) {
    await discardBody(request);
    return new Response(...respond(admitted));
  }
  const body = await readBody(request, mounted.maxBody);
  if (typeof body === "string") {
    const refusal = mounted.refuse(admitted);
    return body === "too long" ? new Response(...respond(refusal)) : new Response(null, { status: 400 });
  }
  return new Promise((resolve, reject) => {
    const answer = new Answer(resolve);
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

  constructor(private readonly resolve: (response: Response) => void) {}

  /** Adds a part of the response; returns the number of bytes that the client has not read. */
  take(part: NativePart): number {
    if (part.status !== undefined) this.resolve(part.more ? this.#begin(part) : new Response(...respond(part)));
    else if (part.body) this.#write(part.body);
    if (!part.more) this.#end();
    return MAX_UNREAD - (this.#stream?.desiredSize ?? MAX_UNREAD);
  }

  /** Ends the response without an error, because the client has left. */
  cut(): void {
    this.#finish((stream) => stream.close());
  }

  #begin(part: NativePart): Response {
    const { body } = part;
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#stream = controller;
          if (body) controller.enqueue(body);
        },
        cancel: () => {
          this.#stream = undefined;
          this.leave();
          this.ended();
        },
      },
      { highWaterMark: MAX_UNREAD, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    return new Response(stream, respond(part)[1]);
  }

  #write(bytes: Uint8Array): void {
    if ((this.#stream?.desiredSize ?? 1) > 0) return this.#stream?.enqueue(bytes);
    this.leave();
    this.#finish((stream) => stream.error(new Error(`the client leaves ${MAX_UNREAD} bytes unread`)));
    this.ended();
  }

  #end(): void {
    this.isComplete = true;
    this.#finish((stream) => stream.close());
    this.ended();
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
  return { method: request.method, target: isChecked ? target : `${protocol}//${host}${target}`, headers };
}

/** Returns the body, or the reason that there is none. */
async function readBody(request: Request, limit: number): Promise<Uint8Array | "too long" | "gone"> {
  if (!request.body) return EMPTY;
  const length = request.headers.get("content-length");
  try {
    if (length !== null && Number(length) <= limit) return new Uint8Array(await request.arrayBuffer());
    return await readStream(request.body, limit);
  } catch {
    // The client left while sending its body; to the host this is no error of the server.
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

async function readStream(body: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array | "too long"> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.byteLength;
    if (size <= limit) chunks.push(read.value);
    else chunks.length = 0;
    if (size > limit + MAX_DISCARDED) await reader.cancel().catch(() => {});
  }
  return size > limit ? "too long" : Buffer.concat(chunks, size);
}

function respond({ status, headers = [], body }: NativePart): [Uint8Array<ArrayBuffer> | null, ResponseInit] {
  const pairs: [string, string][] = [];
  for (let at = 0; at < headers.length; at += 2) pairs.push([headers[at] ?? "", headers[at + 1] ?? ""]);
  return [(body as Uint8Array<ArrayBuffer> | undefined) ?? null, { status: status ?? 500, headers: pairs }];
}
