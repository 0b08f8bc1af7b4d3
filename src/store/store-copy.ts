/**
 * Copies all that lasts from one store to another, while every process of both is stopped:
 *
 * 1. Refuses a source in use: a live member, a lease, a tombstone, or a claim of a processor.
 * 2. Refuses a target that is in use or not empty, or whose clock is behind the source's fences.
 * 3. Marks the target as unfinished, and removes what an earlier unfinished copy left there.
 * 4. Copies noun by noun. The source is only read.
 * 5. Reads both stores again and compares them, and looks again whether the source is in use.
 * 6. Removes the mark, in one step.
 *
 * A copy that is killed at any moment leaves the source as it was, and a target that every Holdfast
 * refuses to open. The next copy begins again at 3.
 *
 * Fences never fall. Each key's last fence is copied, and the target's clock, from which new fences
 * are made, is ahead of all of them. Leases are not copied: a stopped process holds none.
 */
import { createHash } from 'node:crypto';
import { ConfigError, StoreRefusedError } from '../core/errors.ts';
import { spanOf } from '../core/time-text.ts';
import { rising } from './copied.ts';
import { COPY_NOUNS, type CopyEntries, type CopyNoun, type CopyStore } from './port/copy-store.ts';
import { KEYSPACE_NAMES, KEYSPACES } from './port/keyspaces.ts';
import type { Call, Store } from './port/store.ts';

const CALL: Call = { timeoutMs: 60_000 };
const NOUNS: readonly CopyNoun[] = [...COPY_NOUNS.coordination, ...COPY_NOUNS.work];
/** A message names so many live instances, leases and claims. */
const NAMED_MOST = 5;

type CopyCounts = Readonly<Record<CopyNoun, number>>;

export interface CopyReport {
  readonly from: string;
  readonly to: string;
  readonly counts: CopyCounts;
  /** Of all entries but fences, as both stores have them: SHA-256 in hex. Null for a dry run. */
  readonly digest: string | null;
}

export interface CopyOptions {
  /** Checks and counts, and writes nothing. */
  readonly dryRun?: boolean;
  readonly onProgress?: (progress: CopyProgress) => void;
}

export interface CopyProgress {
  readonly step: 'copy' | 'verify';
  readonly noun: CopyNoun;
  readonly entries: number;
}

/** Throws if the source cannot be copied now. */
export async function checkSource(from: Store): Promise<void> {
  await checkIdle(from, copiesOf(from, 'FROM'), 'Nothing was copied.');
}

/** `to` is null in a dry run into a store that does not exist yet. */
export async function copyStore(
  from: Store,
  to: Store | null,
  { dryRun = false, onProgress = () => {} }: CopyOptions = {},
): Promise<CopyReport> {
  const source = copiesOf(from, 'FROM');
  const target = to && copiesOf(to, 'TO');
  const names = { from: from.name, to: to?.name ?? '' };
  await checkIdle(from, source, 'Nothing was copied.');
  if (to !== null && target !== null) await checkTarget(to, target);
  const before = await survey(source, () => {});
  if (to !== null && target !== null) await checkClock(to, target, before.highestFence);
  if (dryRun || to === null || target === null)
    return { ...names, counts: before.counts, digest: null };
  await target.begin(CALL);
  for (const noun of NOUNS) await copyNoun(source, target, noun, onProgress);
  const unfinished = `${to.name} is unfinished: run the same command again.`;
  const inSource = await survey(source, () => {});
  const inTarget = await survey(target, (noun, entries) =>
    onProgress({ step: 'verify', noun, entries }),
  );
  await checkIdle(from, source, unfinished);
  checkSame(from, to, { before, inSource, inTarget });
  await checkFences(source, to, target);
  await target.finish(CALL);
  return { ...names, counts: inTarget.counts, digest: inTarget.digest };
}

function copiesOf({ copies }: Store, field: string): CopyStore {
  if (copies !== undefined) return copies;
  const rule = 'it must be a store that outlives its process: sqlite:…, redis://… or postgres://…';
  throw new ConfigError({ field, value: 'memory:', rule });
}

