import { annotationsFromWire, annotationsToWire } from "./annotations.js";
import type { Prompt, Resource, ResourceTemplate, Tool } from "./types/components.js";
import type { JsonSchema } from "./types/schema.js";
import { isObject } from "./values.js";

type Wire = Readonly<Record<string, unknown>>;

export function toolToWire({ annotations, meta, ...tool }: Tool): Wire {
  return { ...tool, ...(annotations && { annotations: annotationsToWire(annotations) }), ...(meta && { _meta: meta }) };
}

export function toolFromWire(raw: Wire): Tool {
  const { annotations, ...tool } = withMeta(raw);
  return {
    ...tool,
    inputSchema: isObject(raw["inputSchema"]) ? (raw["inputSchema"] as JsonSchema) : {},
    ...(isObject(annotations) && { annotations: annotationsFromWire(annotations) }),
  } as Tool;
}

export function resourceToWire({ meta, ...resource }: Resource | ResourceTemplate): Wire {
  return { ...resource, ...(meta && { _meta: meta }) };
}

export function promptToWire({ meta, ...prompt }: Prompt): Wire {
  return { ...prompt, ...(meta && { _meta: meta }) };
}

export function resourceFromWire(raw: Wire): Resource {
  return withMeta(raw) as unknown as Resource;
}

export function resourceTemplateFromWire(raw: Wire): ResourceTemplate {
  return withMeta(raw) as unknown as ResourceTemplate;
}

export function promptFromWire(raw: Wire): Prompt {
  const given = Array.isArray(raw["arguments"]) ? raw["arguments"].filter(isObject) : [];
  const list = given.map((one) => ({ ...one, required: one["required"] === true }));
  return { ...withMeta(raw), arguments: list } as unknown as Prompt;
}

/** Renames `_meta` to `meta`; unknown members stay. */
function withMeta({ _meta: meta, ...fields }: Wire): Record<string, unknown> {
  return { ...fields, ...(isObject(meta) && { meta }) };
}
