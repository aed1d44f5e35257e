import { constants } from "node:os";
import { getSystemErrorName } from "node:util";

import {
  AuthError, CallTimeout, Cancelled, ConnectFailed, ConnectionLost, ConnectTimeout, Declined, type ErrorKind, McpError,
  NotSupported, ProtocolError, ResourceNotFound, ToolError, UrlElicitationRequired,
} from "../model/errors.js";
import { type ToolResult, toolResultFromWire } from "../model/results.js";
import type { Logger } from "../model/types/logging.js";
import { isObject } from "../model/values.js";
import { checkToolResult } from "./checks.js";
import { takeThrown } from "./middleware.js";
import { elicitRequestFromWire } from "./questions.js";

/** An error as the native half reports it. */
export interface ReportedError {
  readonly kind: ErrorKind | "connectTimeout" | "misuse";
  readonly message: string;
  readonly hint?: string;
  readonly target?: string;
  readonly phase?: string;
  readonly code?: number;
  readonly data?: unknown;
  readonly status?: number;
  readonly wwwAuthenticate?: string;
  /** The operating system's number of its error. */
  readonly errno?: number;
  /** Below zero: the number of a signal. */
  readonly exitStatus?: number;
  readonly stderr?: string;
  /** The number of the value that a callback threw, which caused the error. */
  readonly raised?: number;
  /** The number of what middleware threw; the rest is left out. */
  readonly thrown?: number;
}

const URL_ELICITATION_REQUIRED = -32042;
const MAX_RAISED = 16;
const MAX_NUMBER = 2 ** 32;

/** The values that callbacks threw last, by the numbers under which errors of the native half name them as their cause. */
const raised = new Map<number, unknown>();
let number = 0;

/** Returns the error; what middleware threw is returned as it is. */
export function errorOf(reported: ReportedError): Error {
  if (reported.thrown !== undefined) return takeThrown(reported.thrown) as Error;
  const { kind, data, ...rest } = reported;
  const details = { ...rest, cause: raised.get(reported.raised ?? -1) };
  const message = details.stderr === undefined ? details.message : `${details.message}; the end of its standard error:\n${details.stderr}`;
  switch (kind) {
    case "misuse":
      return new TypeError(details.hint === undefined ? message : `${message}: ${details.hint}`);
    case "connect":
      return new ConnectFailed(message, { ...details, ...connectionDetails(reported), data });
    case "connectTimeout":
      return new ConnectTimeout(message, { ...details, ...connectionDetails(reported), data });
    case "lost":
      return new ConnectionLost(message, { ...details, ...connectionDetails(reported), data });
    case "timeout":
      return new CallTimeout(message, { ...details, data });
    case "auth":
      return new AuthError(message, { ...details, data });
    case "unsupported":
      return new NotSupported(message, { ...details, data });
    case "tool": {
      return new ToolError(message, undefined, { ...details, result: failedResult(data) });
    }
    case "notFound": {
      const uri = isObject(data) && typeof data["uri"] === "string" ? data["uri"] : "";
      return new ResourceNotFound(uri, message, details);
    }
    case "declined":
      return new Declined(message, { ...details, data });
    case "cancelled":
      return new Cancelled(message, { ...details, data });
    default:
      return protocolError(message, data, details);
  }
}

/** Returns the result of a tool that failed; undefined if the result is invalid: the tool failed in any case. */
function failedResult(data: unknown): ToolResult | undefined {
  try {
    if (!isObject(data)) return undefined;
    checkToolResult(data);
    return toolResultFromWire(data);
  } catch {
    return undefined;
  }
}

/** Returns the names of the signal that ended the server and of the system's error. */
function connectionDetails({ errno, exitStatus = 0 }: ReportedError): { systemCode?: string; cause?: Error; signal?: string } {
  const [signal] = Object.entries(constants.signals).find(([, number]) => number === -exitStatus) ?? [];
  const systemCode = errno === undefined ? undefined : getSystemErrorName(-errno);
  return {
    ...(signal !== undefined && { signal }),
    ...(systemCode !== undefined && { systemCode, cause: Object.assign(new Error(systemCode), { code: systemCode, errno }) }),
  };
}

function protocolError(message: string, data: unknown, details: Omit<ReportedError, "kind" | "message" | "data">): McpError {
  const { code } = details;
  if (code === undefined) return new McpError(message, { ...details, data, kind: "protocol" });
  if (code !== URL_ELICITATION_REQUIRED) return new ProtocolError(code, message, data, details);
  const asked = isObject(data) && Array.isArray(data["elicitations"]) ? data["elicitations"].filter(isObject) : [];
  return new UrlElicitationRequired(message, { ...details, data, elicitations: asked.map(elicitRequestFromWire) });
}

/** Returns the reason that the server receives for a callback that threw. */
export function refusalOf(error: unknown, callback: string, logger: Logger): object {
  if (error instanceof McpError) return { kind: error.kind, message: error.message, code: error.code, data: error.data };
  logger.error(`${callback} failed:`, error);
  number = (number + 1) % MAX_NUMBER;
  raised.set(number, error);
  const [oldest] = raised.keys();
  if (raised.size > MAX_RAISED && oldest !== undefined) raised.delete(oldest);
  return { name: error instanceof Error ? error.name : typeof error, raised: number };
}
