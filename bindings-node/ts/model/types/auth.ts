import type { Principal } from "./server.js";

/** A value, or a promise of it, also one of another library. */
export type Awaitable<T> = T | PromiseLike<T>;

/** The HTTP request, or the request of a WebSocket, as a function that verifies tokens sees it. Its body has not been read. */
export interface RequestInfo {
  /** The HTTP method, such as "POST"; "GET" for a WebSocket. */
  readonly method: string;
  /** The path as it stands in the request line, without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The address of the client, which a trusted proxy may have named; undefined where the host does not know it. */
  readonly client: string | undefined;
}

declare const verifier: unique symbol;

/** A method by which a server authenticates its callers: the result of a function of `gudgeon/auth`, such as `jwt()`. */
export interface Verifier {
  readonly [verifier]: true;
}

/**
 * Returns the owner of a token, or undefined for a token that is not valid. It may throw `InvalidToken` or `InsufficientScope`;
 * anything else that it throws or returns, and more than 15 seconds, is answered with 500.
 */
export type Verify = (token: string, request: RequestInfo) => Awaitable<Principal | undefined>;

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

/** The credentials of a server at a provider, and what it asks for there. */
export interface OAuthProxyOptions {
  /** The credentials of the OAuth app. The secret may be left out if the app has none. */
  clientId: string;
  clientSecret?: string | undefined;
  /** The provider's scopes that each sign-in asks for. Default: `openid`, `profile` and `email`, or those of the provider. */
  scopes?: readonly string[] | undefined;
  /**
   * The redirect URLs that clients may have; `*` at the end stands for the rest of a path. Default: every URL with https, on a
   * loopback address, or with a scheme of an app.
   */
  allowedRedirects?: readonly string[] | undefined;
}

/** Options of a function of `providers`: as of `oauthProxy()`, and what the provider needs, such as `domain`. */
export interface ProviderOptions extends Omit<OAuthProxyOptions, "clientId"> {
  /** The id of the OAuth app. Without it, MCP clients register at the provider themselves. */
  clientId?: string | undefined;
  [more: string]: unknown;
}

/** Functions that return a verifier for a known provider. */
export type Providers = Readonly<
  Record<
    | "auth0" | "azure" | "clerk" | "cognito" | "descope" | "discord" | "entra" | "github" | "google" | "keycloak" | "okta" | "scalekit"
    | "supabase" | "workos",
    (options: ProviderOptions) => Verifier
  >
> &
  Readonly<Record<string, ((options: ProviderOptions) => Verifier) | undefined>>;

/**
 * Keeps tokens and registrations. Values are secret: JSON records in UTF-8. If a method throws, the sign-in fails with an
 * `AuthError`; a failure to store tokens is only logged.
 */
export interface TokenStore {
  /** Returns the value that was stored last under the key, or undefined. */
  get(key: string): Awaitable<Uint8Array | undefined>;
  set(key: string, value: Uint8Array): Awaitable<void>;
  /** Removes the value of a key, if the store has one. */
  delete(key: string): Awaitable<void>;
  /**
   * Waits for the lock of a key, in which one of the processes that share the store renews tokens: a provider may revoke all if two
   * use the same refresh token. Returns a function that releases the lock. If the lock is not free within 30 seconds, the sign-in
   * fails. A lock that is kept in a database needs an end of its own, for a process that is killed. Without this method each process
   * renews tokens for itself.
   */
  lock?(key: string): Awaitable<() => Awaitable<void>>;
}

declare const signIn: unique symbol;

/** A way in which a client signs in: the result of `oauth()`, `clientCredentials()`, `enterpriseManaged()` or `workloadIdentity()`. */
export interface SignIn {
  readonly [signIn]: true;
}

/** The credentials of a client: `"oauth"`, an access token, a function that returns one, or a way to sign in. */
export type ClientAuth = string | (() => Awaitable<string>) | SignIn;

