/** The kind of an error, for programs that can't use `instanceof`. */
export type ErrorKind =
  | "connect"
  | "lost"
  | "timeout"
  | "auth"
  | "protocol"
  | "unsupported"
  | "tool"
  | "notFound"
  | "declined"
  | "cancelled";

/** The details of an error beside its message. */
export interface ErrorDetails {
  cause?: unknown;
  kind?: ErrorKind | undefined;
  code?: number | undefined;
  data?: unknown;
  hint?: string | undefined;
  target?: string | undefined;
  phase?: string | undefined;
  status?: number | undefined;
}

/** The base class of Gudgeon's errors. `instanceof` works across the ESM and the CommonJS copy. */
export class McpError extends Error {
  readonly kind: ErrorKind;
  /** The JSON-RPC code, if the error came as a JSON-RPC error. */
  readonly code: number | undefined;
  readonly data: unknown;
  /** Advice on how to fix the error. */
  readonly hint: string | undefined;
  /** The URL or command. */
  readonly target: string | undefined;
  /** `"connect"`, `"negotiate"`, `"call"`, … */
  readonly phase: string | undefined;
  /** The status of the HTTP response that caused the error. */
  readonly status: number | undefined;

  constructor(message?: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = details.kind ?? "protocol";
    this.code = details.code;
    this.data = details.data;
    this.hint = details.hint;
    this.target = details.target;
    this.phase = details.phase;
    this.status = details.status;
  }
}
