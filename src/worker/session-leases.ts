/**
 * Takes what a session needs, in this order: the lease of what it shows, which keeps two sessions off the same thing; then a slot. What is in somebody's
 * hands is not waited for, unless the pool says so; what nobody has but may not be given out yet (the store may have forgotten
 * grants, or a lease was revoked) is.
 */
import type { BusyReason } from '../core/errors.ts';
import { isTargetId } from '../core/ids.ts';
import { retryStore } from '../core/retry.ts';
import { untraced } from '../core/tracing.ts';
import { dedupKey } from '../intents/dedup-key.ts';
import type { IntentSession } from '../intents/intent-session.ts';
import { readSessions } from '../intents/session-reading.ts';
import { LEASE_CLASSES } from '../lease/classes.ts';
import type { Lease } from '../lease/lease.ts';
import type { AcquireResult } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import type { Pool } from '../lease/pool/pool.ts';
import { tracedAcquire } from '../lease/traced-leases.ts';
import { type Ended, ended, type RunOutcome } from './run-outcome.ts';
import type { RunParts } from './session-run.ts';

/** How much longer than it says a key is waited for that may not be given out yet; and how long at a time, whatever it says. */
const LATER_MS = 1_000;
const WAIT_MOST_MS = 60_000;
/** A lease that is held for a session which has ended is given back in a moment, unless its holder is no more. */
const GIVEN_BACK_MS = 2_000;
/** How often it is looked whether it has been; one look is the rule, two where something was granted. */
const MOST_LOOKS = 5;
const CALL = { timeoutMs: 2_000 };
const { keyspace } = LEASE_CLASSES.resource;
/** What the slot of a lost worker may take to be free, later than the lease of its session. */
const SLOT_OF_LOST_MS = 2_000;

export interface Wish {
  readonly session: IntentSession;
  /** It was another worker's, which is no more. */
  readonly isRecovery: boolean;
  /** Fires when it is not wanted any more. */
  readonly signal: AbortSignal;
}

export interface Slot {
  readonly name: string;
  readonly lease: Lease;
}

function askFor(
  { leases, tracing = untraced }: RunParts,
  key: string,
  options: AcquireOptions,
): Promise<AcquireResult> {
  const attributes = { 'holdfast.key': key, 'holdfast.class': options.class ?? 'lease' };
  return tracedAcquire(tracing, attributes, () => leases.acquire(key, options));
}

/** The lease that keeps two sessions off the same thing, or what becomes of the session without. */
export async function takeOwn(parts: RunParts, wish: Wish): Promise<Lease | RunOutcome> {
  const { session, isRecovery, signal } = wish;
  const { tenure, id } = session;
  // What the interface has taken for it already is gone on with.
  const who =
    tenure === undefined || isRecovery
      ? { holder: holderOf(parts, session), untilReleased: true }
      : { holder: tenure.holder, fence: tenure.fence, untilReleased: true };
  let hasWaited = false;
  for (let wait = 0; ; ) {
    const options = { ...parts.options, ...who, wait, signal };
    const ask = () => askFor(parts, dedupKey(session), options);
    const result = await retryStore(parts, signal, ask).catch(async (error: unknown) => {
      await givenBack(() => hasKey(parts, dedupKey(session), who.holder));
      throw error;
    });
    if (result.ok) return result.lease;
    if (result.reason !== 'held') {
      wait = waitFor(result.expiresInMs);
      continue;
    }
    const { key, holder } = result;
    // What was seen while it waited may be over by now.
    if (wait > 0) {
      wait = 0;
      continue;
    }
    // This very session, on another worker: it is in good hands.
    if (holder.endsWith(`/${id}`)) return { kind: 'gone', isGone: true };
    if (!hasWaited && (await retryStore(parts, signal, () => isOver(parts, holder)))) {
      hasWaited = true;
      wait = GIVEN_BACK_MS;
      continue;
    }
    // Whose it is may be no business of this one's clients.
    const why = `another session has '${key}'`;
    return ended(hasRun(wish) ? 'R_WORKER_LOST' : 'R_LEASE_BUSY', { why });
  }
}

/** A slot of the pool, or what becomes of the session without. */
export async function takeSlot(
  parts: RunParts,
  resource: string,
  wish: Wish,
): Promise<Slot | Ended> {
  const { session, isRecovery, signal } = wish;
  const { pool, waitMs } = parts.poolFor(resource);
  const holder = holderOf(parts, session);
  for (let wait = isRecovery ? Math.max(waitMs, SLOT_OF_LOST_MS) : waitMs; ; ) {
    const ask = () => pool.acquire({ holder, wait, signal, untilReleased: true });
    const result = await retryStore(parts, signal, ask).catch(async (error: unknown) => {
      await givenBack(() => hasSlot(pool, holder));
      throw error;
    });
    if (result.ok) return { name: result.slot, lease: result.lease };
    if (isNobodys(result.reason)) {
      wait = waitFor(result.expiresInMs);
      continue;
    }
    const why = `all ${result.slots} slots of '${result.pool}' are taken`;
    return ended(hasRun(wish) ? 'R_WORKER_LOST' : 'R_NO_TUNER', { why });
  }
}

/**
 * A run that stops waiting may yet be granted what it had asked for, and gives it back then. The store must not be told before that that
 * the session has ended: a client that reads `ENDED` finds the slot free, and an interface that takes leases itself (`apiLeases`) refuses
 * nobody because of the channel. Sessions are written over another connection than leases, so their order is no help. Requests about
 * leases do keep theirs: a look comes after the grant.
 */
async function givenBack(isHeld: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) if (!(await isHeld().catch(() => false))) return;
}

async function hasSlot(pool: Pool, holder: string): Promise<boolean> {
  return (await pool.inspect()).some((slot) => slot.holder === holder);
}

async function hasKey({ store }: RunParts, key: string, holder: string): Promise<boolean> {
  const [shown] = await store.leases.read([keyspace + key], CALL);
  return shown?.kind === 'held' && shown.holder === holder;
}

/** Whether what it is held for has ended: who was about to go on with that finds out, and lets go. */
async function isOver(parts: RunParts, holder: string): Promise<boolean> {
  const id = holder.slice(holder.lastIndexOf('/') + 1);
  if (!isTargetId(id)) return false;
  const [found] = await readSessions(parts, [id], CALL);
  return found?.state === 'ENDED';
}

/** Its last part says for which session: so whoever finds it busy knows whether it is the same. */
function holderOf({ instanceId }: RunParts, { id, tenure }: IntentSession): string {
  const holder = `${instanceId}/${id}`;
  // What the interface here had taken under that name, another worker may have gone on with, and may still be letting go of.
  return holder === tenure?.holder ? `${instanceId}/again/${id}` : holder;
}

/** What has run already is not refused, but lost. */
function hasRun({ session, isRecovery }: Wish): boolean {
  return isRecovery && session.state !== 'STARTING';
}

function waitFor(expiresInMs: number): number {
  return Math.min(expiresInMs, WAIT_MOST_MS) + LATER_MS;
}

function isNobodys(reason: BusyReason): boolean {
  return reason !== 'held';
}
