/**
 * All watchers of the fleet in this process. They share one `FleetRounds`, which runs from the
 * first watcher to the last.
 */
import { ClosedError } from '../../core/errors.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { TargetIds } from '../targets/target-record.ts';
import type { FleetSighting } from './fleet-picture.ts';
import { FleetRounds } from './fleet-rounds.ts';
import type { FleetState } from './fleet-state.ts';
import { FleetWatcher } from './fleet-watcher.ts';

export class FleetWatch {
  readonly #rt: Runtime;
  readonly #targetIds: TargetIds;
  #rounds: FleetRounds | null = null;
  #isClosed = false;

  constructor(rt: Runtime, targetIds: TargetIds) {
    this.#rt = rt;
    this.#targetIds = targetIds;
  }

  /** The fleet, if it is being watched and the store answers. */
  get state(): FleetState | null {
    const rounds = this.#rounds;
    return rounds?.isReady === true && rounds.stalled === null ? rounds.state : null;
  }

  /** The fleet as it is, then each change, until the signal fires or this is closed. */
  async *watch({
    signal,
  }: {
    signal: AbortSignal;
  }): AsyncGenerator<FleetSighting, void, undefined> {
    if (this.#isClosed) throw new ClosedError({ operation: 'watch' });
    if (signal.aborted) return;
    const rounds = this.#rounds ?? this.#start();
    const watcher = new FleetWatcher();
    rounds.watchers.add(watcher);
    const onAbort = () => watcher.end();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        const sighting = watcher.next(rounds);
        if (sighting !== null) yield sighting;
        else if (watcher.isOver) return;
        else await watcher.woken();
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      rounds.watchers.delete(watcher);
      if (rounds.watchers.size === 0) this.#stop(rounds);
    }
  }

  /** Ends all watching. */
  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#rounds?.watchers ?? []) watcher.end();
  }

  #start(): FleetRounds {
    const rounds = new FleetRounds(this.#rt, this.#targetIds);
    this.#rounds = rounds;
    rounds.start();
    return rounds;
  }

  /** Does not wait for a request that is under way. */
  #stop(rounds: FleetRounds): void {
    if (this.#rounds === rounds) this.#rounds = null;
    void rounds.stop();
  }
}
