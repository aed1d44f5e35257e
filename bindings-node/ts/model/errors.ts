import { brandAs, brandClass } from "./brand.js";
import { type ErrorDetails, type ErrorKind, McpError } from "./mcp-error.js";
import { ToolResult } from "./results.js";
import type { ElicitRequest } from "./types/client.js";
import type { Meta } from "./types/content.js";

export { McpError, type ErrorDetails, type ErrorKind };

/** Further properties of errors of a connection. */
interface ConnectionDetails extends ErrorDetails {
  exitStatus?: number | undefined;
  signal?: string | undefined;
  stderr?: string | undefined;
  systemCode?: string | undefined;
}

/** No connection could be made: the server was not reached, did not start, or failed before its first answer. */
export class ConnectFailed extends McpError {
  /** The exit status of the command, if it has exited; after a signal, the negative number of the signal. */
  readonly exitStatus: number | undefined;
  /** The signal that ended the command, such as "SIGKILL". */
  readonly signal: string | undefined;
  /** The last lines that the command wrote to stderr. */
  readonly stderr: string;
  /** The operating system's error, such as "ECONNREFUSED" or "ENOENT"; `cause` is that error, with the same as its `code`. */
  readonly systemCode: string | undefined;

  constructor(message?: string, details: ConnectionDetails = {}) {
    super(message, { kind: "connect", ...details });
    this.exitStatus = details.exitStatus;
    this.signal = details.signal;
    this.stderr = details.stderr ?? "";
    this.systemCode = details.systemCode;
  }
}

/** The server went away while a call was in flight. */
export class ConnectionLost extends McpError {
  /** As in `ConnectFailed`, like the three below. */
  readonly exitStatus: number | undefined;
  readonly signal: string | undefined;
  readonly stderr: string;
  readonly systemCode: string | undefined;

  constructor(message?: string, details: ConnectionDetails = {}) {
    super(message, { ...details, kind: "lost" });
    this.exitStatus = details.exitStatus;
    this.signal = details.signal;
    this.stderr = details.stderr ?? "";
    this.systemCode = details.systemCode;
  }
}

/** No answer arrived in time; `timeoutMs` of the client or the call sets the limit. */
export class CallTimeout extends McpError {
  constructor(message?: string, details?: ErrorDetails) {
    super(message, { ...details, kind: "timeout" });
  }
}

/** No answer while connecting: an instance of both `ConnectFailed` and `CallTimeout`; `kind` is `"timeout"`. */
export class ConnectTimeout extends ConnectFailed {
  constructor(message?: string, details: ConnectionDetails = {}) {
    super(message, { ...details, kind: "timeout" });
  }
}

/** Authorization failed. `status` is 401 or 403. Spec: Base Protocol › Authorization. */
export class AuthError extends McpError {
  /** The response's `WWW-Authenticate` header, if it had one; several are joined by commas. */
  readonly wwwAuthenticate: string | undefined;

  constructor(message?: string, details: ErrorDetails & { wwwAuthenticate?: string | undefined } = {}) {
    super(message, { ...details, kind: "auth" });
    this.wwwAuthenticate = details.wwwAuthenticate;
  }
}

/** The peer, or the negotiated revision, does not support the request. */
export class NotSupported extends McpError {
  constructor(message?: string, details?: ErrorDetails) {
    super(message, { ...details, kind: "unsupported" });
  }
}

/** A JSON-RPC error. Thrown in a handler it is sent to the client unchanged. Spec: Base Protocol › Messages. */
export class ProtocolError extends McpError {
  constructor(code: number, message: string, data?: unknown, details?: ErrorDetails) {
    super(message, { ...details, kind: "protocol", code, data });
  }
}

/** -32042, 2025-11-25: the user must visit pages before the call can be made. Spec: Elicitation › URL mode. */
export class UrlElicitationRequired extends McpError {
  readonly elicitations: readonly ElicitRequest[];

  constructor(message?: string, details: ErrorDetails & { elicitations?: readonly ElicitRequest[] | undefined } = {}) {
    super(message, { ...details, kind: "protocol", code: -32042 });
    this.elicitations = details.elicitations ?? [];
  }
}

/** No such resource: -32002 up to 2025-11-25, -32602 from 2026-07-28. Spec: Resources › Error handling. */
export class ResourceNotFound extends McpError {
  constructor(uri: string, message?: string, details?: ErrorDetails) {
    super(message ?? `Resource not found: ${uri}`, { ...details, kind: "notFound", data: { uri } });
  }
}

/**
 * A tool's failure, whose message is sent to the model so that it can correct the call. Spec: Server Features › Tools ›
 * Error handling.
 *
 * @example
 * ```ts
 * import { Client, Server, ToolError } from "gudgeon";
 *
 * const app = new Server("shelf");
 * app.tool("lend", {}, () => {
 *   throw new ToolError("Dune is lent already.");
 * });
 *
 * const client = await Client.connect(app);
 * await client.callTool("lend").catch((error: unknown) => {
 *   if (error instanceof ToolError) console.log(error.text); // Dune is lent already.
 * });
 * await client.close();
 * ```
 */
export class ToolError extends McpError {
  readonly text: string;
  readonly result: ToolResult;

  /** `meta` becomes the result's `_meta`. */
  constructor(message: string, meta?: Meta, details: ErrorDetails & { result?: ToolResult | undefined } = {}) {
    super(message, { ...details, kind: "tool" });
    this.result = details.result ?? new ToolResult(message, { isError: true, meta });
    this.text = this.result.text;
  }
}

/** The user declined a question. */
export class Declined extends McpError {
  constructor(message?: string, details?: ErrorDetails) {
    super(message, { ...details, kind: "declined" });
  }
}

/** The user closed a question without an answer, or a call was cancelled; by a signal, its `name` is "AbortError". */
export class Cancelled extends McpError {
  constructor(message?: string, details?: ErrorDetails) {
    super(message, { ...details, kind: "cancelled" });
  }
}

const CLASSES = {
  McpError,
  ConnectFailed,
  ConnectionLost,
  CallTimeout,
  ConnectTimeout,
  AuthError,
  NotSupported,
  ProtocolError,
  UrlElicitationRequired,
  ResourceNotFound,
  ToolError,
  Declined,
  Cancelled,
};

for (const [name, made] of Object.entries(CLASSES)) {
  brandClass(name, made);
  Object.defineProperty(made.prototype, "name", { value: name, writable: true, configurable: true });
}
brandAs("CallTimeout", ConnectTimeout);
