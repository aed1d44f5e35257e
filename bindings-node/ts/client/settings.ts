import { toJson } from "../model/json.js";
import type { Credentials } from "../model/sign-in.js";
import type { ClientOptions } from "../model/types/client.js";
import { isObject } from "../model/values.js";

/** Returns the options of a client as the native half reads them. */
export function settingsOf(options: ClientOptions, place: string, credentials: Credentials | undefined): string {
  const {
    revision, retry, timeoutMs, maxTimeoutMs, connectTimeoutMs, clientInfo, extensions, experimental, maxMessage, maxRounds, allowedUrlSchemes,
    validate, cacheResults, roots, ca, certificate,
  } = options;
  const settings = {
    revision,
    retry: isObject(retry) ? { ...retry, deadlineMs: withoutLimit(retry.deadlineMs) } : retry,
    timeoutMs: withoutLimit(timeoutMs),
    maxTimeoutMs: withoutLimit(maxTimeoutMs),
    connectTimeoutMs: withoutLimit(connectTimeoutMs),
    clientInfo,
    extensions,
    experimental,
    maxMessage,
    maxRounds,
    allowedUrlSchemes,
    validate,
    cacheResults,
    ca: pemOf(ca),
    certificate: certificate && { cert: pemOf(certificate.cert), key: pemOf(certificate.key) },
    auth: credentials?.declared,
    callbacks: Object.entries(options).flatMap(([name, value]) =>
      (typeof value === "function" && name !== "auth") || (name === "middleware" && options.middleware?.length) ? [name] : [],
    ),
    roots: typeof roots === "function" ? undefined : roots,
  };
  return toJson(settings, `${place}, the options`);
}

/** Returns a PEM file as the native half reads it: a path or text, or the text in bytes. */
function pemOf(given: string | Uint8Array | undefined): string | { text: string } | undefined {
  return given instanceof Uint8Array ? { text: new TextDecoder().decode(given) } : given;
}

/** Returns a time limit as the native half reads it: Infinity is null. */
export function withoutLimit(given: number | undefined): number | null | undefined {
  return given === Infinity ? null : given;
}
