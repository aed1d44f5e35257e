import { stringsIn } from "./auth-options.js";
import { brandClass } from "./brand.js";

/**
 * Refuses a request whose credentials are missing or not valid: the answer is 401. `WWW-Authenticate` says `Bearer`, with
 * `error="invalid_token"` and the message where the request has an `Authorization` header.
 *
 * Spec: RFC 6750, section 3.1.
 */
export class InvalidToken extends Error {
  /** @param message - A string for the client. Default: "the token is missing or not valid". */
  constructor(message = "the token is missing or not valid") {
    super(message);
  }
}

/**
 * Refuses a request whose credentials do not allow it: the answer is 403. `WWW-Authenticate` says `Bearer
 * error="insufficient_scope"` and names the scopes, which the client can ask for.
 *
 * Spec: RFC 6750, section 3.1.
 */
export class InsufficientScope extends Error {
  /** The scopes that are needed. */
  readonly scopes: readonly string[];

  /**
   * @param scopes - The scopes that are needed.
   * @param message - A string for the client. Default: one that names the scopes.
   * @throws TypeError if the scopes are not a list of strings.
   */
  constructor(scopes: readonly string[], message?: string) {
    const needed = stringsIn("new InsufficientScope()", "scopes", scopes);
    super(message ?? `this needs the scopes: ${needed.join(" ")}`);
    this.scopes = needed;
  }
}

for (const [name, made] of Object.entries({ InvalidToken, InsufficientScope })) {
  brandClass(name, made);
  Object.defineProperty(made.prototype, "name", { value: name, configurable: true, writable: true });
}
