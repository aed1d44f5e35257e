import type { StandardJsonSchemaProps, StandardSchemaProps } from "./standard-schema.js";

/** A schema of a library that validates and writes JSON Schema: zod ≥ 4.2, arktype ≥ 2.1.28, valibot through `toStandardJsonSchema`. */
export interface SchemaLike<In = unknown, Out = In> {
  readonly "~standard": StandardSchemaProps<In, Out> & StandardJsonSchemaProps<In, Out>;
}

declare const typed: unique symbol;

/** A plain JSON Schema with the type of its values; made by `jsonSchema<T>()`. */
export interface TypedJsonSchema<T> {
  readonly [typed]: T;
}

/**
 * A plain JSON Schema. The handler's types are read off a literal: one that stands in the call, or one in a constant
 * that ends with `as const`.
 */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** A schema of a tool, prompt, method or question. */
export type Schema = SchemaLike | TypedJsonSchema<unknown> | JsonSchema;

type Primitive = { string: string; integer: number; number: number; boolean: boolean; null: null };

/** The type of the values that fit a JSON Schema. `D`: true where defaults are filled in. */
type FromSchema<S, D> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly type: readonly (infer T)[] }
      ? FromType<T, S, D>
      : S extends { readonly type: infer T }
        ? FromType<T, S, D>
        : S extends { readonly properties: object }
          ? FromObject<S, D>
          : FromChoices<S, D>;

type FromType<T, S, D> = T extends keyof Primitive
  ? Primitive[T]
  : T extends "array"
    ? FromArray<S, D>
    : S extends { readonly properties: object }
      ? FromObject<S, D>
      : T extends "object"
        ? FromChoices<S, D, Record<string, unknown>>
        : unknown;

type FromArray<S, D> = S extends { readonly items: infer I } ? FromSchema<I, D>[] : unknown[];

type FromChoices<S, D, None = unknown> = S extends { readonly anyOf: readonly (infer C)[] }
  ? FromSchema<C, D>
  : S extends { readonly oneOf: readonly (infer C)[] }
    ? FromSchema<C, D>
    : None;

type RequiredKeys<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;

type DefaultKeys<P, D> = D extends true ? { [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never }[keyof P] : never;

type FromObject<S, D> = S extends { readonly properties: infer P }
  ? FromProperties<P, RequiredKeys<S> | DefaultKeys<P, D>, D>
  : never;

type FromProperties<P, R, D> = { -readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K], D> } & {
  -readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K], D> | undefined;
};

/** The type of the handler's values: after defaults and transforms. */
export type Output<S> =
  S extends SchemaLike<infer _I, infer O>
    ? O
    : S extends TypedJsonSchema<infer T>
      ? T
      : S extends JsonSchema
        ? FromSchema<S, true>
        : unknown;

/** The type of the caller's values: before defaults and transforms. */
export type Input<S> =
  S extends SchemaLike<infer I, infer _O>
    ? I
    : S extends TypedJsonSchema<infer T>
      ? T
      : S extends JsonSchema
        ? FromSchema<S, false>
        : unknown;

/** The variables of a URI template: `"shelf://books/{id}"` → `{ id: string }`. */
export type Variables<U extends string> = U extends `${string}{${infer Expression}}${infer Rest}`
  ? { [K in Names<Expression>]: string } & Variables<Rest>
  : unknown;

type Names<E extends string> = E extends `${"+" | "#" | "." | "/" | ";" | "?" | "&"}${infer N}` ? Split<N> : Split<E>;
type Split<N extends string> = N extends `${infer A},${infer B}` ? Bare<A> | Split<B> : Bare<N>;
type Bare<N extends string> = N extends `${infer A}*` ? A : N extends `${infer A}:${string}` ? A : N;
