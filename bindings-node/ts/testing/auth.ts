/** An authorization server for tests: `gudgeon/testing/auth`. */

import { checkAuthOptions, duration, filled, jsonObject, type Known, strings } from "../model/auth-options.js";
import { oneOf, yesOrNo } from "../model/checks.js";
import { checked, native, type NativeAuthorizationServer, placed } from "../native.js";
import type { AnsweredRequest, AuthFaults, AuthorizationServerOptions, IdentityTokenOptions, KeyPair, TokenOptions } from "./auth-types.js";

export type { AnsweredRequest, AuthFaults, AuthorizationServerOptions, IdentityTokenOptions, KeyPair, TokenOptions };

const PLACE = "AuthorizationServer.listen()";
const DEFAULT_LIFE_MS = 3_600_000;

const lifetime = (value: unknown): string | undefined =>
  typeof value === "number" && Number.isFinite(value) ? undefined : "must be a number of milliseconds, negative for a token that has expired";
const count = (value: unknown): string | undefined => (Number.isInteger(value) && (value as number) >= 0 ? undefined : "must be a whole number, 0 or more");
const clients = (value: unknown): string | undefined =>
  Array.isArray(value) && value.every((one) => jsonObject(one) === undefined) ? undefined : 'must be a list of clients such as [{ client_id: "app" }]';
const documents = (value: unknown): string | undefined =>
  strings(value) === undefined || jsonObject(value) === undefined ? undefined : "must be an object of documents by URL, or a list of URLs";
const key = (value: unknown): string | undefined =>
  filled(value) === undefined || jsonObject(value) === undefined ? undefined : "must be a public JWK, or its thumbprint";

const SERVER: Known = {
  checks: {
    port: count, subject: filled, scopes: strings, resources: strings, clients, clientDocuments: documents, registration: yesOrNo,
    consent: oneOf("automatic", "page", "deny"), tokenFormat: oneOf("jwt", "opaque"), expiresInMs: duration, refreshTokens: yesOrNo,
    dpop: oneOf("optional", "required", "nonce"), trustedIssuers: strings, faults: jsonObject,
  },
};
const FAULTS: Known = {
  checks: {
    delayMs: duration, errors: jsonObject, metadataIssuer: filled, responseIssuer: filled, noPkce: yesOrNo, metadataBytes: count,
    expiredTokens: yesOrNo, refuseRegistration: yesOrNo, rotateKeys: yesOrNo,
  },
};
const TOKEN: Known = {
  checks: { subject: filled, scopes: strings, audience: filled, expiresInMs: lifetime, dpopKey: key, clientId: filled, claims: jsonObject },
};
const IDENTITY_TOKEN: Known = { checks: { subject: filled, expiresInMs: lifetime } };
const ROTATION: Known = { checks: { keepFormer: yesOrNo } };

/**
 * An authorization server on this machine, with a user who agrees to everything.
 *
 * It offers: metadata (RFC 8414, OpenID Connect Discovery), the authorization endpoint with PKCE (S256), tokens for codes, refresh
 * tokens (each used once; reuse revokes all tokens of the grant), client credentials, assertions of other issuers and token exchange
 * (enterprise-managed authorization, workload identity), dynamic registration (RFC 7591), client-id metadata documents,
 * introspection (RFC 7662), revocation (RFC 7009), proofs of possession (DPoP, RFC 9449), and resource indicators (RFC 8707). A
 * server for tests only: it is not for users.
 *
 * Limits: 1,000 registered clients, 10,000 grants, access tokens and recorded requests, of which the oldest are forgotten; 256
 * connections; bodies of 256 KiB.
 *
 * @example
 * ```ts
 * import { AuthorizationServer } from "gudgeon/testing/auth";
 *
 * const provider = await AuthorizationServer.listen({ scopes: ["books"] });
 * const token = provider.token({ scopes: ["books"], audience: "https://shelf.example.com/mcp" });
 * console.log(token.split(".").length); // 3
 * await provider.close();
 * ```
 */
export class AuthorizationServer {
  readonly #native: NativeAuthorizationServer;

  private constructor(started: NativeAuthorizationServer) {
    this.#native = started;
  }

