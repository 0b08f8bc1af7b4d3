/** What a run has found, in words and as a file that is run first from then on. */
import type { Violation } from './audit.ts';
import type { AnyEpisode, WorldOptions } from './world.ts';

/** A world that broke a promise, and what it could be narrowed down to. */
export interface Finding {
  readonly options: WorldOptions;
  readonly violation: Violation;
  readonly shrunk: {
    readonly episodes: readonly AnyEpisode[];
    readonly drawing: string;
    readonly tries: number;
  };
}

export interface Regression {
  readonly commit: string;
  readonly broke: string;
  readonly options: WorldOptions;
}

/** How to see it again, what it needs, and what happened. */
export function tell({ options, violation, shrunk }: Finding, commit: string): string {
  const faults = shrunk.episodes.flatMap((episode) => episode.faults);
  const named = faults.map(({ kind, point }) => (kind.endsWith(' at') ? `${kind} ${point}` : kind));
  return [
    `✗ seed ${options.seed}: ${violation.invariant}: ${violation.text}`,
    `  commit ${commit}; again: npm run sim -- ${flagsOf(options)}`,
    `  ${faults.length} faults are enough (${shrunk.tries} worlds tried): ${named.join(', ')}`,
    '',
    shrunk.drawing,
  ].join('\n');
}

function flagsOf(options: WorldOptions): string {
  const { seed, hours = 1, kind, instances, targets, ttlMs: ttl, workflows, intents } = options;
  const flags = { seed, hours, world: hours, kind, instances, targets, ttl, workflows, intents };
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => `--${name} ${value}`).join(' ');
}

/** What is known, and what was found now, narrowed down; each world once. */
export function withFound(
  known: readonly Regression[],
  found: readonly Finding[],
  commit: string,
): Regression[] {
  const all = [...known];
  for (const { options, violation, shrunk } of found) {
    if (all.some((one) => isSameWorld(one.options, options))) continue;
    const broke = `${violation.invariant}: ${violation.text}`;
    all.push({ commit, broke, options: { ...options, episodes: shrunk.episodes } });
  }
  return all;
}

/** Whatever plan of faults it was narrowed down to. */
function isSameWorld(a: WorldOptions, b: WorldOptions): boolean {
  const shape = (of: WorldOptions) => {
    const { seed, hours, kind, instances, targets, ttlMs, workflows, intents } = of;
    return JSON.stringify([seed, hours, kind, instances, targets, ttlMs, workflows, intents]);
  };
  return shape(a) === shape(b);
}
