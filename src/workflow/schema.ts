/**
 * Schemas of actions: any library that implements [Standard Schema](https://standardschema.dev),
 * such as zod, valibot and arktype. Holdfast validates when an action is emitted and when it is
 * handled, and infers types.
 */
import { issueField, type Schema } from '../core/schema.ts';
import { ActionInvalidError } from './errors.ts';
import type { RetryPolicy } from './retry-policy.ts';

export interface ActionDefinition {
  /** The processor that executes the action, unless `emit` names another. */
  readonly target?: string;
  readonly payload?: Schema;
  readonly result?: Schema;
  /**
   * How often it is tried, unless `emit` or `call` says otherwise; default as its processor has it.
   */
  readonly retry?: RetryPolicy;
}

/** By action type. */
export type ActionDefinitions = Readonly<Record<string, ActionDefinition>>;

export type InputOf<S> = S extends Schema<infer Input, unknown> ? Input : unknown;
export type OutputOf<S> = S extends Schema<unknown, infer Output> ? Output : unknown;

export type PayloadIn<D extends ActionDefinition> = InputOf<D['payload']>;
/** Without a schema the handler declares the type of its payload. */
export type PayloadOut<D extends ActionDefinition> = [D['payload']] extends [Schema]
  ? OutputOf<D['payload']>
  : never;
export type ResultIn<D extends ActionDefinition> = InputOf<D['result']>;
export type ResultOut<D extends ActionDefinition> = OutputOf<D['result']>;

/** The value that the schema returns; throws `ACTION_INVALID` with its first issue. */
export async function conform(
  schema: Schema | undefined,
  value: unknown,
  field: string,
): Promise<unknown> {
  if (schema === undefined) return value;
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  const [issue] = result.issues;
  const more = result.issues.length > 1 ? ` (and ${result.issues.length - 1} more)` : '';
  throw new ActionInvalidError({
    field: issue === undefined ? field : issueField(field, issue),
    rule: `${issue?.message ?? 'the schema refuses it'}${more}`,
  });
}
