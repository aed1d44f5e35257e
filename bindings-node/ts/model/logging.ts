import { debuglog, inspect } from "node:util";

import { activeIds } from "./tracing.js";
import type { Logger } from "./types/logging.js";

/** Writes to stderr if NODE_DEBUG contains "gudgeon". */
const debug = debuglog("gudgeon");

/** Warnings and errors go to stderr; the rest as well if the environment variable NODE_DEBUG contains "gudgeon". */
const TEXT_LOGGER: Logger = {
  debug: (message, detail) => debug("%s", ...parts(message, detail)),
  info: (message, detail) => debug("%s", ...parts(message, detail)),
  warn: (message, detail) => write(parts(message, detail)),
  error: (message, detail) => write(parts(message, detail)),
};

/** Writes one JSON object a line to stderr; details at level debug if the environment variable NODE_DEBUG contains "gudgeon". */
const JSON_LOGGER: Logger = {
  debug: (message, detail) => void (debug.enabled && write([jsonLine("debug", message, detail)])),
  info: (message, detail) => write([jsonLine("info", message, detail)]),
  warn: (message, detail) => write([jsonLine("warn", message, detail)]),
  error: (message, detail) => write([jsonLine("error", message, detail)]),
};

/** True if logs are written as JSON, because `gudgeon run --log-format json` started the program. */
export const WRITES_JSON = format() === "json";

/** The logger of servers and clients that have none of their own. */
export const DEFAULT_LOGGER: Logger = WRITES_JSON ? JSON_LOGGER : TEXT_LOGGER;

/** Bytes that wait for a reader of stderr, above which messages are dropped. */
const MAX_UNREAD = 256 * 1024;
/** The number of messages that were dropped since the last one that was written. */
let dropped = 0;

/** Writes to stderr, unless nobody reads it: Node would keep all messages. */
function write(values: unknown[]): void {
  if (process.stderr.writableLength > MAX_UNREAD) {
    dropped++;
    return;
  }
  if (dropped > 0) {
    console.error(`${dropped} log ${dropped === 1 ? "message was" : "messages were"} dropped, because standard error was not read`);
    dropped = 0;
  }
  console.error(...values);
}

function format(): string {
  const given = process.env["GUDGEON_LOG_FORMAT"] ?? "text";
  if (given === "json" || given === "text") return given;
  throw new TypeError(`GUDGEON_LOG_FORMAT: ${JSON.stringify(given)} is not a format; set it to json or text`);
}

function jsonLine(level: keyof Logger, message: string, detail: unknown): string {
  const isEvent = typeof detail === "object" && detail !== null && !(detail instanceof Error);
  const { logger = "gudgeon", ...fields } = isEvent ? (detail as Record<string, unknown>) : {};
  const entry = { time: new Date().toISOString(), level, logger, message };
  if (isEvent) return JSON.stringify(Object.keys(fields).length > 0 ? { ...entry, fields } : entry);
  return JSON.stringify(detail === undefined ? entry : { ...entry, exception: inspect(detail) });
}

/** Events of the native half that belong to the process, such as those of connections. */
export interface LogEvent {
  readonly level: keyof Logger;
  readonly logger: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The loggers in use. The ESM and the CommonJS copy of this module share them. */
const KEY = Symbol.for("gudgeon.loggers");
const shared = globalThis as { [KEY]?: WeakRef<Logger>[] };

/** Returns the logger of a server or client, which also receives the events of the process from now on. */
export function loggerOf(given: Logger | undefined): Logger {
  if (given === undefined) return DEFAULT_LOGGER;
  const known = (shared[KEY] ?? []).filter((one) => one.deref() !== undefined);
  if (!known.some((one) => one.deref() === given)) known.push(new WeakRef(given));
  shared[KEY] = known;
  return given;
}

/** Passes an event to every logger in use, or else to the default one. */
export function logEvent({ level, logger, message, fields }: LogEvent): void {
  const loggers = (shared[KEY] ?? []).flatMap((one) => one.deref() ?? []);
  const hasFields = Object.keys(fields).length > 0;
  for (const one of loggers.length > 0 ? loggers : [DEFAULT_LOGGER]) {
    if (one === JSON_LOGGER) attempt(() => one[level](message, { logger, ...fields }));
    else attempt(() => one[level](`${logger}: ${message}`, ...(hasFields ? [fields] : [])));
  }
}

/** Passes an error with the fields of its event to the logger of a server. One that throws does not stop the server. */
export function logError(logger: Logger, message: string, fields: Readonly<Record<string, unknown>>): void {
  attempt(() => logger.error(message, fields));
}

/**
 * Passes the event of a request to the logger of its server at level info. Without a logger it goes to stderr, because the program asked
 * for it.
 */
export function logRequest(logger: Logger, { logger: name, message, fields }: LogEvent): void {
  if (logger === TEXT_LOGGER) return write([message]);
  const all = { ...fields, ...activeIds() };
  attempt(() => logger.info(message, logger === JSON_LOGGER ? { logger: name, ...all } : all));
}

function attempt(log: () => void): void {
  try {
    log();
  } catch (error) {
    DEFAULT_LOGGER.error("the logger failed:", error);
  }
}

/** The sentence of an event says what its fields do. */
function parts(message: string, detail: unknown): unknown[] {
  const isEvent = typeof detail === "object" && detail !== null && "event" in detail;
  return detail === undefined || isEvent ? [message] : [message, detail];
}
