import type { Random } from '../../src/core/random.ts';
import type { Handoff } from '../../src/workflow/orchestrator.ts';
import type { SimProcess } from './host.ts';
import { PHASE, type Timeline } from './timeline.ts';

/** A process that can take over a workflow. */
export interface Recipient {
  readonly process: SimProcess;
  receive(handoff: Handoff): void;
}

/** How long a letter is under way. */
const DELAY_MOST_MS = 2_000;
/** The share of letters that nobody gets. */
const LOST_SHARE = 0.25;

/**
 * Carries what a successor needs to claim a workflow from one process to another: by no store, and
 * not for sure.
 */
export class Courier {
  readonly #parts: { readonly timeline: Timeline; readonly random: Random };
  readonly #recipients = new Set<Recipient>();

  constructor(parts: { timeline: Timeline; random: Random }) {
    this.#parts = parts;
  }

  register(recipient: Recipient): void {
    for (const one of this.#recipients) if (one.process.isDead) this.#recipients.delete(one);
    this.#recipients.add(recipient);
  }

  send(from: SimProcess, handoff: Handoff): void {
    const { timeline, random } = this.#parts;
    const others = [...this.#recipients].filter(({ process }) => process !== from);
    const to = others[Math.floor(random.next() * others.length)];
    const delayMs = random.next() * DELAY_MOST_MS;
    if (random.next() < LOST_SHARE || to === undefined) return;
    const arrive = () => to.process.deliver(() => to.receive(handoff));
    timeline.at(timeline.nowMs + delayMs, arrive, PHASE.input);
  }
}
