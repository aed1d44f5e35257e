import { checked, type NativeServer, type NativeVerification } from "../native.js";
import { InsufficientScope, InvalidToken } from "../model/auth-errors.js";
import { strings } from "../model/auth-options.js";
import { typeName } from "../model/display.js";
import { principalToJson } from "../model/principal.js";
import type { RequestInfo, Verify } from "../model/types/auth.js";
import type { Logger } from "../model/types/logging.js";
import type { Principal } from "../model/types/server.js";
import { isObject } from "../model/values.js";
import { declarationOf } from "../model/verifiers.js";
import { passedTo } from "./store.js";

/** The head of a request as the native half writes it. */
interface Head {
  readonly method: string;
  readonly path: string;
  readonly headers: [name: string, value: string][];
  readonly client: string | null;
}

/**
 * Gives the native half the methods by which a server authenticates its callers. Returns the functions among them, which the server has to
 * keep.
 *
 * @throws TypeError if a method can't work.
 */
export function setMethods(
  native: NativeServer, auth: unknown, scopeImplies: object | undefined, place: string, logger: Logger,
): Verifiers {
  const functions = new Map<number, Verify>();
  const methods = (Array.isArray(auth) ? auth : [auth]).map((method: unknown, at) => {
    const declaration = typeof method === "string" ? { kind: "jwt", issuer: method } : declarationOf(method);
    if (declaration) return declaration;
    if (typeof method !== "function") {
      throw new TypeError(
        `${place}: auth takes the URL of an issuer, the result of a function of gudgeon/auth, such as jwt(), a function of a token, or a ` +
          `list of these, not ${typeName(method)}`,
      );
    }
    functions.set(at, method as Verify);
    return { kind: "verify" };
  });
  const verifiers = new Verifiers(functions, logger);
  const json = JSON.stringify({ methods, scopeImplies });
  checked(place, () => native.setAuth(json, passedTo(new WeakRef(verifiers))));
  return verifiers;
}

/** Returns the scopes that scopes include; throws a TypeError for anything but an object of lists. */
export function hierarchyOf(place: string, given: unknown): object | undefined {
  if (given === undefined) return undefined;
  if (isObject(given) && Object.values(given).every((scopes) => strings(scopes) === undefined)) return given;
  throw new TypeError(`${place}: scopeImplies must be an object of lists, such as { "books:write": ["books:read"] }`);
}

/** Calls the functions of a program that verify tokens. */
export class Verifiers {
  constructor(
    private readonly functions: ReadonlyMap<number, Verify>,
    private readonly logger: Logger,
  ) {}

  async run(verification: NativeVerification): Promise<void> {
    try {
      verification.reply(await this.#reply(verification));
    } catch (error) {
      this.logger.error("auth: a function that verifies tokens failed, so the request is answered with 500:", error);
      verification.reply('"failed"');
    }
  }

  /** Returns the reply for the native half, as JSON. */
  async #reply(verification: NativeVerification): Promise<string> {
    try {
      const found: unknown = await this.functions.get(verification.method)?.(verification.token(), requestOf(verification.request()));
      if (found === undefined || found === null) return '"unknown"';
      if (isObject(found)) return `{"principal":${principalToJson(found as unknown as Principal)}}`;
      throw new TypeError(
        `auth returned ${typeName(found)}; return a principal such as { subject: "ada", scopes: new Set(["read"]), claims: {} }, or undefined ` +
          "for a token that is not valid",
      );
    } catch (error) {
      if (error instanceof InvalidToken) return JSON.stringify({ invalid: error.message });
      if (error instanceof InsufficientScope) return JSON.stringify({ insufficientScope: { scopes: error.scopes, message: error.message } });
      throw error;
    }
  }
}

/** Returns a request as functions see it. Its headers, which have secrets, are not shown. */
function requestOf(json: string): RequestInfo {
  const { method, path, headers, client } = JSON.parse(json) as Head;
  const info = { method, path, client: client ?? undefined };
  return Object.defineProperty(info, "headers", { value: new Headers(headers) }) as typeof info & { headers: Headers };
}
