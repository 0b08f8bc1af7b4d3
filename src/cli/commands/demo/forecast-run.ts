/**
 * A workflow that never ends. Two orchestrators take turns: one emits an action for each station
 * and records its result. When the other takes over, the first still sends a step or two. The store
 * refuses them, which is what the demo shows.
 */
import type { Clock } from '../../../core/clock.ts';
import { HoldfastError } from '../../../core/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Action } from '../../../workflow/action.ts';
import type { Handoff, Orchestrator } from '../../../workflow/orchestrator.ts';
import { CITIES, type StationServer } from './station-server.ts';

export const FORECAST = 'forecast';
const BUREAU = 'bureau';
/** Short, so that a user sees the takeover after a crash. */
const TTL = '10s';
/** The time between two observations, and the time that one takes. */
const ROUND_MS = 4_000;
const OBSERVE_MS = 400;
/** So many observations per turn. */
const ROUNDS = 6;
const REASON = 'for show: it continues without knowing, and is refused';

export interface ForecastOptions {
  readonly clock: Clock;
  readonly stations: StationServer;
  /** Revokes leases, and runs the processor. */
  readonly operator: Holdfast;
  readonly orchestrators: readonly Holdfast[];
}

export class ForecastRun {
  readonly #options: ForecastOptions;
  readonly #over: AbortSignal;
  #observed = 0;

  constructor(options: ForecastOptions, over: AbortSignal) {
    this.#options = options;
    this.#over = over;
  }

  /** Runs until `over`. After any refusal, such as an operator's, the next orchestrator claims. */
  async run(): Promise<void> {
    const { clock, operator, orchestrators } = this.#options;
    await operator
      .processor({
        name: BUREAU,
        role: 'effect',
        handlers: { OBSERVE: (payload) => this.#observe(payload as { city: string }) },
      })
      .start();
    let handoff: Handoff | null = null;
    for (let turn = 0; !this.#over.aborted; turn++) {
      const writer = orchestrators[turn % orchestrators.length] as Holdfast;
      try {
        handoff = await this.#tenure(writer, handoff, turn % 4 < 2 ? 'revoked' : 'handed over');
      } catch (error) {
        if (!(error instanceof HoldfastError) && !this.#over.aborted) throw error;
        handoff = null;
        await clock.sleep(ROUND_MS, this.#over).catch(() => {});
      }
    }
  }

  /** One turn: from the claim to the refused steps. */
  async #tenure(
    { workflows }: Holdfast,
    handoff: Handoff | null,
    ends: 'revoked' | 'handed over',
  ): Promise<Handoff | null> {
    const signal = this.#over;
    const claim = handoff === null ? { wait: TTL } : { handoff };
    const writer = await workflows.claim(FORECAST, { ttl: TTL, signal, ...claim });
    const first = await this.#round(writer);
    for (let round = 1; round < ROUNDS; round++) await this.#round(writer);
    return ends === 'revoked' ? this.#revoke(writer) : this.#handOver(writer, first);
  }

  async #round(writer: Orchestrator): Promise<Action> {
    const { clock } = this.#options;
    const city = CITIES[this.#observed++ % CITIES.length] as string;
    const action = await writer.emit('OBSERVE', { city }, { target: BUREAU });
    const { value } = await writer.result(action.action_id, { signal: this.#over });
    await writer.updateState({ city, observed: value });
    await clock.sleep(ROUND_MS, this.#over);
    return action;
  }

  async #observe({ city }: { city: string }): Promise<{ celsius: number | null }> {
    const { clock, stations } = this.#options;
    await clock.sleep(OBSERVE_MS, this.#over);
    return { celsius: stations.read(city) };
  }

  /** An operator revokes the lease. The next action of the writer is a LEASE_VIOLATION. */
  async #revoke(writer: Orchestrator): Promise<null> {
    await this.#options.operator.workflows.revokeLease(writer.leaseId, REASON);
    await refused(() => writer.emit('OBSERVE', { city: CITIES[0] }, { target: BUREAU }));
    return null;
  }

  /** A repeated action is a STALE_EPOCH; a write after the handoff is a LEASE_VIOLATION. */
  async #handOver(writer: Orchestrator, first: Action): Promise<Handoff> {
    await refused(async () => writer.validateAction(first));
    const handoff = await writer.handoff();
    await refused(() => writer.updateState({ by: 'one who has handed over' }));
    return handoff;
  }
}

/** The refusal is an event, and metrics count it. */
async function refused(step: () => Promise<unknown>): Promise<void> {
  await step().catch((error: unknown) => {
    if (!(error instanceof HoldfastError)) throw error;
  });
}
