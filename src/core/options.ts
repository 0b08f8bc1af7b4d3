/** What is checked of options everywhere in the same way, and told in the same words. */
import { ConfigError } from './errors.ts';

/** Refuses options that there are not: a name that is mistyped would otherwise do nothing, and say nothing. */
export function checkKnown(options: object, known: ReadonlySet<string>): void {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigError({ field: 'options', value: options, rule: 'options are an object' });
  }
  for (const name of Object.keys(options)) {
    if (known.has(name)) continue;
    const rule = `there is no such option; there are ${[...known].join(', ')}`;
    throw new ConfigError({ field: name, value: (options as Record<string, unknown>)[name], rule });
  }
}

export function checkSwitch(value: unknown, field: string): asserts value is 'on' | 'off' {
  if (value !== 'on' && value !== 'off')
    throw new ConfigError({ field, value, rule: "it is 'on' or 'off'" });
}
