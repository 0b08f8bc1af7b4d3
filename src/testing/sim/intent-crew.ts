/**
 * What one instance does with intents: the production `Intents` accepts what clients ask of it, and looks from time to time for what
 * was lost. Beside it runs what brings the sessions to their end.
 */
import type { Emitter } from '../../base/events.ts';
import { wantedBy } from '../../intents/intent.ts';
import { type Accepted, Intents } from '../../intents/intents.ts';
import type { SecretOptions } from '../../intents/secrets.ts';
import { Retention } from '../../retention.ts';
import type { Store } from '../../store/store.ts';
import type { Audit } from './audit.ts';
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import type { Gateway, IntentClients, IntentRequest } from './intent-clients.ts';
import { wantedIn } from './intent-record.ts';
import { StandInWorker } from './stand-in-worker.ts';

/** What all instances of a world know of intents. */
export interface IntentSetting {
  readonly clients: IntentClients;
  /** `made`: nobody was given one. `changing`: some processes have a new one beside the old, and some the old one only. */
  readonly secrets: 'one' | 'made' | 'changing';
  readonly ttlMs: number;
}

export interface IntentCrewParts {
  readonly setting: IntentSetting;
  readonly process: SimProcess;
  readonly store: Store;
  readonly events: Emitter;
  readonly audit: Audit;
  readonly counters: Counters;
  /** Aborts when the instance is told to stop. */
  readonly over: AbortSignal;
}

const OLD_SECRET = 'the secret that all processes of a simulated world know';
const NEW_SECRET = 'the secret that some processes of a simulated world know';
/** Long enough for a client to be late, and short enough for a world to see it. */
const KEEP_ENDED = '5m';
/** How long a session is a worker's without a sign of life, in TTLs. */
const CLAIM_SHARE = 0.5;

export class IntentCrew implements Gateway {
  readonly process: SimProcess;
  readonly #parts: IntentCrewParts;
  readonly #intents: Intents;
  readonly #retention: Retention;
  readonly #worker: StandInWorker;

  constructor(parts: IntentCrewParts) {
    const { process, setting } = parts;
    this.#parts = parts;
    this.process = process;
    const own = { ...parts, clock: process, random: process.random, instanceId: process.name };
    this.#intents = new Intents(own, this.#secrets());
    this.#retention = new Retention(own, { sessions: KEEP_ENDED });
    this.#worker = new StandInWorker({ ...parts, claimMs: setting.ttlMs * CLAIM_SHARE });
  }

  start(): void {
    this.#intents.start();
    this.#retention.start();
    this.#worker.start();
    this.#parts.setting.clients.register(this);
  }

  async stop(): Promise<void> {
    const sweeping = [this.#intents.stop(), this.#retention.stop()];
    await Promise.all([...sweeping, this.#worker.stopped()]);
  }

  receive({ intent, by, askedMs, answer }: IntentRequest): void {
    const { over, audit } = this.#parts;
    const { process } = this;
    if (over.aborted) return;
    const tell = (outcome: Accepted | Error) => {
      process.reach('answer');
      if (process.isDead) return;
      if (!(outcome instanceof Error) && intent.type !== 'stream.stop') {
        const wanted = wantedIn(by.tenant ?? '', JSON.stringify(wantedBy(intent)));
        audit.intents?.accepted({ session: outcome.session.id, wanted, askedMs });
      }
      answer(outcome);
    };
    void this.#intents.submit(intent, by).then(tell, tell);
  }

  #secrets(): SecretOptions {
    const { secrets } = this.#parts.setting;
    if (secrets === 'made') return {};
    if (secrets === 'one' || this.process.random.next() < 0.5) return { secret: OLD_SECRET };
    return { secret: NEW_SECRET, previousSecret: OLD_SECRET };
  }
}
