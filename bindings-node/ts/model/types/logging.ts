/**
 * A destination of log messages; `console` is one, as are the loggers of pino and winston. `detail` is an error, or an
 * object with the fields of an event: `event` is its name, such as `http.refused`; docs/logs.md lists all events. A method that
 * throws stops nothing.
 */
export interface Logger {
  debug(message: string, detail?: unknown): void;
  info(message: string, detail?: unknown): void;
  warn(message: string, detail?: unknown): void;
  error(message: string, detail?: unknown): void;
}
