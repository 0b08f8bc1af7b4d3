/** The fields of a target in requests, checked by the same rules as records in the store. */
import { z } from 'zod';
import { InvalidRecord, readTargetRecord } from '../../../fleet/targets/target-record.ts';
import { urlProblem } from '../../../fleet/targets/target-url.ts';
import { idSchema } from './schemas.ts';

/** Any id: only the rules of other fields are wanted. */
const ANY_ID = 'any';

const urlSchema = z.string().superRefine((url, context) => addIssue(context, urlRule(url)));

const everySchema = z
  .union([z.number(), z.string()], { error: 'must be milliseconds, or text such as 30s' })
  .superRefine((every, context) => addIssue(context, ruleFor({ every })))
  .meta({ description: 'The polling interval: milliseconds, or text such as 30s or 5m.' });

const timeoutSchema = z
  .union([z.number(), z.string()], { error: 'must be milliseconds, or text such as 30s' })
  .superRefine((timeout, context) => addIssue(context, ruleFor({ timeout })))
  .meta({ description: 'How long one poll may take: milliseconds, or text such as 5s.' });

const commandSchema = z
  .string()
  .superRefine((command, context) => addIssue(context, ruleFor({ command })))
  .meta({
    description:
      'The name of a command that instances declare under `runner.commands`. Only such instances own the target.',
  });

const dataSchema = z
  .record(z.string(), z.unknown())
  .superRefine((data, context) => addIssue(context, ruleFor({ data })))
  .meta({
    description: 'For the command or the handler, as the field `data` of the target. Not shown.',
  });

/** What the deprecated `POST /api/v3/sessions` takes, too. */
export const newTargetFields = {
  url: urlSchema,
  id: idSchema.optional().meta({ description: 'Default: a random one.' }),
  every: everySchema.optional(),
  isPaused: z.boolean().optional(),
};

const optionalFields = {
  url: urlSchema.optional(),
  every: everySchema.optional(),
  timeout: timeoutSchema.optional(),
  command: commandSchema.optional(),
  data: dataSchema.optional(),
  isPaused: z.boolean().optional(),
};

const clearableFields = {
  url: urlSchema.nullish(),
  every: everySchema.nullish(),
  timeout: timeoutSchema.nullish(),
  command: commandSchema.nullish(),
  data: dataSchema.nullish(),
  isPaused: optionalFields.isPaused,
};

export const newTargetSchema = z
  .strictObject({ ...optionalFields, id: newTargetFields.id })
  .superRefine(({ url, command }, context) => {
    if (url === undefined && command === undefined)
      context.addIssue({ code: 'custom', path: ['url'], message: 'is required without command' });
  })
  .meta({ id: 'NewTarget', description: 'With `url`, `command` or both.' });

export const targetChangeSchema = z.strictObject(clearableFields).meta({
  id: 'TargetChange',
  description: 'Fields that are absent stay as they are. `null` removes a field.',
});

/** The fields that are present. Types of the library tell an absent field from an undefined one. */
export function definedFields<T extends object>(
  fields: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

function addIssue(context: z.RefinementCtx, rule: string | null): void {
  if (rule !== null) context.addIssue({ code: 'custom', message: rule });
}

function urlRule(url: string): string | null {
  return ruleFor({ url }) ?? urlProblem(url);
}

function ruleFor(fields: Readonly<Record<string, unknown>>): string | null {
  const target = readTargetRecord(ANY_ID, fields, 0);
  return target instanceof InvalidRecord ? target.rule : null;
}
