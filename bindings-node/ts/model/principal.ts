import type { Principal } from "./types/server.js";

/** Returns a principal as JSON for the core. */
export function principalToJson({ subject, clientId, scopes, claims }: Principal): string {
  return JSON.stringify({ subject, clientId, scopes: [...(scopes ?? [])], claims: claims ?? {} });
}