async function copyNoun<N extends CopyNoun>(
  source: CopyStore,
  target: CopyStore,
  noun: N,
  onProgress: (progress: CopyProgress) => void,
): Promise<void> {
  let entries = 0;
  for await (const batch of exported(source, noun)) {
    await target.import(noun, batch, CALL);
    entries += batch.length;
    onProgress({ step: 'copy', noun, entries });
  }
}

/** The export of a store, with times of the dead that never fall within a stream. */
async function* exported<N extends CopyNoun>(
  copies: CopyStore,
  noun: N,
): AsyncGenerator<readonly CopyEntries[N][]> {
  const last = new Map<string, CopyEntries['dead']>();
  for await (const batch of copies.export(noun, CALL)) {
    if (noun !== 'dead') {
      yield batch;
      continue;
    }
    const dead = (batch as readonly CopyEntries['dead'][]).map((entry) => {
      const rows = [last.get(entry.stream) ?? entry, entry];
      const risen = rising<CopyEntries['dead'], 'atMs'>(rows, 'atMs', 0)[1] ?? entry;
      last.set(entry.stream, risen);
      return risen;
    });
    yield dead as CopyEntries[N][];
  }
}

// ---- What is in a store ----

interface Survey {
  readonly counts: CopyCounts;
  readonly digest: string;
  readonly digests: Readonly<Record<CopyNoun, string>>;
  readonly highestFence: number;
}

async function survey(
  copies: CopyStore,
  onCounted: (noun: CopyNoun, entries: number) => void,
): Promise<Survey> {
  const counts = Object.fromEntries(NOUNS.map((noun) => [noun, 0])) as Record<CopyNoun, number>;
  const digests: Partial<Record<CopyNoun, string>> = {};
  const all = createHash('sha256');
  let highestFence = 0;
  for (const noun of NOUNS) {
    const digest = createHash('sha256');
    for await (const batch of exported(copies, noun)) {
      counts[noun] += batch.length;
      for (const entry of batch) {
        digest.update(`${textOf(comparable(noun, entry))}\n`);
        if (noun === 'fences')
          highestFence = Math.max(highestFence, (entry as CopyEntries['fences']).fence);
      }
      onCounted(noun, counts[noun]);
    }
    digests[noun] = digest.digest('hex');
    if (noun !== 'fences') all.update(`${noun} ${digests[noun]}\n`);
  }
  const full = digests as Record<CopyNoun, string>;
  return { counts, digests: full, digest: all.digest('hex'), highestFence };
}

/** Without what a copy changes: a claim is a retry there, and clocks of stores differ. */
function comparable(noun: CopyNoun, entry: object): object {
  if (noun !== 'lanes') return entry;
  const { isClaimed: _, dueUs, ...rest } = entry as CopyEntries['lanes'];
  return { ...rest, isDue: dueUs !== null };
}

/** JSON with sorted fields. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

// ---- Refusals ----

function refusal(store: Store, reply: string, advice: string): StoreRefusedError {
  return new StoreRefusedError({ store: store.name, operation: 'copy', reply, advice });
}

/** Throws if a process may still work with the store. */
async function checkIdle(store: Store, copies: CopyStore, outcome: string): Promise<void> {
  const members = await store.members.list({ ...CALL, thorough: true });
  const alive = members.map(({ id }) => `instance ${id}`);
  const uses = [...alive, ...(await heldLeases(store, copies)), ...(await liveClaims(copies))];
  if (uses.length === 0) return;
  const more = uses.length > NAMED_MOST ? ` and ${uses.length - NAMED_MOST} more` : '';
  const advice =
    'Stop every process of the store. What belonged to a process that was killed expires by itself: ' +
    `then run the command again. ${outcome}`;
  throw refusal(store, `it is in use by ${uses.slice(0, NAMED_MOST).join(', ')}${more}`, advice);
}

