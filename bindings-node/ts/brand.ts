/**
 * A program may hold Gudgeon twice, when two packages bring their own. Both copies must know each other's values,
 * so values are told by a registered symbol, never by which class made them.
 */

/** Marks a value; the mark is not enumerable, so that a spread copy is not taken for the original. */
export function mark<T extends object>(value: T, brand: symbol): T {
  return Object.defineProperty(value, brand, { value: true });
}

export function isMarked(value: unknown, brand: symbol): boolean {
  return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
}

type Class = abstract new (...args: never[]) => object;

/** Makes `instanceof` of a class go by its brand; users' subclasses keep the ordinary meaning. */
export function brandClass(name: string, made: Class): void {
  const brand = Symbol.for(`gudgeon.${name}`);
  mark(made.prototype as object, brand);
  Object.defineProperty(made, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      return this === made
        ? isMarked(value, brand)
        : Function.prototype[Symbol.hasInstance].call(this as () => void, value);
    },
  });
}
