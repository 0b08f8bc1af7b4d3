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
import { isKindName, KIND_NAME_RULE } from '../../../intents/kind.ts';

/** The names of an intent's fields on the command line. */
const TYPED: Readonly<Record<string, string>> = {
  serviceRef: 'REF',
  recordingId: 'REF',
  sessionId: 'SESSION',
  kind: '--kind',
  key: '--key',
  params: '--params',
  startMs: '--at',
  profile: '--profile',
  client: '--client',
  tenant: '--tenant',
};

/** Refuses an invalid intent by the name of its argument, before the store is opened. */
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

/** Refuses an invalid name of a kind, before the store is opened. */
export function checkTypedKind(kind: string): void {
  if (!isKindName(kind))
    throw new ConfigError({ field: '--kind', value: kind, rule: KIND_NAME_RULE });
}

/** The intent options. The environment wins over the configuration. */
export function intentOptions({ intents = {} }: HoldfastConfig): IntentOptions {
  return { ...intents, ...intentOptionsFrom(process.env) };
}
