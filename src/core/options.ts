/** Checks that all options share, with the same messages. */
import { ConfigError } from './errors.ts';

/** Refuses unknown options: a mistyped name would otherwise be ignored without a word. */
export function checkKnown(options: object, known: ReadonlySet<string>): void {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError({ field: 'options', value: options, rule: 'options are an object' });
  }
  for (const name of Object.keys(options)) {
    if (known.has(name)) continue;
    const rule = `unknown option. Known options: ${[...known].join(', ')}`;
    throw new ConfigError({ field: name, value: (options as Record<string, unknown>)[name], rule });
  }
}

export function checkSwitch(value: unknown, field: string): asserts value is 'on' | 'off' {
  if (value !== 'on' && value !== 'off')
    throw new ConfigError({ field, value, rule: "must be 'on' or 'off'" });
}
