/**
 * A program may load two copies of Gudgeon, when two packages depend on it. Both must recognise each other's values, so
 * a registered symbol identifies them, not their class.
 */

/** Marks a value. The mark is not enumerable, so that spreading does not copy it. */
export function mark<T extends object>(value: T, brand: symbol): T {
  return Object.defineProperty(value, brand, { value: true });
}

export function isMarked(value: unknown, brand: symbol): boolean {
  return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
}

type Class = abstract new (...args: never[]) => object;

/** Makes instances of a class pass `instanceof` of another one, which is not its base. */
export function brandAs(name: string, made: Class): void {
  mark(made.prototype as object, Symbol.for(`gudgeon.${name}`));
}

/** Makes `instanceof` of a class check its brand; subclasses of the user keep the ordinary meaning. */
export function brandClass(name: string, made: Class): void {
  const brand = Symbol.for(`gudgeon.${name}`);
  brandAs(name, made);
  Object.defineProperty(made, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      return this === made
        ? isMarked(value, brand)
        : Function.prototype[Symbol.hasInstance].call(this as () => void, value);
    },
  });
}
