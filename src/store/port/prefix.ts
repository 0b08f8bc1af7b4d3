import { ConfigError } from '../../core/errors.ts';

/**
 * The first words of all names in a store. A prefix has none of them between its colons, so that no
 * name can be read in two ways: with `poll:` as a prefix, the lease `x` would be the poll target
 * `x` of a client without one, and each of the two clients would keep a marker and a quarantine of
 * its own for it.
 */
const RESERVED = new Set([
  'lease',
  'poll',
  'workflow',
  'fence',
  'line',
  'meta',
  'removed',
  'holdfast',
  'index',
  'signal',
  'stream',
  'intent',
  'session',
  'record',
  'result',
  'secret',
  'workers',
  'pins',
  'drain',
]);
const FORM = /^([A-Za-z0-9._:~/@-]{0,64}:)?(\{[A-Za-z0-9._:~/@-]{1,64}\}:)?$/;

/** Refuses a prefix that is none, or whose names could be another prefix's. */
export function checkPrefix(prefix: unknown): asserts prefix is string {
  const refuse = (rule: string) => new ConfigError({ field: 'prefix', value: prefix, rule });
  if (typeof prefix !== 'string' || !FORM.test(prefix)) {
    throw refuse(
      "a prefix is empty, or up to 64 of the characters A-Z a-z 0-9 . _ : ~ / @ - and ends with ':', such as 'team:'. For a Redis " +
        "Cluster it may end with a hash tag and a colon, such as '{team}:'",
    );
  }
  const reserved = prefix.split(/[:{}]/).find((word) => RESERVED.has(word));
  if (reserved !== undefined)
    throw refuse(`'${reserved}' is a word that Holdfast's own names begin with: use another one`);
}
