/**
 * The two interfaces of Standard Schema (https://standardschema.dev), copied so that Gudgeon's types need no package installed.
 * They are structural: the schemas of zod, valibot and arktype match them.
 */

/** The members of every Standard Schema. */
export interface StandardTypedProps<In = unknown, Out = In> {
  readonly version: 1;
  readonly vendor: string;
  readonly types?: { readonly input: In; readonly output: Out } | undefined;
}

/** A schema that validates values. */
export interface StandardSchemaProps<In = unknown, Out = In> extends StandardTypedProps<In, Out> {
  readonly validate: (
    value: unknown,
    options?: { readonly libraryOptions?: Record<string, unknown> | undefined } | undefined,
  ) => StandardResult<Out> | Promise<StandardResult<Out>>;
}

/** A schema that converts to JSON Schema. Both functions throw if JSON Schema can't express it. */
export interface StandardJsonSchemaProps<In = unknown, Out = In> extends StandardTypedProps<In, Out> {
  readonly jsonSchema: {
    readonly input: (options: StandardJsonSchemaOptions) => Record<string, unknown>;
    readonly output: (options: StandardJsonSchemaOptions) => Record<string, unknown>;
  };
}

export interface StandardJsonSchemaOptions {
  readonly target: "draft-2020-12" | "draft-07" | "openapi-3.0" | ({} & string);
  readonly libraryOptions?: Record<string, unknown> | undefined;
}

export type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
