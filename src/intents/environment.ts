/**
 * Intent options from environment variables: HOLDFAST_…, or XG2G_… as the API that Holdfast
 * replaces has them.
 */
import { ConfigError } from '../core/errors.ts';
import type { IntentOptions } from './intents.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const ON = new Set(['1', 'true', 'on', 'yes']);
const OFF = new Set(['0', 'false', 'off', 'no']);

export function intentOptionsFrom(env: Environment): IntentOptions {
  const secret = named(env, 'IDEM_SECRET');
  const previousSecret = named(env, 'IDEM_SECRET_PREVIOUS');
  const apiLeases = named(env, 'V3_API_LEASES');
  const options: IntentOptions = {};
  if (secret !== undefined) options.secret = secret.value;
  if (previousSecret !== undefined) options.previousSecret = previousSecret.value;
  if (apiLeases !== undefined) options.apiLeases = switchOf(apiLeases);
  return options;
}

interface Named {
  readonly name: string;
  readonly value: string;
}

/** An empty variable counts as unset. */
function named(env: Environment, name: string): Named | undefined {
  return [`HOLDFAST_${name}`, `XG2G_${name}`]
    .map((full) => ({ name: full, value: env[full] ?? '' }))
    .find(({ value }) => value !== '');
}

function switchOf({ name, value }: Named): 'on' | 'off' {
  const word = value.toLowerCase();
  if (ON.has(word)) return 'on';
  if (OFF.has(word)) return 'off';
  throw new ConfigError({ field: name, value, rule: "it must be 'on' or 'off'" });
}
