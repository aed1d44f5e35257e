import { checkAuthOptions, filled, type Known, strings } from "./auth-options.js";
import { yesOrNo } from "./checks.js";
import { typeName } from "./display.js";
import { pathOfStore } from "./file-store.js";
import { serviceOfStore } from "./keyring-store.js";
import { StoreLocks } from "./store-locks.js";
import type {
  Awaitable, ClientCredentialsOptions, EnterpriseManagedOptions, OAuthOptions, SignIn, TokenStore, WorkloadIdentityOptions,
} from "./types/auth.js";
import { isObject } from "./values.js";

/** A request of the native half to the program. */
type Request =
  | { readonly call: "token" }
  | { readonly call: "openUrl" | "redirect"; readonly url: string }
  | { readonly call: "load" | "delete" | "lock"; readonly key: string }
  | { readonly call: "unlock"; readonly lock: number }
  | { readonly call: "save"; readonly key: string; readonly value: string };

/** The credentials of a client. */
export interface Credentials {
  /** As the native half reads them. */
  readonly declared: Readonly<Record<string, unknown>>;
  /** Returns the JSON value of the answer to a request of the native half. */
  answer(request: Request): Promise<string | number | null>;
}

/** The functions that answer requests. */
interface Callbacks {
  readonly token?: (() => Awaitable<string>) | undefined;
  readonly openUrl?: ((url: string) => Awaitable<void>) | undefined;
  readonly redirect?: ((url: string) => Awaitable<string>) | undefined;
  readonly store?: TokenStore | undefined;
}

/** Identifies ways to sign in, also those of another copy of the package. */
const CREDENTIALS = Symbol.for("gudgeon.signIn");
const MAX_PORT = 65_535;

const callback = (value: unknown): string | undefined => (typeof value === "function" ? undefined : "must be a function of a URL");
const port = (value: unknown): string | undefined =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_PORT ? undefined : "must be a port, or 0 for any";
const source = (value: unknown): string | undefined =>
  typeof value === "function" || filled(value) === undefined ? undefined : "must be a string that is not empty, or a function that returns one";
const store = (value: unknown): string | undefined =>
  isObject(value) && ["get", "set", "delete"].every((name) => typeof value[name] === "function") && ["undefined", "function"].includes(typeof value["lock"])
    ? undefined
    : "must be fileStore() or keyringStore(), or have the methods get, set and delete, and lock if processes share it";

const OAUTH: Known = {
  checks: {
    clientId: filled, clientSecret: filled, issuer: filled, clientMetadataUrl: filled, scopes: strings, store, dpop: yesOrNo, redirectPort: port,
    openUrl: callback, onRedirect: callback,
  },
};
const CLIENT_CREDENTIALS: Known = {
  checks: { clientId: filled, clientSecret: filled, privateKey: filled, algorithm: filled, issuer: filled, scopes: strings, dpop: yesOrNo },
  required: ["clientId"],
};
const ENTERPRISE_MANAGED: Known = {
  checks: {
    identityToken: source, idp: filled, clientId: filled, clientSecret: filled, idpClientId: filled, idpClientSecret: filled, issuer: filled,
    scopes: strings,
  },
  required: ["identityToken", "idp", "clientId"],
};
const WORKLOAD_IDENTITY: Known = {
  checks: { token: source, clientId: filled, issuer: filled, scopes: strings },
  required: ["token"],
};

/**
 * Signs in with the user's browser, as `auth: "oauth"` does without options. Where the server requires it, the browser opens at the
 * authorization server that the server names, and the redirect is received on this machine. Tokens are renewed before they expire,
 * and more scopes are requested when the server asks for them. Concurrent calls share one sign-in.
 *
 * @throws TypeError if an option is unknown or has a wrong value.
 *
 * Spec: Authorization.
 *
 * @example
 * ```ts
 * import { oauth } from "gudgeon/auth";
 *
 * const auth = oauth({ clientId: "shelf", clientSecret: "s3cret" });
 * console.log(auth); // {}
 * ```
 */
export function oauth(options: OAuthOptions = {}): SignIn {
  checkAuthOptions("oauth()", OAUTH, options);
  const { store: given, openUrl, onRedirect, ...others } = options;
  const [path, service] = [pathOfStore(given), serviceOfStore(given)];
  const declared = {
    kind: "oauth",
    ...others,
    store: path !== undefined ? { file: path } : service !== undefined ? { keyring: service } : given && (given.lock ? "shared" : "own"),
    opensUrl: openUrl !== undefined,
    handlesRedirect: onRedirect !== undefined,
  };
  return signIn(credentials(declared, { openUrl, redirect: onRedirect, store: given }));
}

