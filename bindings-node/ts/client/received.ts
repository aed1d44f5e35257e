import { promisify } from "node:util";

import { promptFromWire, resourceFromWire, resourceTemplateFromWire, toolFromWire } from "../model/components.js";
import { McpError } from "../model/errors.js";
import type { Page, Prompt, Resource, ResourceTemplate, Tool } from "../model/types/components.js";
import { checkPrompt, checkResource, checkResourceTemplate, checkTool, InvalidMember } from "./checks.js";

type Wire = Readonly<Record<string, unknown>>;

/** The number of entries of a list after which other callbacks run. */
const SLICE = 500;
const immediate = promisify(setImmediate);

/**
 * Returns what `make` makes of a server's result.
 *
 * @param request - The method, or also the name of what was requested; it begins the error.
 * @param check - Throws an `InvalidMember` for a result that TypeScript's types do not describe.
 * @throws McpError of kind "protocol" when the result is invalid.
 */
export function received<T>(request: string, target: string | undefined, raw: Wire, check: (raw: Wire) => void, make: (raw: Wire) => T): T {
  try {
    check(raw);
    return make(raw);
  } catch (error) {
    throw invalidResult(request, target, error);
  }
}

/** Returns the error for a failed check of a server's result; another error stays. */
function invalidResult(request: string, target: string | undefined, error: unknown): unknown {
  // The functions that read nested values call themselves.
  const problem = error instanceof RangeError ? "it is nested too deeply" : error instanceof InvalidMember ? error.message : undefined;
  if (problem === undefined) return error;
  return new McpError(`${request}: the server's result is invalid: ${problem}`, { kind: "protocol", phase: "call", target, cause: error });
}

/** A list of the server: its method, the member of the result that has its entries, and the functions for an entry. */
export interface Listing<T> {
  readonly method: string;
  readonly member: string;
  readonly check: (entry: Wire) => void;
  readonly make: (entry: Wire) => T;
}

export const TOOLS: Listing<Tool> = { method: "tools/list", member: "tools", check: checkTool, make: toolFromWire };
export const RESOURCES: Listing<Resource> = { method: "resources/list", member: "resources", check: checkResource, make: resourceFromWire };
export const RESOURCE_TEMPLATES: Listing<ResourceTemplate> = {
  method: "resources/templates/list",
  member: "resourceTemplates",
  check: checkResourceTemplate,
  make: resourceTemplateFromWire,
};
export const PROMPTS: Listing<Prompt> = { method: "prompts/list", member: "prompts", check: checkPrompt, make: promptFromWire };

/** Returns the entries of a list, and lets other callbacks run between parts of it. Throws as `received` does. */
export async function entriesOf<T>(
  { method, member, check, make }: Listing<T>,
  target: string | undefined,
  entries: readonly Wire[],
): Promise<T[]> {
  let at = 0;
  try {
    const made = new Array<T>(entries.length);
    for (; at < entries.length; at++) {
      if (at > 0 && at % SLICE === 0) await immediate();
      const entry = entries[at] as Wire;
      check(entry);
      made[at] = make(entry);
    }
    return made;
  } catch (error) {
    throw invalidResult(method, target, error instanceof InvalidMember ? error.within(`${member}[${at}]`) : error);
  }
}

/** Returns one page of a list. Throws as `received` does. */
export async function pageOf<T>(listing: Listing<T>, target: string | undefined, result: Wire): Promise<Page<T>> {
  const { items, nextCursor } = result as { items: readonly Wire[]; nextCursor?: string };
  return { items: await entriesOf(listing, target, items), nextCursor };
}