  /**
   * Starts a server.
   *
   * @throws TypeError if an option is unknown or can't be used; Error if the port is in use.
   */
  static async listen(options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> {
    checkAuthOptions(PLACE, SERVER, options);
    const { clientDocuments, expiresInMs, faults, ...others } = options;
    const declared = { ...others, clientDocuments: documentsByUrl(clientDocuments), expiresIn: seconds(expiresInMs), faults: declaredFaults(PLACE, faults) };
    const started = native().NativeAuthorizationServer.listen(JSON.stringify(declared));
    return new AuthorizationServer(await started.catch((error: unknown) => Promise.reject(placed(PLACE, error))));
  }

  /** The URL, for `auth` of servers and `issuer` of clients. */
  get issuer(): string {
    return this.#native.issuer;
  }

  /** The requests that were answered so far, without secrets. */
  get requests(): readonly AnsweredRequest[] {
    return JSON.parse(this.#native.requests()) as AnsweredRequest[];
  }

  /**
   * Issues an access token without a request.
   *
   * @throws TypeError if an option is unknown or can't be used.
   */
  token(options: TokenOptions = {}): string {
    checkAuthOptions("token()", TOKEN, options);
    const { expiresInMs, ...others } = options;
    return checked("token()", () => this.#native.token(JSON.stringify({ ...others, expiresIn: seconds(expiresInMs) })));
  }

  /** Issues an identity token (OpenID Connect) of a user for the client that signed the user in, without a request. */
  identityToken(clientId: string, options: IdentityTokenOptions = {}): string {
    checkAuthOptions("identityToken()", IDENTITY_TOKEN, options);
    const { subject = null, expiresInMs = DEFAULT_LIFE_MS } = options;
    return this.#native.identityToken(clientId, subject, expiresInMs / 1_000);
  }

  /**
   * Opens a URL of this server as the user's browser does. Returns the URL to which the browser is redirected. A fault `delayMs`
   * has no effect on it.
   *
   * For `oauth({ onRedirect: provider.browse })`. It rejects with a TypeError for a URL of another server, and with an Error if the
   * server does not redirect the browser: it shows an error, or asks with `consent: "page"`.
   */
  readonly browse = (url: string): Promise<string> => this.#native.browse(url).catch((error: unknown) => Promise.reject(placed("browse()", error)));

  /**
   * Signs tokens with a new key.
   *
   * A Gudgeon server fetches the key set for the first token with a new key, at most once in 30 seconds. It refuses tokens of keys
   * that are newer until then.
   *
   * @param options - `keepFormer`: whether the former key stays published, so that its tokens remain valid. Default: true; the
   *   last four are kept.
   */
  rotateKeys(options: { readonly keepFormer?: boolean | undefined } = {}): void {
    checkAuthOptions("rotateKeys()", ROTATION, options);
    this.#native.rotateKeys(options.keepFormer ?? true);
  }

  /** Revokes all codes, refresh tokens and access tokens. Access tokens that are JWTs stay valid for servers that do not introspect them. */
  revokeAll(): void {
    this.#native.revokeAll();
  }

  /**
   * Replaces the faults, while the server runs. Default: no fault.
   *
   * @throws TypeError if a fault is unknown or can't be used.
   */
  setFaults(faults: AuthFaults = {}): void {
    checked("setFaults()", () => this.#native.setFaults(JSON.stringify(declaredFaults("setFaults()", faults))));
  }

  /** Closes the port and all connections. */
  async close(): Promise<void> {
    this.#native.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Creates a private key for ES256. */
export function generateKey(): KeyPair {
  const [privateKey = "", publicKey = ""] = native().NativeAuthorizationServer.keyPair();
  return { privateKey, publicKey: JSON.parse(publicKey) as KeyPair["publicKey"] };
}

function declaredFaults(place: string, faults: AuthFaults | undefined): object | undefined {
  if (faults === undefined) return undefined;
  checkAuthOptions(`${place}: faults`, FAULTS, faults);
  const { delayMs, ...others } = faults;
  return { ...others, delay: seconds(delayMs) };
}

function documentsByUrl(given: AuthorizationServerOptions["clientDocuments"]): object | undefined {
  return Array.isArray(given) ? Object.fromEntries(given.map((url: string) => [url, null])) : (given as object | undefined);
}

function seconds(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : milliseconds / 1_000;
}
