import { shortName } from '../../../core/ids.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { counted, printable, spanOf } from '../../ui/text.ts';
import { follow } from './following.ts';
import { findMember } from './members.ts';

const ALONE = 'no other instance can take over: this one keeps its targets until another joins.';

export interface DrainFlags {
  readonly wait: boolean;
}

export async function drain(
  { flags, output }: Context,
  text: string,
  { wait }: DrainFlags,
): Promise<Exit> {
  const ending = new StopSignals();
  try {
    return await withHoldfast(flags, async (holdfast) => {
      const view = await holdfast.fleet.view();
      const { id, owned } = findMember(view.members, text);
      const { changed } = await holdfast.fleet.drain(id);
      if (changed) audit(holdfast, { action: 'member.drain', subject: id });
      if (!wait) {
        const already = changed ? '' : ' already';
        const facts = { member: id, draining: true, changed, owned };
        const next = `${counted(owned, 'target')} left to hand over`;
        output.result(facts, () => `${shown(id)} is draining${already}: ${next}.\n`);
        return EXIT.ok;
      }
      return follow(holdfast, output, ending, (view, tookMs) => {
        const left = view.members.find((member) => member.id === id)?.owned ?? 0;
        const handedOver = `handed over ${counted(owned, 'target')} in ${spanOf(tookMs)}`;
        const facts = { member: id, draining: true, handedOver: owned, tookMs: Math.round(tookMs) };
        const text = `${shown(id)} ${handedOver}, and owns none now.\nUndo: holdfast undrain ${shown(id)}\n`;
        return {
          done: left === 0 ? () => output.result(facts, () => text) : null,
          note: isAlone(view, id) ? ALONE : null,
          status: `${shortName(id)} has handed over ${owned - left} of ${owned} targets …`,
          left: `${shortName(id)} continues to drain (${left} left). Undo: holdfast undrain ${shortName(id)}`,
        };
      });
    });
  } finally {
    ending.close();
  }
}

/** No other instance can take its targets. */
function isAlone({ members }: FleetView, id: string): boolean {
  return !members.some((member) => member.id !== id && !member.isDraining && !member.isForeign);
}

export async function undrain({ flags, output }: Context, text: string): Promise<Exit> {
  return withHoldfast(flags, async (holdfast) => {
    const { members } = await holdfast.fleet.view();
    const { id } = findMember(members, text);
    const { changed } = await holdfast.fleet.undrain(id);
    if (changed) audit(holdfast, { action: 'member.undrain', subject: id });
    output.result({ member: id, draining: false, changed }, () =>
      changed
        ? `${shown(id)} gets its share of the targets again.\n`
        : `${shown(id)} was not draining.\n`,
    );
    return EXIT.ok;
  });
}

function shown(id: string): string {
  return printable(shortName(id));
}
