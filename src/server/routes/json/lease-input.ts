/** The key and the fence of a lease in requests and responses. */
import { z } from 'zod';
import { isName, NAME_RULE } from '../../../core/ids.ts';
import { MAX_FENCE } from '../../../lease/fence.ts';

const KEY_RULE = `a key is ${NAME_RULE}`;

export const fenceSchema = z.string().meta({
  pattern: '^\\d+$',
  description:
    'A decimal number as text: it exceeds the precision of numbers in some JSON parsers.',
});
const FENCE_RULE = 'must be a fence: a decimal number as text';
export const meantFenceSchema = z
  .string({ error: FENCE_RULE })
  .regex(/^\d{1,16}$/, { error: FENCE_RULE })
  .transform(Number)
  .refine((fence) => fence <= MAX_FENCE, { error: FENCE_RULE });
const keySchema = z.string().refine(isName, { error: KEY_RULE });
export const keyParams = z.strictObject({
  key: keySchema.meta({ description: 'Percent-encoded if it has slashes.' }),
});