/** Leases and tombstones. Each has a fence record, unless another program made it. */
async function heldLeases(store: Store, copies: CopyStore): Promise<string[]> {
  const keys = new Set<string>();
  for await (const batch of copies.export('fences', CALL))
    for (const { key } of batch) if (key !== null) keys.add(key);
  for (const name of KEYSPACE_NAMES) {
    let cursor: string | undefined;
    do {
      const page = await store.leases.list(KEYSPACES[name], { ...CALL, ...(cursor && { cursor }) });
      for (const { key } of page.leases) keys.add(key);
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
  const all = [...keys];
  const held: string[] = [];
  for (let at = 0; at < all.length; at += 500) {
    const some = all.slice(at, at + 500);
    const replies = await store.leases.read(some, CALL);
    replies.forEach((reply, i) => {
      if (reply.kind === 'failed') throw reply.error;
      if (reply.kind === 'free') return;
      const left = Number.isFinite(reply.expiresInMs)
        ? `expires in ${spanOf(reply.expiresInMs)}`
        : 'has no expiry';
      const who = reply.kind === 'held' ? `held by ${reply.holder}, ` : 'revoked, ';
      held.push(`lease '${some[i]}' (${who}${left})`);
    });
  }
  return held;
}

/** Entries that a processor or worker has: it may still work on them. */
async function liveClaims(copies: CopyStore): Promise<string[]> {
  const nowUs = await copies.fenceClock(CALL);
  const claims: string[] = [];
  for await (const batch of copies.export('lanes', CALL))
    for (const { stream, lane, isClaimed, dueUs } of batch) {
      const leftMs = ((dueUs ?? 0) - nowUs) / 1_000;
      if (isClaimed && leftMs > 0)
        claims.push(`'${lane}' in ${stream} (claimed, expires in ${spanOf(leftMs)})`);
    }
  return claims;
}

/** Throws unless the target is empty, or has an unfinished copy. Fences may be there. */
async function checkTarget(to: Store, target: CopyStore): Promise<void> {
  await checkIdle(to, target, 'Nothing was copied.');
  if (await target.isUnfinished(CALL)) return;
  const { counts } = await survey(target, () => {});
  const there = COPY_NOUNS.work.filter((noun) => counts[noun] > 0);
  if (there.length === 0) return;
  const list = there.map((noun) => `${counts[noun]} ${noun}`).join(', ');
  const advice = 'Copy into an empty store, or use another prefix. Nothing was copied.';
  throw refusal(to, `it is not empty: it has ${list}`, advice);
}

async function checkClock(to: Store, target: CopyStore, highestFence: number): Promise<void> {
  const behindMs = (highestFence - (await target.fenceClock(CALL))) / 1_000;
  if (behindMs < 0) return;
  const reply = `its clock is ${spanOf(Math.ceil(behindMs) + 1)} behind the highest fence to copy`;
  const advice =
    'New fences are made from that clock, and must be higher. Set the clocks, or wait that long. Nothing was copied.';
  throw refusal(to, reply, advice);
}

interface Surveys {
  readonly before: Survey;
  readonly inSource: Survey;
  readonly inTarget: Survey;
}

function checkSame(from: Store, to: Store, { before, inSource, inTarget }: Surveys): void {
  const differ = (a: Survey, b: Survey) =>
    NOUNS.filter((noun) => a.digests[noun] !== b.digests[noun]);
  const changed = differ(before, inSource);
  if (changed.length > 0) {
    const advice = `Stop every process that uses it. ${to.name} is unfinished: run the same command again.`;
    throw refusal(from, `its ${changed.join(', ')} changed during the copy`, advice);
  }
  // The target may have higher fences, and fences of its own.
  const wrong = differ(inSource, inTarget).filter((noun) => noun !== 'fences');
  if (wrong.length === 0) return;
  const list = wrong.map((noun) => {
    return `${noun} (${inTarget.counts[noun]} of ${inSource.counts[noun]})`;
  });
  const advice = `${to.name} is unfinished. Run the same command again; if it fails again, report it.`;
  throw refusal(to, `it does not have what was copied: ${list.join(', ')} differ`, advice);
}

/** Throws if a key of the target has a lower fence than in the source. */
async function checkFences(source: CopyStore, to: Store, target: CopyStore): Promise<void> {
  const fences = new Map<string | null, number>();
  for await (const batch of target.export('fences', CALL))
    for (const { key, fence } of batch) fences.set(key, fence);
  for await (const batch of source.export('fences', CALL))
    for (const { key, fence } of batch) {
      if ((fences.get(key) ?? 0) >= fence) continue;
      const advice = `${to.name} is unfinished. Run the same command again; if it fails again, report it.`;
      throw refusal(to, `it has no fence of at least ${fence} for '${key ?? 'entries'}'`, advice);
    }
}