/**
 * Signs in as the program itself, without a user.
 *
 * @throws TypeError if an option is unknown or has a wrong value, or not exactly one of `clientSecret` and `privateKey` is given.
 *
 * Spec: extension io.modelcontextprotocol/oauth-client-credentials.
 */
export function clientCredentials(options: ClientCredentialsOptions): SignIn {
  const place = "clientCredentials()";
  checkAuthOptions(place, CLIENT_CREDENTIALS, options);
  if ((options.clientSecret === undefined) === (options.privateKey === undefined)) throw new TypeError(`${place}: pass either clientSecret or privateKey`);
  return signIn(credentials({ kind: "clientCredentials", ...options }));
}

/**
 * Exchanges the user's identity token at the organisation's identity provider for access to the server.
 *
 * @throws TypeError if an option is unknown or has a wrong value.
 *
 * Spec: extension io.modelcontextprotocol/enterprise-managed-authorization.
 */
export function enterpriseManaged(options: EnterpriseManagedOptions): SignIn {
  checkAuthOptions("enterpriseManaged()", ENTERPRISE_MANAGED, options);
  const { identityToken, ...others } = options;
  return signIn(credentials({ kind: "enterpriseManaged", ...others }, { token: sourceOf(identityToken) }));
}

/**
 * Exchanges a token of the platform that the program runs on. A failed exchange is not repeated.
 *
 * @throws TypeError if an option is unknown or has a wrong value.
 *
 * Spec: extension io.modelcontextprotocol/auth/wif; RFC 7523.
 */
export function workloadIdentity(options: WorkloadIdentityOptions): SignIn {
  checkAuthOptions("workloadIdentity()", WORKLOAD_IDENTITY, options);
  const { token, ...others } = options;
  return signIn(credentials({ kind: "workloadIdentity", ...others }, { token: sourceOf(token) }));
}

/** Returns the credentials that the option `auth` of a client stands for. Errors never show the value. */
export function credentialsOf(given: unknown, place: string): Credentials | undefined {
  if (given === undefined) return undefined;
  const known = isObject(given) ? (given as { readonly [CREDENTIALS]?: () => Credentials })[CREDENTIALS]?.() : undefined;
  if (known) return known;
  if (given === "oauth") return credentials({ kind: "oauth" });
  if (typeof given === "string" && given !== "") return credentials({ kind: "token", token: given });
  if (typeof given === "function") return credentials({ kind: "source" }, { token: given as () => Awaitable<string> });
  throw new TypeError(
    `${place}: auth must be "oauth", a token, a function that returns one, or the result of oauth(), clientCredentials(), enterpriseManaged() or ` +
      `workloadIdentity(), not ${given === "" ? "an empty string" : typeName(given)}`,
  );
}

function credentials(declared: Credentials["declared"], callbacks: Callbacks = {}): Credentials {
  const locks = new StoreLocks();
  return { declared, answer: (request) => answer(callbacks, locks, request) };
}

/** Returns a way to sign in. Its credentials are not shown. */
function signIn(given: Credentials): SignIn {
  return Object.defineProperty({}, CREDENTIALS, { value: () => given }) as SignIn;
}

async function answer({ token, openUrl, redirect, store: own }: Callbacks, locks: StoreLocks, request: Request): Promise<string | number | null> {
  switch (request.call) {
    case "token":
      return text(await token?.(), "the token");
    case "openUrl":
      await openUrl?.(request.url);
      return null;
    case "redirect":
      return text(await redirect?.(request.url), "the result of onRedirect");
    case "load": {
      const found: unknown = (await own?.get(request.key)) ?? null;
      if (found !== null && !(found instanceof Uint8Array)) throw new TypeError(`get() of the store must return a Uint8Array or undefined, not ${typeName(found)}`);
      return found && new TextDecoder().decode(found);
    }
    case "save":
      await own?.set(request.key, new TextEncoder().encode(request.value));
      return null;
    case "delete":
      await own?.delete(request.key);
      return null;
    case "lock":
      return locks.take(own, request.key);
    case "unlock":
      await locks.release(request.lock);
      return null;
  }
}

function text(value: unknown, what: string): string {
  if (typeof value === "string") return value;
  throw new TypeError(`${what} must be a string, not ${typeName(value)}`);
}

function sourceOf(given: string | (() => Awaitable<string>)): () => Awaitable<string> {
  return typeof given === "function" ? given : () => given;
}
