import { createRequire } from "node:module";

import { audience, checkAuthOptions, duration, filled, jsonObject, type Known, strings } from "./auth-options.js";
import { parseJson } from "./big-integers.js";
import { type PrincipalJson, principalToJson } from "./principal.js";
import type { ApiKeysOptions, IntrospectionOptions, JwtOptions, Verifier } from "./types/auth.js";
import type { Principal } from "./types/server.js";
import { isObject } from "./values.js";

/** A method as the native half reads it. */
type Declaration = Readonly<Record<string, unknown>>;

/** Identifies verifiers, also those of another copy of the package. */
const DECLARATION = Symbol.for("gudgeon.verifier");

const JWT: Known = {
  checks: {
    issuer: filled,
    audience,
    jwksUrl: filled,
    keys: jsonObject,
    algorithms: strings,
    scopes: strings,
    leewayMs: duration,
    dpop: (value) => (typeof value === "boolean" || value === "required" || value === "nonce" ? undefined : 'must be true, false, "required" or "nonce"'),
  },
  required: ["issuer"],
};
const INTROSPECTION: Known = {
  checks: { url: filled, clientId: filled, clientSecret: filled, issuer: filled, audience, scopes: strings, cacheMs: duration },
  required: ["url", "clientId", "clientSecret"],
};
const API_KEYS: Known = { checks: { header: filled } };

/**
 * Accepts access tokens that are JWTs of one issuer. Signatures are verified with the issuer's keys, which are fetched when they
 * are needed and kept. `exp` is required; `iss` and `aud` have to be those of the issuer and of this server.
 *
 * @throws TypeError if an option is unknown or has a wrong value. `new Server()` throws one for a method that can't work, such as one
 *   with a URL without https.
 *
 * Spec: Authorization › Access Token Usage; RFC 9068, RFC 9449.
 */
export function jwt(options: JwtOptions): Verifier {
  checkAuthOptions("jwt()", JWT, options);
  const { audience: accepted, leewayMs, ...others } = options;
  return verifier({ kind: "jwt", ...others, audience: listOf(accepted), leeway: secondsOf(leewayMs) });
}

/**
 * Accepts opaque access tokens, which are verified at the introspection endpoint of their issuer.
 *
 * @throws TypeError if an option is unknown or has a wrong value.
 *
 * Spec: RFC 7662.
 */
export function introspection(options: IntrospectionOptions): Verifier {
  checkAuthOptions("introspection()", INTROSPECTION, options);
  const { audience: accepted, cacheMs, ...others } = options;
  return verifier({ kind: "introspection", ...others, audience: listOf(accepted), cache: secondsOf(cacheMs) });
}

/**
 * Accepts keys that the program gives out itself. Only their SHA-256 is kept.
 *
 * @param keys - Each key, or `sha256:` and its SHA-256 in hexadecimal, with its owner: a principal or a subject. Or
 *   the path of a file with them as a JSON object; an owner there is a subject, or an object such as
 *   `{"subject": "ada", "scopes": ["read"]}`. The file is read again within seconds after it has changed; if it can't be used then, an
 *   error is logged, and the keys that were read before stay in use.
 * @throws TypeError if the keys are neither an object of owners nor a path, or an option is unknown or has a wrong value.
 *
 * @example
 * ```ts
 * import { Client, Server } from "gudgeon";
 * import { apiKeys } from "gudgeon/auth";
 *
 * const app = new Server("shelf", { auth: apiKeys({ s3cret: "ada" }) });
 * app.tool("who", {}, (_, ctx) => ctx.principal?.subject ?? "nobody");
 *
 * const listening = await app.listen("http://127.0.0.1:0/mcp");
 * const client = await Client.connect(listening.url, { auth: "s3cret" });
 * console.log((await client.callTool("who")).text); // ada
 * await client.close();
 * await listening.close();
 * ```
 */
export function apiKeys(keys: Readonly<Record<string, Principal | string>> | string, options: ApiKeysOptions = {}): Verifier {
  const place = "apiKeys()";
  if (typeof keys === "string") {
    checkAuthOptions(place, API_KEYS, options);
    return verifier({ kind: "apiKeys", keys: [], file: keys, header: options.header });
  }
  if (!isObject(keys)) throw new TypeError(`${place}: the keys must be an object of keys and their owners, or the path of a file: apiKeys({ s3cret: "ada" })`);
  checkAuthOptions(place, API_KEYS, options);
  const owners = Object.entries(keys).map(([key, owner], at) => [digested(key), ownerOf(owner, `${place}: the owner of key ${at + 1}`)]);
  return verifier({ kind: "apiKeys", keys: owners, header: options.header });
}

/** Returns the declaration of a verifier; undefined for any other value. */
export function declarationOf(value: unknown): Declaration | undefined {
  const declare = isObject(value) ? (value as { readonly [DECLARATION]?: () => Declaration })[DECLARATION] : undefined;
  return declare?.();
}

/** Returns a verifier. Its declaration, which may have secrets, is not shown. */
export function verifier(declaration: Declaration): Verifier {
  return Object.defineProperty({}, DECLARATION, { value: () => declaration }) as Verifier;
}

/** Returns a key as `sha256:` and its SHA-256; an empty one as it is, which is refused later. */
function digested(key: string): string {
  if (key === "" || key.startsWith("sha256:")) return key;
  // Slow to load, and few servers need it.
  const { createHash } = createRequire(import.meta.url)("node:crypto") as typeof import("node:crypto");
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

function ownerOf(owner: unknown, place: string): PrincipalJson {
  if (typeof owner === "string") return { subject: owner, scopes: [], claims: {} };
  if (isObject(owner) && typeof owner["subject"] === "string") return parseJson(principalToJson(owner as unknown as Principal)) as PrincipalJson;
  throw new TypeError(`${place} must be a principal or a subject, such as "ada"`);
}

function listOf(given: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof given === "string" ? [given] : given;
}

function secondsOf(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : milliseconds / 1000;
}
