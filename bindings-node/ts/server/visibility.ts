import { isPromise } from "../model/promises.js";
import type { Context } from "../model/types/context.js";
import type { Logger } from "../model/types/logging.js";
import type { Principal } from "../model/types/server.js";
import type { Plan, PlanOwner } from "../plan/plan.js";

/** Decides whether a caller sees a component. */
export type Visible = (principal: Principal | undefined) => boolean;

interface UnresolvedComponents {
  readonly components: readonly (readonly [kind: string, key: string])[];
}

/** Returns the plan that answers which components a caller sees: one boolean for each, in order. */
export function visibilityPlan(owner: PlanOwner, logger: Logger, find: (kind: string, key: string) => Visible | undefined): Plan {
  const sees = (kind: string, key: string, { principal }: Context): boolean => {
    try {
      const seen: unknown = find(kind === "resource template" ? "resourceTemplate" : kind, key)?.(principal) ?? false;
      if (isPromise(seen)) throw new TypeError("visible must return a boolean, not a promise");
      return Boolean(seen);
    } catch (error) {
      logger.error(`visible of the ${kind} ${JSON.stringify(key)} failed: it stays hidden`, error);
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
