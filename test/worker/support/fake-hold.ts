import type { IntentSession } from '../../../src/intents/intent-session.ts';
import type { PipelineHold } from '../../../src/worker/pipelines/pipeline.ts';
import type { CommandDeadline } from '../../../src/worker/supervisor/command-deadline.ts';
import type { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { deadlineIn } from '../../support/deadline-in.ts';

/** What a pipeline runs under, without leases. */
export class FakeHold implements PipelineHold {
  readonly attempt = 1;
  readonly fence = 1_234;
  readonly slot: string | null = '2';
  readonly reported: unknown[] = [];
  asserted = 0;
  confirms = 0;
  validMs = 10_000;
  readonly #clock: FakeClock;
  readonly #controller = new AbortController();

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
  }

  async guard(): Promise<void> {}

  assertHeld(): void {
    this.asserted += 1;
  }

  progress(value: unknown): void {
    this.reported.push(value);
  }

  deadline(): CommandDeadline {
    return deadlineIn(this.#clock, this.validMs);
  }

  confirm(): void {
    this.confirms += 1;
  }
}

export function sessionFor(about: Partial<IntentSession>): IntentSession {
  return {
    ...{ id: 's-1', tenant: 'acme', state: 'STARTING', revision: 2, clients: 1 },
    ...{ kind: 'live', type: 'stream.start', target: '1:0:19:2B66', profile: 'hd', bucket: '0' },
    ...{ reason: null, outcome: null, worker: 'w', slot: null },
    ...{ createdAtMs: 0, changedAtMs: 0 },
    ...about,
  };
}
