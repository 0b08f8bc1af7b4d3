import { ConfigError } from './errors.ts';

/**
 * Milliseconds as a number, or a number with a unit: `500`, `'250ms'`, `'30s'`, `'5m'`, `'1.5h'`,
 * `'7d'`.
 */
export type Duration = number | string;

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * `duration` in milliseconds. `field` names the option in the error for anything that is not a
 * duration.
 */
export function durationMs(duration: Duration, field: string): number {
  const ms = typeof duration === 'string' ? parse(duration) : duration;
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw new ConfigError({
      field,
      value: duration,
      rule: "a duration is milliseconds as a number from 0 up, or text such as '250ms', '30s', '5m', '1h', '7d'",
    });
  }
  return ms;
}

function parse(text: string): number | undefined {
  const parts = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  const unitMs = parts?.[2] === undefined ? undefined : UNIT_MS[parts[2]];
  return unitMs === undefined ? undefined : Number(parts?.[1]) * unitMs;
}
