/**
 * Schemas of what users send: any library that implements
 * [Standard Schema](https://standardschema.dev), such as zod, valibot and arktype.
 */

/** The part of Standard Schema, version 1, that Holdfast uses. */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Partial<Schema>)['~standard'];
  return typeof standard?.validate === 'function';
}

/** The field of an issue, below `field`. */
export function issueField(field: string, { path = [] }: SchemaIssue): string {
  const parts = path.map((part) => String(typeof part === 'object' ? part.key : part));
  return [field, ...parts].join('.');
}
