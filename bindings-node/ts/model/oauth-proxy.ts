import { checkAuthOptions, filled, type Known, strings } from "./auth-options.js";
import type { OAuthProxyOptions, ProviderOptions, Providers, Verifier } from "./types/auth.js";
import { declarationOf, verifier } from "./verifiers.js";

const CLIENT = { clientId: filled, clientSecret: filled, scopes: strings, allowedRedirects: strings };
const PROXY: Known = { checks: CLIENT, required: ["clientId"] };
const NAMES = [
  "auth0", "azure", "clerk", "cognito", "descope", "discord", "entra", "github", "google", "keycloak", "okta", "scalekit", "supabase", "workos",
] as const;

/**
 * Lets MCP clients sign in by a provider at which they can't register themselves.
 *
 * The server becomes an authorization server of its own: clients register at it or have a metadata document, users see a page
 * that asks whether the client may act for them, and then sign in at the provider. The tokens are the server's own, for its URL
 * only. Register an OAuth app at the provider, with the redirect URL `{URL of the server}/oauth/callback`.
 *
 * Nothing is stored: client ids, codes and tokens are sealed with the server's `requestStateKeys`, or else with a key made from
 * `clientSecret` if that has at least 32 characters, so that restarts and replicas with the same key accept them.
 *
 * @param provider - The URL of the provider (an OpenID Connect issuer), or the result of `jwt()` or of a function of `providers`.
 * @throws TypeError if the provider is something else, or an option is unknown, missing, or has a wrong value.
 *
 * @example
 * ```ts
 * import { Server } from "gudgeon";
 * import { oauthProxy } from "gudgeon/auth";
 *
 * const app = new Server("shelf", {
 *   auth: oauthProxy("https://login.example.com", { clientId: "shelf", clientSecret: "s3cret" }),
 * });
 *
 * const listening = await app.listen("http://127.0.0.1:0/mcp");
 * const response = await fetch(new URL("/.well-known/oauth-authorization-server/mcp", listening.url));
 * const { issuer } = (await response.json()) as { issuer: string };
 * console.log(issuer === listening.url); // true
 * await listening.close();
 * ```
 *
 * Spec: Authorization › Security Considerations; RFC 6749, RFC 7591, RFC 7636, RFC 8414, RFC 9207.
 */
export function oauthProxy(provider: Verifier | string, options: OAuthProxyOptions): Verifier {
  const place = "oauthProxy()";
  const declared = typeof provider === "string" ? provider : declarationOf(provider);
  if (declared === undefined) {
    throw new TypeError(`${place}: the provider must be the URL of an issuer, or the result of jwt() or of a function of providers`);
  }
  checkAuthOptions(place, PROXY, options);
  return verifier({ kind: "proxy", provider: declared, ...options });
}

/**
 * Known providers, for `auth: providers.google({ clientId, clientSecret })`.
 *
 * With `clientId` the server is an OAuth proxy in front of the provider, as with `oauthProxy()`. Without, MCP clients register at
 * the provider themselves, and the server verifies its tokens; Auth0, Clerk, Descope, Keycloak, Scalekit and WorkOS can do that.
 *
 * Further options: `auth0`, `clerk`, `okta`, `workos`: `domain`; `auth0`, `keycloak`: `audience`; `azure`, `entra`: `tenantId`;
 * `cognito`: `userPoolId`; `descope`: `projectId`, `mcpServerId`, `baseUrl`, `audience`; `keycloak`: `realmUrl`; `okta`:
 * `authorizationServerId`; `scalekit`: `environmentUrl`, `resourceId`; `supabase`: `projectRef`.
 */
export const providers: Providers = Object.freeze(Object.fromEntries(NAMES.map((name) => [name, (options: ProviderOptions) => known(name, options)]))) as Providers;

function known(name: string, given: ProviderOptions): Verifier {
  // The core knows which further options a provider has.
  const further = Object.keys(Object(given)).map((option) => [option, filled]);
  checkAuthOptions(`providers.${name}()`, { checks: { ...Object.fromEntries(further), ...CLIENT } }, given);
  const { clientId, clientSecret, scopes, allowedRedirects, ...options } = given;
  return verifier({ kind: "provider", name, clientId, clientSecret, scopes, allowedRedirects, options });
}
