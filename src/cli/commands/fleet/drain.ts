import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import { shortName } from '../../../core/ids.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import type { Output } from '../../ui/output.ts';
import { StatusOutput } from '../../ui/status-output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { counted, printable, spanOf } from '../../ui/text.ts';
import { findMember } from './members.ts';

/** How often `drain` reads the fleet while it waits. */
const POLL_EVERY_MS = 200;

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
      return follow(holdfast, { id, owned }, output, ending);
    });
  } finally {
    ending.close();
  }
}

/** Waits until the instance owns no target, and shows its progress. */
async function follow(
  holdfast: Holdfast,
  { id, owned }: { id: string; owned: number },
  output: Output,
  ending: StopSignals,
): Promise<Exit> {
  const startMs = systemClock.monotonicMs();
  const status = isatty(1) && !output.json ? new StatusOutput() : null;
  let hasNoted = false;
  for (;;) {
    const view = await holdfast.fleet.view();
    const left = view.members.find((member) => member.id === id)?.owned ?? 0;
    const tookMs = systemClock.monotonicMs() - startMs;
    if (left === 0) {
      status?.clear();
      const facts = { member: id, draining: true, handedOver: owned, tookMs: Math.round(tookMs) };
      const done = `handed over ${counted(owned, 'target')} in ${spanOf(tookMs)}, and owns none now`;
      output.result(facts, () => `${shown(id)} ${done}.\nUndo: holdfast undrain ${shown(id)}\n`);
      return EXIT.ok;
    }
    if (isAlone(view, id) && !hasNoted) {
      status?.clear();
      output.note(
        'no other instance can take over: this one keeps its targets until another joins.',
      );
      hasNoted = true;
    }
    status?.show(`${shortName(id)} has handed over ${owned - left} of ${owned} targets …`);
    await systemClock.sleep(POLL_EVERY_MS, ending.asked).catch(() => {});
    if (!ending.asked.aborted) continue;
    status?.clear();
    output.note(
      `stopped waiting; ${shortName(id)} continues to drain (${left} left). ` +
        `Undo: holdfast undrain ${shortName(id)}`,
    );
    return ending.asked.reason as NodeJS.Signals;
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
