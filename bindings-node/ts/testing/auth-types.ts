/** Options of `AuthorizationServer.listen()`. */
export interface AuthorizationServerOptions {
  /** The port of 127.0.0.1. Default: 0, any free port. */
  port?: number | undefined;
  /** The user who signs in. Default: "user". */
  subject?: string | undefined;
  /** The scopes that may be requested. Default: any. */
  scopes?: readonly string[] | undefined;
  /** The URLs of MCP servers that tokens may be for. Default: any. */
  resources?: readonly string[] | undefined;
  /**
   * Clients that are registered from the start, with the names of RFC 7591: `client_id`, and if there is a secret or key
   * `client_secret` or `jwks`, also `redirect_uris` (default: `/callback` at any port of 127.0.0.1 and localhost),
   * `token_endpoint_auth_method`, `grant_types` (default: every grant) and `client_name`.
   */
  clients?: readonly Readonly<Record<string, unknown>>[] | undefined;
  /**
   * Client-id metadata documents: their contents by URL, or a list of URLs that may be fetched. Default: none, and the metadata say
   * that they are not supported.
   */
  clientDocuments?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | readonly string[] | undefined;
  /** True to let clients register themselves. Default: true. */
  registration?: boolean | undefined;
  /** "automatic" (default): the user agrees. "page": a page asks. "deny": the user declines. */
  consent?: "automatic" | "page" | "deny" | undefined;
  /** "jwt" (default) or "opaque". */
  tokenFormat?: "jwt" | "opaque" | undefined;
  /** The life of access tokens in milliseconds, at most ten years. Default: one hour. */
  expiresInMs?: number | undefined;
  /** True to exchange codes for refresh tokens too. Default: true. */
  refreshTokens?: boolean | undefined;
  /**
   * "optional" (default): tokens are bound to a key for clients that send a proof. "required": for all. "nonce": for all, and
   * proofs need a nonce.
   */
  dpop?: "optional" | "required" | "nonce" | undefined;
  /** Other issuers whose assertions are exchanged for tokens; their keys are fetched. The server trusts itself. */
  trustedIssuers?: readonly string[] | undefined;
  /** Deviations from a correct server. Default: none. */
  faults?: AuthFaults | undefined;
}

/** Ways in which an `AuthorizationServer` deviates from a correct one. By default, it does not. */
export interface AuthFaults {
  /** Milliseconds before each response, at most 600,000. Default: 0. */
  delayMs?: number | undefined;
  /** The number of requests to an endpoint that are answered with status 500. */
  errors?: Readonly<Partial<Record<"metadata" | "authorize" | "token" | "register" | "jwks" | "introspect" | "revoke", number>>> | undefined;
  /** The issuer that the metadata name in place of the right one. */
  metadataIssuer?: string | undefined;
  /** The issuer (`iss`) that authorization responses name in place of the right one. */
  responseIssuer?: string | undefined;
  /** The metadata do not say that PKCE is supported. */
  noPkce?: boolean | undefined;
  /** The minimum size of the metadata in bytes, at most 67,108,864. Default: 0. */
  metadataBytes?: number | undefined;
  /** Tokens have expired before they are issued. */
  expiredTokens?: boolean | undefined;
  /** Registrations of clients are refused. */
  refuseRegistration?: boolean | undefined;
  /** After each token that is issued to a client, the key is replaced, and the former one is no longer published. */
  rotateKeys?: boolean | undefined;
}

/** Options of `AuthorizationServer.token()`. */
export interface TokenOptions {
  /** The user. Default: the server's `subject`. */
  subject?: string | undefined;
  /** The scopes that it grants. Default: none. */
  scopes?: readonly string[] | undefined;
  /** The URL of the MCP server that it is for. Default: the issuer. */
  audience?: string | undefined;
  /** Milliseconds until it expires, negative for one that has expired. Default: the server's `expiresInMs`. */
  expiresInMs?: number | undefined;
  /** The key that it is bound to: a public JWK, or its thumbprint. Default: none. */
  dpopKey?: Readonly<Record<string, unknown>> | string | undefined;
  /** The client that it is issued to. Default: "test". */
  clientId?: string | undefined;
  /** Further claims, which replace others of the same name. */
  claims?: Readonly<Record<string, unknown>> | undefined;
}

/** Options of `AuthorizationServer.identityToken()`. */
export interface IdentityTokenOptions {
  /** The user. Default: the server's `subject`. */
  subject?: string | undefined;
  /** Milliseconds until it expires, negative for one that has expired. Default: one hour. */
  expiresInMs?: number | undefined;
}

/** A request that an `AuthorizationServer` answered. */
export interface AnsweredRequest {
  readonly method: string;
  readonly path: string;
  /** The fields of the query, form or JSON body. Secrets, codes and tokens are `…`. */
  readonly form: Readonly<Record<string, string>>;
  /** The status of the response. */
  readonly status: number;
}

/** A key of a client. */
export interface KeyPair {
  /** The private key as PEM, for `clientCredentials({ privateKey })`. */
  readonly privateKey: string;
  /** The public key as a JWK, for `jwks` of a client. */
  readonly publicKey: Readonly<Record<string, string>>;
}
