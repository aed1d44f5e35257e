import type { StandardJsonSchemaProps, StandardSchemaProps } from "./standard-schema.js";

/** zod ≥ 4.2, arktype ≥ 2.1.28, valibot through its `toStandardJsonSchema`: validates and can be written as JSON Schema. */
export interface SchemaLike<In = unknown, Out = In> {
  readonly "~standard": StandardSchemaProps<In, Out> & StandardJsonSchemaProps<In, Out>;
}

declare const typed: unique symbol;

/** A plain JSON Schema with the type that it stands for; made by `jsonSchema<T>()`. */
export interface TypedJsonSchema<T> {
  readonly [typed]: T;
}

/** A JSON Schema literal whose arguments' types are read off it. */
export interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** What a tool, prompt or question may be described by. */
export type Schema = SchemaLike | TypedJsonSchema<unknown> | JsonSchema;

type Primitive = { string: string; integer: number; number: number; boolean: boolean; null: null };

type FromProperty<P> = P extends { readonly const: infer C }
  ? C
  : P extends { readonly enum: readonly (infer E)[] }
    ? E
    : P extends { readonly type: keyof Primitive }
      ? Primitive[P["type"]]
      : P extends { readonly type: "array"; readonly items: infer I }
        ? FromProperty<I>[]
        : P extends { readonly type: "object" }
          ? FromObject<P>
          : unknown;

type RequiredKeys<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;

type FromObject<S> = S extends { readonly properties: infer P }
  ? { -readonly [K in keyof P as K extends RequiredKeys<S> ? K : never]: FromProperty<P[K]> } & {
      -readonly [K in keyof P as K extends RequiredKeys<S> ? never : K]?: FromProperty<P[K]> | undefined;
    }
  : Record<string, unknown>;

/** What the handler gets: the schema's type after defaults and transforms. */
export type Output<S> =
  S extends SchemaLike<infer _I, infer O>
    ? O
    : S extends TypedJsonSchema<infer T>
      ? T
      : S extends JsonSchema
        ? FromProperty<S>
        : unknown;

/** What may be given: the schema's type before defaults and transforms. */
export type Input<S> =
  S extends SchemaLike<infer I, infer _O>
    ? I
    : S extends TypedJsonSchema<infer T>
      ? T
      : S extends JsonSchema
        ? FromProperty<S>
        : unknown;

/** The variables of a URI template: `"shelf://books/{id}"` → `{ id: string }`. */
export type Variables<U extends string> = U extends `${string}{${infer Expression}}${infer Rest}`
  ? { [K in Names<Expression>]: string } & Variables<Rest>
  : unknown;

type Names<E extends string> = E extends `${"+" | "#" | "." | "/" | ";" | "?" | "&"}${infer N}` ? Split<N> : Split<E>;
type Split<N extends string> = N extends `${infer A},${infer B}` ? Bare<A> | Split<B> : Bare<N>;
type Bare<N extends string> = N extends `${infer A}*` ? A : N extends `${infer A}:${string}` ? A : N;
