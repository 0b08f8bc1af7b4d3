import { checkTargetId, shortName } from '../../../core/ids.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { printable, spanOf, withShortNames } from '../../ui/text.ts';
import { follow } from './following.ts';
import { findMember } from './members.ts';

export interface TransferFlags {
  readonly wait: boolean;
  readonly reason?: string;
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
      if (!wait) {
        const text = `${target} moves to ${shown(to)}${whence(from)}.\n`;
        output.result({ target, from, to }, () => text);
        return EXIT.ok;
      }
      return follow(holdfast, output, ending, (view, tookMs) => {
        const found = view.targets.find((one) => one.target === target);
        const text = `${shown(to)} owns ${target}, after ${spanOf(tookMs)}, and keeps it.\nUndo: holdfast unpin ${target}\n`;
        const facts = { target, from, to, tookMs: Math.round(tookMs) };
        return {
          done: found?.owner === to ? () => output.result(facts, () => text) : null,
          note: obstacleIn(view, to, found !== undefined),
          status: withShortNames(`${target}: ${found?.text ?? 'it is paused.'}`),
          left: `${target} still moves to ${shortName(to)} when its owner hands it over. Undo: holdfast unpin ${target}`,
        };
      });
    });
  } finally {
    ending.close();
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
