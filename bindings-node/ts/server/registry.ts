import { checkedAnnotations, checkedToolAnnotations } from "../model/annotations.js";
import type { Registry } from "../model/types/server.js";
import { checkChanges } from "./component-options.js";
import type { Kind, ServerCore } from "./core.js";

type Wire = Readonly<Record<string, unknown>>;

/** The components of one kind, held by the native module. */
export class RegistryView<T> implements Registry<T> {
  constructor(
    private readonly core: ServerCore,
    private readonly kind: Kind,
    private readonly fromWire: (raw: Wire) => T,
  ) {}

  get size(): number {
    return this.all().length;
  }

  has(name: string): boolean {
    return this.core.native.find(this.kind, name) !== null;
  }

  get(name: string): T | undefined {
    const found = this.core.native.find(this.kind, name);
    return found === null ? undefined : this.fromWire(JSON.parse(found) as Wire);
  }

  remove(name: string): void {
    this.core.change(this.kind, [name], { how: "remove" });
  }

  update(name: string, changes: Readonly<Record<string, unknown>>): void {
    this.core.change(this.kind, [name], { how: "update", changes: changesToWire(this.kind, `${LISTS[this.kind]}.update(${JSON.stringify(name)})`, changes) });
  }

  enable(...names: (string | { tags: readonly string[] })[]): void {
    this.core.change(this.kind, keysIn(names), { how: "enable", tags: tagsIn(names) });
  }

  disable(...names: (string | { tags: readonly string[] })[]): void {
    this.core.change(this.kind, keysIn(names), { how: "disable", tags: tagsIn(names) });
  }

  [Symbol.iterator](): Iterator<T> {
    return this.all().map(this.fromWire)[Symbol.iterator]();
  }

  private all(): Wire[] {
    return JSON.parse(this.core.native.list(this.kind)) as Wire[];
  }
}

function keysIn(names: readonly (string | { tags: readonly string[] })[]): string[] {
  return names.filter((name) => typeof name === "string");
}

function tagsIn(names: readonly (string | { tags: readonly string[] })[]): string[] {
  return names.flatMap((name) => (typeof name === "string" ? [] : name.tags));
}

const LISTS = { tool: "tools", resource: "resources", resourceTemplate: "resourceTemplates", prompt: "prompts" } as const;

/** Checks changes and returns them with the wire's names; undefined removes a member. */
function changesToWire(kind: Kind, place: string, changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  checkChanges(kind, place, changes);
  const wire = Object.entries(changes).map(([name, value]) => {
    if (name === "meta") return ["_meta", value ?? null];
    if (name === "annotations" && value) {
      const annotations = value as Readonly<Record<string, unknown>>;
      return [name, kind === "tool" ? checkedToolAnnotations(place, annotations) : checkedAnnotations(place, annotations)];
    }
    return [name, value ?? null];
  });
  return Object.fromEntries(wire) as Record<string, unknown>;
}
