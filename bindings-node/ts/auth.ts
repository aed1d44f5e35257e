/** The methods by which a server authenticates its callers, and those by which a client signs in: `gudgeon/auth`. */
export { InsufficientScope, InvalidToken } from "./model/auth-errors.js";
export { fileStore } from "./model/file-store.js";
export { keyringStore } from "./model/keyring-store.js";
export { oauthProxy, providers } from "./model/oauth-proxy.js";
export { clientCredentials, enterpriseManaged, oauth, workloadIdentity } from "./model/sign-in.js";
export type {
  ApiKeysOptions, Auth, ClientAuth, ClientCredentialsOptions, EnterpriseManagedOptions, IntrospectionOptions, JwtOptions, OAuthOptions,
  OAuthProxyOptions, ProviderOptions, Providers, RequestInfo, SignIn, TokenStore, Verifier, Verify, WorkloadIdentityOptions,
} from "./model/types/auth.js";
export { apiKeys, introspection, jwt } from "./model/verifiers.js";
