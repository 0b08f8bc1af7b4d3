/** The options of the built-in poll. In a file of their own: the poll is loaded on first use. */
import { ConfigError } from '../../../core/errors.ts';
import { checkKnown } from '../../../core/options.ts';
import { ZONES, type Zone } from './addresses.ts';

const KNOWN = new Set(['allow', 'maxBytes']);
export const DEFAULT_MAX_BYTES = 1_048_576;

export interface HttpPollOptions {
  /** Which addresses may be polled beyond public ones; default none. */
  allow?: readonly Zone[];
  /** How much of a body is read; default 1 MiB. */
  maxBytes?: number;
}

export function checkHttpPollOptions(options: HttpPollOptions): void {
  checkKnown(options, KNOWN);
  const { allow = [], maxBytes = DEFAULT_MAX_BYTES } = options;
  if (!Array.isArray(allow) || !allow.every((zone) => ZONES.some((known) => known === zone))) {
    const rule = `it must be a list of ${ZONES.join(', ')}`;
    throw new ConfigError({ field: 'allow', value: allow, rule });
  }
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0) {
    const rule = 'it must be a whole number of bytes';
    throw new ConfigError({ field: 'maxBytes', value: maxBytes, rule });
  }
}