/** Options of `oauth()`. */
export interface OAuthOptions {
  /**
   * The client as it was registered with the authorization server. Default: the URL of `clientMetadataUrl` where that is supported,
   * else the client registers itself.
   */
  clientId?: string | undefined;
  clientSecret?: string | undefined;
  /**
   * The URL of the authorization server that knows `clientId`, exactly as its metadata name it. The client signs in there only.
   * Needs `clientId`. Default: the first one that the server names.
   */
  issuer?: string | undefined;
  /** The https URL of a client-id metadata document. */
  clientMetadataUrl?: string | undefined;
  /** Scopes that are requested in addition to those that the server asks for. Default: none. */
  scopes?: readonly string[] | undefined;
  /** Keeps tokens and registrations: `fileStore()`, `keyringStore()`, or a store of your own. Default: memory, until the client is gone. */
  store?: TokenStore | undefined;
  /** True if tokens must be bound to a key of this client (RFC 9449). Default: false. */
  dpop?: boolean | undefined;
  /**
   * The port of the redirect URL `http://127.0.0.1:<port>/callback`. Default: 0, any free port; with `onRedirect`, the port of the
   * last registration, or else 3000.
   */
  redirectPort?: number | undefined;
  /** Called with the URL to open, in place of the browser. */
  openUrl?: ((url: string) => Awaitable<void>) | undefined;
  /**
   * Called with the URL to open; returns the URL to which the browser was redirected. For programs where no listener is
   * possible.
   */
  onRedirect?: ((url: string) => Awaitable<string>) | undefined;
}

/** Options of `clientCredentials()`. */
export interface ClientCredentialsOptions {
  /** The client as it was registered with the authorization server. */
  clientId: string;
  /** The secret of the client. Exactly one of `clientSecret` and `privateKey` is required. */
  clientSecret?: string | undefined;
  /** The private key of the client, PKCS#8 as PEM, with which it signs `private_key_jwt` assertions (RFC 7523). */
  privateKey?: string | undefined;
  /** The algorithm of the key: ES256, ES384, RS256, RS384, RS512, PS256 or EdDSA. Default: ES256. */
  algorithm?: string | undefined;
  /**
   * The URL of the authorization server that knows the client, exactly as its metadata name it. Credentials are sent there only.
   * Default: the first one that the server names.
   */
  issuer?: string | undefined;
  /** Scopes that are requested in addition to those that the server asks for. Default: none. */
  scopes?: readonly string[] | undefined;
  /** True if tokens must be bound to a key of this client (RFC 9449). Default: false. */
  dpop?: boolean | undefined;
}

/** Options of `enterpriseManaged()`. */
export interface EnterpriseManagedOptions {
  /** The ID token of the user, or a function that returns it. */
  identityToken: string | (() => Awaitable<string>);
  /** The issuer of the identity provider. */
  idp: string;
  /** The client as the server's authorization server knows it. */
  clientId: string;
  clientSecret?: string | undefined;
  /** The client as the identity provider knows it. Default: `clientId` and `clientSecret`. */
  idpClientId?: string | undefined;
  idpClientSecret?: string | undefined;
  /**
   * The URL of the authorization server that knows the client, exactly as its metadata name it. Credentials are sent there only.
   * Default: the first one that the server names.
   */
  issuer?: string | undefined;
  /** Scopes that are requested in addition to those that the server asks for. Default: none. */
  scopes?: readonly string[] | undefined;
}

/** Options of `workloadIdentity()`. */
export interface WorkloadIdentityOptions {
  /** The platform's token, or a function that returns it. */
  token: string | (() => Awaitable<string>);
  /** The client as the authorization server knows it. */
  clientId?: string | undefined;
  /**
   * The URL of the authorization server that accepts the token, exactly as its metadata name it. The token is sent there only.
   * Default: the first one that the server names.
   */
  issuer?: string | undefined;
  /** Scopes that are requested in addition to those that the server asks for. Default: none. */
  scopes?: readonly string[] | undefined;
}
