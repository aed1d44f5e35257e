import type { Schema } from "gudgeon";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only where the two types are the same. */
export const same = <A, B>(_: Equal<A, B>): void => {};

/** Keeps a schema's literal type, as `app.tool` does. */
export const schema = <const S extends Schema>(given: S): S => given;
