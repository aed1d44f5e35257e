import { stringify } from "./stringify.js";

/** Returns a value as error texts show it. */
export function display(value: unknown): string {
  try {
    return shortened(stringify(value) ?? String(value));
  } catch {
    return shortened(String(value));
  }
}

/** Returns the type of a value as error texts name it. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
