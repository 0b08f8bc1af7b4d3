import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import type { Output } from '../../ui/output.ts';
import { StatusOutput } from '../../ui/status-output.ts';
import type { StopSignals } from '../../ui/stop-signals.ts';

/** How often the fleet is read. */
const POLL_EVERY_MS = 200;

/** The progress of an order to the fleet. */
interface Progress {
  /** Prints the result; null while the order is not carried out. */
  readonly done: (() => void) | null;
  /** A reason why the order takes longer. Printed once. */
  readonly note: string | null;
  /** The line for a terminal. */
  readonly status: string;
  /** The note for a user who stops waiting. */
  readonly left: string;
}

/** Reads the fleet until an order is carried out, or a signal asks to stop waiting. */
export async function follow(
  { fleet }: Holdfast,
  output: Output,
  signals: StopSignals,
  progressOf: (view: FleetView, tookMs: number) => Progress,
): Promise<Exit> {
  const startMs = systemClock.monotonicMs();
  const line = isatty(1) && !output.json ? new StatusOutput() : null;
  const print = (text: string) => {
    line?.clear();
    output.note(text);
  };
  let noted: string | null = null;
  for (;;) {
    const view = await fleet.view();
    const { done, note, status, left } = progressOf(view, systemClock.monotonicMs() - startMs);
    if (done !== null) {
      line?.clear();
      done();
      return EXIT.ok;
    }
    if (note !== null && note !== noted) print(note);
    noted = note ?? noted;
    line?.show(status);
    await systemClock.sleep(POLL_EVERY_MS, signals.asked).catch(() => {});
    if (!signals.asked.aborted) continue;
    print(`stopped waiting; ${left}`);
    return signals.asked.reason as NodeJS.Signals;
  }
}
