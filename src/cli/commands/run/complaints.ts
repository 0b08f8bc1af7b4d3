/** The errors of `holdfast run`. */
import { LeaseLostError } from '../../../core/errors.ts';
import type { Lease } from '../../../lease/lease.ts';
import type { AcquireResult } from '../../../lease/leases.ts';
import type { NotRun } from '../../../lease/once.ts';
import type { SlotResult } from '../../../lease/pool/pool.ts';
import { CliError, EXIT } from '../../exit-codes.ts';
import { spanOf } from '../../ui/text.ts';

type Refusal = Extract<AcquireResult, { ok: false }>;
type Held = Exclude<Refusal, { reason: 'quarantine' }>;

export function heldError(refusal: Refusal): CliError {
  const { ok: _, ...facts } = refusal;
  if (refusal.reason === 'quarantine') return quarantinedError(refusal.key, facts);
  const waited = refusal.waitedMs > 0 ? ` Waited ${spanOf(refusal.waitedMs)}.` : '';
  const advice = waited || ' Use --wait to wait for it.';
  return new CliError(
    EXIT.held,
    'LEASE_HELD',
    `could not acquire ${whyHeld(refusal)}.${advice}`,
    facts,
  );
}

export function fullError(refusal: Extract<SlotResult, { ok: false }>): CliError {
  const { ok: _, ...facts } = refusal;
  if (refusal.reason === 'quarantine') return quarantinedError(refusal.pool, facts);
  const waited = refusal.waitedMs > 0 ? ` Waited ${spanOf(refusal.waitedMs)}.` : '';
  const advice = waited || ' Use --wait to wait for one.';
  return new CliError(EXIT.held, 'POOL_FULL', `${whyFull(refusal)}.${advice}`, facts);
}

/**
 * Why `--once-per` did not run the command. In a quarantine no process may run it, which is an
 * error; otherwise another process has run it, or runs it.
 */
export function notRunError(result: NotRun): CliError {
  const { ok: _, ...facts } = result;
  const { key } = result;
  if (result.reason === 'quarantine') return quarantinedError(key, { ...result, waitedMs: 0 });
  const { holder } = result;
  if (result.reason === 'running') {
    const since = result.startedAt === null ? '' : ` since ${utc(result.startedAt)}`;
    const message = `'${key}' is not run here: ${holder} runs it${since}.`;
    return new CliError(EXIT.held, 'PERIOD_RUNNING', message, facts);
  }
  const { startedAt, endedAt, nextAt } = result;
  const took =
    endedAt === null
      ? 'and did not end; --on-crash retry would start over'
      : `for ${spanOf(endedAt.getTime() - startedAt.getTime())}`;
  const message = `'${key}' is not run here: ${holder} ran it at ${utc(startedAt)} ${took}. The next run may begin at ${utc(nextAt)}.`;
  return new CliError(EXIT.ok, 'PERIOD_DONE', message, facts);
}

function utc(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** No process ran the command, so cron should mail this. */
function quarantinedError(
  key: string,
  facts: { readonly expiresInMs: number; readonly waitedMs: number },
): CliError {
  const left = spanOf(facts.expiresInMs);
  const waited = facts.waitedMs > 0 ? ` Waited ${spanOf(facts.waitedMs)}.` : '';
  const message =
    `the command of '${key}' was not run: the store is in quarantine for ${left} more. It just started or lost data, ` +
    `and may have lost leases that are still held.${waited} Run the command again after that, or use a longer --wait.`;
  return new CliError(EXIT.quarantined, 'STORE_QUARANTINED', message, facts);
}

function whyFull({ pool, slots, reason, expiresInMs }: Extract<SlotResult, { ok: false }>): string {
  const left = spanOf(expiresInMs);
  const what = reason === 'held' ? 'held' : 'held, or blocked after a revocation';
  return `could not acquire a slot of '${pool}': all ${slots} are ${what}; the first expires in ${left}`;
}

function whyHeld({ key, holder, fence, expiresInMs, reason }: Held): string {
  const left = spanOf(expiresInMs);
  if (reason === 'revoked') return `'${key}': it was revoked, and stays blocked for ${left}`;
  const end = Number.isFinite(expiresInMs) ? `expires in ${left}` : 'never expires';
  return `'${key}': held by ${holder} (fence ${fence}), ${end}`;
}

const LOSSES: Readonly<Record<string, string>> = {
  expired: 'no renewal was confirmed in time',
  max_hold: 'it was held for as long as it may be (maxHold)',
  taken_over: 'the store names another holder',
  revoked: 'it was revoked',
  unsuitable: 'the store is no longer fit for leases; see holdfast doctor',
  deadline: 'no renewal arrived in time: the host slept, was too busy, or its clock was changed',
};

export function lost(lease: Lease): CliError {
  const { key, holder, fence } = lease;
  const error: unknown = lease.signal.reason;
  const isLost = error instanceof LeaseLostError;
  const reason = isLost ? error.reason : 'deadline';
  const heldFor = isLost ? ` after ${spanOf(error.heldForMs)}` : '';
  const message = `lost '${key}' (${LOSSES[reason] ?? reason})${heldFor}; the command was stopped. Fix the cause, then run it again.`;
  const facts = { key, holder, fence, reason, ...(isLost && { heldForMs: error.heldForMs }) };
  return new CliError(EXIT.lost, 'LEASE_LOST', message, facts);
}

export function survivors(key: string): CliError {
  const message = `some processes of the command could not be ended: they run as another user, or hang. The lease '${key}' is not released; it expires.`;
  return new CliError(EXIT.internal, 'COMMAND_SURVIVES', message, { key });
}

export function supervisorGone(isEnded: boolean): CliError {
  const what = isEnded
    ? 'so the command was ended'
    : 'and the command may still run; its lease is not released, it expires';
  const message = `the supervisor of the command died, ${what}. Find out what killed it.`;
  return new CliError(EXIT.internal, 'SUPERVISOR_DIED', message);
}

/** With the exit codes of shells. */
export function notStarted(command: string, error: string): CliError {
  if (error === 'ENOENT' || error === 'ENOTDIR') {
    const message = `'${command}' was not found. Check its name and PATH.`;
    return new CliError(EXIT.notFound, 'COMMAND_NOT_FOUND', message, { command });
  }
  const message = `'${command}' could not be executed (${error}). Check that it is a program, and its permissions.`;
  return new CliError(EXIT.notExecutable, 'COMMAND_NOT_EXECUTABLE', message, { command });
}
