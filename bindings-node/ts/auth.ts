/** The methods by which a server authenticates its callers: `gudgeon/auth`. */
export { InsufficientScope, InvalidToken } from "./model/auth-errors.js";
export type { ApiKeysOptions, Auth, IntrospectionOptions, JwtOptions, RequestInfo, Verifier, Verify } from "./model/types/auth.js";
export { apiKeys, introspection, jwt } from "./model/verifiers.js";
