/** What the environment says about intents. The names of the interface that this one replaces are understood as well. */
import { ConfigError } from '../core/errors.ts';
import type { IntentOptions } from './intents.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const ON = new Set(['1', 'true', 'on', 'yes']);
const OFF = new Set(['0', 'false', 'off', 'no']);

export function intentOptionsFrom(env: Environment): IntentOptions {
  const secret = named(env, 'IDEM_SECRET');
  const previousSecret = named(env, 'IDEM_SECRET_PREVIOUS');
  const apiLeases = named(env, 'V3_API_LEASES');
  return {
    ...(secret && { secret: secret.value }),
    ...(previousSecret && { previousSecret: previousSecret.value }),
    ...(apiLeases && { apiLeases: switchOf(apiLeases) }),
  };
}

interface Named {
  readonly name: string;
  readonly value: string;
}

/** An empty one is as none. */
function named(env: Environment, name: string): Named | undefined {
  return [`HOLDFAST_${name}`, `XG2G_${name}`]
    .map((full) => ({ name: full, value: env[full] ?? '' }))
    .find(({ value }) => value !== '');
}

function switchOf({ name, value }: Named): 'on' | 'off' {
  const word = value.toLowerCase();
  if (ON.has(word)) return 'on';
  if (OFF.has(word)) return 'off';
  throw new ConfigError({ field: name, value, rule: "it is 'on' or 'off'" });
}
