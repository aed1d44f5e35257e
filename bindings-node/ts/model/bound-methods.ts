/** Makes all methods of a class work apart from their object, as in `const { tool } = app`. */
export function bindMethods(made: { readonly prototype: object }): void {
  const names = Object.getOwnPropertyNames(made.prototype).filter((name) => name !== "constructor");
  for (const name of names) bind(made.prototype, name, true);
}

/** The same for some methods of short-lived objects, for which it takes longer to keep a bound method than to make one. */
export function bindSomeMethods<T extends object>(made: { readonly prototype: T }, names: readonly (keyof T & string)[]): void {
  for (const name of names) bind(made.prototype, name, false);
}

function bind(prototype: object, name: string, isKept: boolean): void {
  const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
  if (typeof method !== "function") return;
  const keep = (owner: object, value: unknown): void => void Object.defineProperty(owner, name, { value, writable: true, configurable: true });
  Object.defineProperty(prototype, name, {
    configurable: true,
    get(this: object): unknown {
      if (this === prototype) return method;
      const bound: unknown = method.bind(this);
      if (isKept) keep(this, bound);
      return bound;
    },
    set(this: object, value: unknown) {
      keep(this, value);
    },
  });
}
