import type { CallContext } from "./context.js";
import type { Plan } from "./plan.js";
import type { ServerCore } from "./core.js";
import { isPromise } from "./schema.js";
import type { Principal } from "./types.js";

/** Who sees a component. */
export type Visible = (principal: Principal | undefined) => boolean;

interface UnresolvedComponents {
  readonly components: readonly (readonly [kind: string, key: string])[];
}

/** Answers the core, which asks who sees what: one boolean for each component, in order. */
export function visibilityPlan(owner: ServerCore, find: (kind: string, key: string) => Visible | undefined): Plan {
  const sees = (kind: string, key: string, { principal }: CallContext): boolean => {
    try {
      const seen: unknown = find(kind === "resource template" ? "resourceTemplate" : kind, key)?.(principal) ?? false;
      if (isPromise(seen)) throw new TypeError("visible must give its answer at once, not a promise");
      return Boolean(seen);
    } catch (error) {
      console.error(`visible of the ${kind} ${JSON.stringify(key)} failed: it stays hidden`, error);
      return false;
    }
  };
  return {
    kind: "prepared",
    owner,
    exposeErrors: [],
    invoke: (input, ctx) => (input as unknown as UnresolvedComponents).components.map(([kind, key]) => sees(kind, key, ctx)),
  };
}

/** A principal as the core reads it. */
export function principalToJson({ subject, clientId, scopes, claims }: Principal): string {
  return JSON.stringify({ subject, clientId, scopes: [...(scopes ?? [])], claims: claims ?? {} });
}
