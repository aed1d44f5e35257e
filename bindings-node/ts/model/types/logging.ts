/**
 * A destination of log messages; `console` is one, as are the loggers of pino and winston. `detail` is an error, or an
 * object with the fields of an event.
 */
export interface Logger {
  debug(message: string, detail?: unknown): void;
  info(message: string, detail?: unknown): void;
  warn(message: string, detail?: unknown): void;
  error(message: string, detail?: unknown): void;
}
