import type { Part, Servers, Work } from '../topology/servers.ts';

/** Records in one request: what a script does to them at once keeps Redis from everybody else. */
const CHUNK = 200;

/** Runs a verb in chunks; gives each key's reply, or the error that came instead. */
export async function inChunks(
  servers: Servers,
  work: Work,
  leftMs: () => number,
): Promise<unknown[]> {
  const replies: unknown[] = [];
  for (let at = 0; at < work.keys.length; at += CHUNK) {
    for (const part of await servers.run(chunkOf(work, at), leftMs())) {
      const given = repliesOf(part, work);
      for (let i = 0; i < part.count; i++) replies[at + part.from + i] = given[i];
    }
  }
  return replies;
}

function repliesOf(part: Part, { script }: Work): unknown[] {
  if (part.kind === 'reply') return part.reply as unknown[];
  const error = part.kind === 'failed' ? part.error : new Error(`${script.operation}: no reply`);
  return new Array(part.count).fill(error);
}

function chunkOf(work: Work, at: number): Work {
  if (work.keys.length <= CHUNK) return work;
  const keys = work.keys.slice(at, at + CHUNK);
  const perKey = work.perKey.slice(at, at + CHUNK);
  return { ...work, keys, perKey };
}
