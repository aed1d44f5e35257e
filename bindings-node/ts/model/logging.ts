import { debuglog } from "node:util";

import type { Logger } from "./types/logging.js";

/** Writes to stderr if NODE_DEBUG contains "gudgeon". */
const debug = debuglog("gudgeon");

/** Warnings and errors go to stderr; the rest as well if the environment variable NODE_DEBUG contains "gudgeon". */
export const DEFAULT_LOGGER: Logger = {
  debug: (message, detail) => debug("%s", ...parts(message, detail)),
  info: (message, detail) => debug("%s", ...parts(message, detail)),
  warn: (message, detail) => write(parts(message, detail)),
  error: (message, detail) => write(parts(message, detail)),
};

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
    try {
      one[level](`${logger}: ${message}`, ...(hasFields ? [fields] : []));
    } catch (error) {
      DEFAULT_LOGGER.error("the logger failed:", error);
    }
  }
}

function parts(message: string, detail: unknown): unknown[] {
  return detail === undefined ? [message] : [message, detail];
}
