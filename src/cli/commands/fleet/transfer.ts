import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import { checkTargetId, shortName } from '../../../core/ids.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import type { Output } from '../../ui/output.ts';
import { StatusOutput } from '../../ui/status-output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { printable, spanOf, withShortNames } from '../../ui/text.ts';
import { findMember } from './members.ts';

/** How often `transfer` reads the fleet while it waits. */
const POLL_EVERY_MS = 200;

export interface TransferFlags {
  readonly wait: boolean;
  readonly reason?: string;
}

interface Order {
  readonly target: string;
  readonly from: string | null;
  readonly to: string;
}

export async function transfer(
  { flags, output }: Context,
  target: string,
  member: string,
  { wait, reason }: TransferFlags,
): Promise<Exit> {
  checkTargetId(target, 'TARGET');
  const ending = new StopSignals();
  try {
    return await withHoldfast(flags, async (holdfast) => {
      const { members } = await holdfast.fleet.view();
      const { id: to } = findMember(members, member);
      const options = reason === undefined ? {} : { reason };
      const { from } = await holdfast.fleet.transfer(target, to, options);
      audit(holdfast, { action: 'target.transfer', subject: target, to, ...options });
      if (wait) return follow(holdfast, { target, from, to }, output, ending);
      output.result(
        { target, from, to },
        () => `${target} moves to ${shown(to)}${whence(from)}.\n`,
      );
      return EXIT.ok;
    });
  } finally {
    ending.close();
  }
}

/** Waits until the instance owns the target, and shows the reason of the wait. */
async function follow(
  holdfast: Holdfast,
  { target, from, to }: Order,
  output: Output,
  ending: StopSignals,
): Promise<Exit> {
  const startMs = systemClock.monotonicMs();
  const status = isatty(1) && !output.json ? new StatusOutput() : null;
  let said = '';
  for (;;) {
    const view = await holdfast.fleet.view();
    const tookMs = systemClock.monotonicMs() - startMs;
    const found = view.targets.find((one) => one.target === target);
    if (found?.owner === to) {
      status?.clear();
      output.result({ target, from, to, tookMs: Math.round(tookMs) }, () => {
        const done = `${shown(to)} owns ${target}, after ${spanOf(tookMs)}, and keeps it.`;
        return `${done}\nUndo: holdfast unpin ${target}\n`;
      });
      return EXIT.ok;
    }
    const obstacle = obstacleIn(view, to, found !== undefined);
    if (obstacle !== null && obstacle !== said) {
      status?.clear();
      output.note(obstacle);
      said = obstacle;
    }
    status?.show(withShortNames(`${target}: ${found?.text ?? 'it is paused.'}`));
    await systemClock.sleep(POLL_EVERY_MS, ending.asked).catch(() => {});
    if (!ending.asked.aborted) continue;
    status?.clear();
    output.note(
      `stopped waiting; ${target} still moves to ${shortName(to)} when its owner hands it over. ` +
        `Undo: holdfast unpin ${target}`,
    );
    return ending.asked.reason as NodeJS.Signals;
  }
}

/** What blocks the transfer now; null if nothing does. */
function obstacleIn({ members }: FleetView, to: string, isPolled: boolean): string | null {
  if (!isPolled) return 'the target is paused: it moves when it is resumed.';
  const member = members.find(({ id }) => id === to);
  if (member === undefined)
    return `${shortName(to)} has ended: the transfer has no effect any more.`;
  return member.isDraining
    ? `${shortName(to)} is draining: the transfer has no effect until it is undrained.`
    : null;
}

export async function unpin({ flags, output }: Context, target: string): Promise<Exit> {
  checkTargetId(target, 'TARGET');
  return withHoldfast(flags, async (holdfast) => {
    const { changed } = await holdfast.fleet.unpin(target);
    if (changed) audit(holdfast, { action: 'target.unpin', subject: target });
    output.result({ target, changed }, () =>
      changed
        ? `${target} may move again. It stays where it is while the shares are even.\n`
        : `${target} was not pinned.\n`,
    );
    return EXIT.ok;
  });
}

function whence(from: string | null): string {
  return from === null ? '; it has no owner now' : ` when ${shown(from)} hands it over`;
}

function shown(id: string): string {
  return printable(shortName(id));
}
