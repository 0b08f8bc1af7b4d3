import type { HoldfastConfig } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';
import { intentOptionsFrom } from '../../../intents/environment.ts';
import {
  checkIntent,
  checkRequester,
  type Intent,
  type Requester,
} from '../../../intents/intent.ts';
import type { IntentOptions } from '../../../intents/intents.ts';

/** What the fields of an intent are called on the command line. */
const TYPED: Readonly<Record<string, string>> = {
  serviceRef: 'REF',
  recordingId: 'REF',
  sessionId: 'SESSION',
  startMs: '--at',
  profile: '--profile',
  client: '--client',
  tenant: '--tenant',
};

/** Refuses what makes no sense in the words of whoever typed it, before the store is asked. */
export function checkTyped(intent: Intent, by: Requester): void {
  try {
    checkIntent(intent);
    checkRequester(by);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { field, value, rule } = error;
    throw new ConfigError({ field: TYPED[field] ?? field, value, rule });
  }
}

/** As the environment says, and the configuration where that says nothing. */
export function intentOptions({ intents = {} }: HoldfastConfig): IntentOptions {
  return { ...intents, ...intentOptionsFrom(process.env) };
}
