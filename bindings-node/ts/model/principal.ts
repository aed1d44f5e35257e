import { stringify } from "./stringify.js";
import type { Principal } from "./types/server.js";

/** A principal as the core writes it. */
export interface PrincipalJson {
  readonly subject: string;
  readonly clientId?: string;
  readonly scopes: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Returns a principal that the core has verified. */
export function principalFromJson({ subject, clientId, scopes, claims }: PrincipalJson): Principal {
  return { subject, clientId, scopes: new Set(scopes), claims };
}

/** Returns a principal as JSON for the core. */
export function principalToJson({ subject, clientId, scopes, claims }: Principal): string {
  return stringify({ subject, clientId, scopes: [...(scopes ?? [])], claims: claims ?? {} }) ?? "";
}
