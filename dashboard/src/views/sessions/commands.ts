/** The commands that start and stop a session. */
import { shellWord } from '../../data/words.ts';

export interface Start {
  readonly kind: 'live' | 'vod';
  readonly ref: string;
  readonly profile: string;
  readonly startMs: number;
}

/** Who asks: in the dashboard, the token. */
export interface Asker {
  readonly client: string;
  readonly tenant: string | null;
}

export function startCommand({ kind, ref, profile, startMs }: Start, asker: Asker): string {
  const words = [
    ...(kind === 'vod' ? ['--recording'] : []),
    ...(kind === 'vod' && startMs > 0 ? ['--at', `${startMs}ms`] : []),
    ...(profile === '' ? [] : ['--profile', profile]),
    ...askerWords(asker),
    ...named(ref),
  ];
  return `holdfast intents start ${words.map(shellWord).join(' ')}`;
}

export function stopCommand(session: string, asker: Asker, isForced: boolean): string {
  const words = [...(isForced ? ['--force'] : []), ...askerWords(asker), session];
  return `holdfast intents stop ${words.map(shellWord).join(' ')}`;
}

function askerWords({ client, tenant }: Asker): string[] {
  return ['--client', client, ...(tenant === null ? [] : ['--tenant', tenant])];
}

/** `--` before a reference that looks like an option. */
function named(ref: string): string[] {
  return ref.startsWith('-') ? ['--', ref] : [ref];
}
