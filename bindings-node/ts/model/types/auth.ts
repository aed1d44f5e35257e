import type { Maybe } from "./components.js";
import type { Principal } from "./server.js";

/** The HTTP request, or the request of a WebSocket, as a function that verifies tokens sees it. Its body has not been read. */
export interface RequestInfo {
  /** The HTTP method, such as "POST"; "GET" for a WebSocket. */
  readonly method: string;
  /** The path as it stands in the request line, without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The address of the peer that connected; undefined where the host does not know it. */
  readonly client: string | undefined;
}

declare const verifier: unique symbol;

/** A method by which a server authenticates its callers: the result of `jwt()`, `introspection()` or `apiKeys()`. */
export interface Verifier {
  readonly [verifier]: true;
}

/**
 * Returns the owner of a token, or undefined for a token that is not valid. It may throw `InvalidToken` or `InsufficientScope`;
 * anything else that it throws or returns, and more than 15 seconds, is answered with 500.
 */
export type Verify = (token: string, request: RequestInfo) => Maybe<Principal | undefined>;

/** A method by which a server authenticates its callers: the URL of an issuer of JWTs, a verifier, or a function. */
export type Auth = string | Verifier | Verify;

/** Options of `jwt()`. */
export interface JwtOptions {
  /** The URL of the authorization server, exactly as tokens name it in `iss`. */
  issuer: string;
  /** The accepted values of `aud`. Default: the URL of this server (`publicUrl`, or the address). */
  audience?: string | readonly string[] | undefined;
  /** The URL of the issuer's key set. Default: the one in the issuer's metadata. */
  jwksUrl?: string | undefined;
  /** The keys themselves, as a JSON Web Key Set. */
  keys?: object | undefined;
  /**
   * The accepted signature algorithms. Default: all that are supported: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and
   * EdDSA. HMAC and `none` are not supported.
   */
  algorithms?: readonly string[] | undefined;
  /** The scopes that every request needs. Default: none. */
  scopes?: readonly string[] | undefined;
  /** Milliseconds by which the clocks may differ. Default: 60,000. */
  leewayMs?: number | undefined;
  /**
   * True accepts tokens that are bound to a key, with a proof, beside others; `"required"` refuses the others; `"nonce"` also
   * requires proofs with a nonce of this server; false refuses tokens that are bound. Default: true.
   */
  dpop?: boolean | "required" | "nonce" | undefined;
}

/** Options of `introspection()`. */
export interface IntrospectionOptions {
  /** The introspection endpoint. */
  url: string;
  /** The credentials of this server there. */
  clientId: string;
  clientSecret: string;
  /**
   * The URL of the authorization server, for clients that look for it. An answer with another `iss` is refused. Default: no
   * Protected Resource Metadata is served, so clients must know the authorization server.
   */
  issuer?: string | undefined;
  /** The accepted values of `aud`, which the answer must have. Default: the URL of this server, if the answer has `aud`. */
  audience?: string | readonly string[] | undefined;
  /** The scopes that every request needs. Default: none. */
  scopes?: readonly string[] | undefined;
  /** Milliseconds for which an answer is kept. Default: 60,000. */
  cacheMs?: number | undefined;
}

/** Options of `apiKeys()`. */
export interface ApiKeysOptions {
  /**
   * The header that keys come in: `"Authorization"`, with `Bearer` before the key, or one of your own, such as `"X-Api-Key"`,
   * with the key alone. Default: `"Authorization"`.
   */
  header?: string | undefined;
}
