import { isatty } from 'node:tty';
import { type Clock, systemClock, type Timer } from '../../../core/clock.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { neverBlock, type Output } from '../../ui/output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { jsonFacts } from '../../ui/text.ts';
import { drawTop } from './drawing.ts';
import { NO_KEYS, pressed } from './keys.ts';
import { ScreenOutput } from './screen-output.ts';
import { type Moment, TopState } from './top-state.ts';

/** It is drawn anew at most so often, however much happens; */
const LEAST_PAUSE_MS = 250;
/** and at least so often, because times go by. */
const DRAW_EVERY_MS = 1_000;
/** What has happened before it began, so that the last minute is whole; in one request. */
const MOST_EVENTS = 1_000;
/** Elsewhere than on a terminal there is no size to fit into. */
const SNAPSHOT = { columns: 100, rows: 60 };

/**
 * Shows the fleet on a whole screen, as it changes, until somebody has seen enough; elsewhere than
 * on a terminal, once.
 */
export async function top({ flags, output }: Context): Promise<Exit> {
  const isLive = !output.json && isatty(1) && process.env.TERM !== 'dumb';
  if (!isLive) {
    await withHoldfast(flags, (holdfast) => showOnce(holdfast, output));
    return EXIT.ok;
  }
  neverBlock();
  const ending = new StopSignals();
  try {
    await withHoldfast(flags, async (holdfast) => {
      const show = new TopRun(holdfast, output);
      await show.run(ending.asked);
    });
    return EXIT.ok;
  } finally {
    ending.close();
  }
}

async function showOnce(holdfast: Holdfast, output: Output): Promise<void> {
  const picture = await holdfast.fleet.picture();
  const board = new TopState();
  if (!output.json) await recall(holdfast, board);
  const now = momentOf(systemClock);
  board.see({ kind: 'picture', picture }, now);
  output.result(
    {
      ...picture,
      members: picture.members.map((member) => jsonFacts({ ...member })),
      targets: picture.targets.map((target) => jsonFacts({ ...target })),
    },
    () => {
      const style = output.style.bind(output);
      const frame = { ...SNAPSHOT, store: holdfast.storeName, style, keys: null };
      return `${drawTop(board.view(now, NO_KEYS), frame).join('\n')}\n`;
    },
  );
}

/**
 * Tells the board what has happened lately; gives the position to go on from, where there is one.
 */
async function recall({ log }: Holdfast, board: TopState): Promise<{ after?: string }> {
  const { entries } = await log.recall({ most: MOST_EVENTS });
  const now = momentOf(systemClock);
  for (const event of entries.toReversed()) board.hear(event, now);
  const [latest] = entries;
  return latest === undefined ? {} : { after: latest.position };
}

function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** The screen, what is on it, and what changes it. */
class TopRun {
  readonly #holdfast: Holdfast;
  readonly #output: Output;
  readonly #clock: Clock = systemClock;
  readonly #over = new AbortController();
  readonly #board = new TopState();
  readonly #screen: ScreenOutput;
  #keys = NO_KEYS;
  /** While it stands still: what it shows, and of when. */
  #frozen: { readonly board: TopState; readonly now: Moment } | null = null;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(holdfast: Holdfast, output: Output) {
    this.#holdfast = holdfast;
    this.#output = output;
    this.#screen = new ScreenOutput({
      onKeys: (input) => this.#press(input),
      onResize: () => this.#draw(),
      onGone: () => this.#over.abort(),
    });
  }

  async run(asked: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([asked, this.#over.signal]);
    // Who wants to leave does not wait for a request that is under way.
    const ended = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#screen.enter();
    try {
      this.#draw();
      const work = Promise.all([this.#watch(signal), this.#follow(signal)]);
      await Promise.race([work, ended]);
    } finally {
      this.#over.abort();
      this.#timer?.cancel();
      this.#screen.leave();
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    for await (const sighting of this.#holdfast.fleet.watch({ signal })) {
      this.#board.see(sighting, momentOf(this.#clock));
      this.#drawSoon();
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { log } = this.#holdfast;
    // Where the store does not answer now, the last minute begins now.
    const place = await recall(this.#holdfast, this.#board).catch(() => ({}));
    for await (const followed of log.follow({ ...place, signal })) {
      if (followed.kind !== 'event') continue;
      this.#board.hear(followed.event, momentOf(this.#clock));
      this.#drawSoon();
    }
  }

  #press(input: string): void {
    const keys = pressed(this.#keys, input);
    if (keys === null) {
      this.#over.abort();
      return;
    }
    if (keys.isPaused !== this.#keys.isPaused)
      this.#frozen = keys.isPaused
        ? { board: this.#board.copy(), now: momentOf(this.#clock) }
        : null;
    this.#keys = keys;
    // Who types wants to see it.
    this.#draw();
  }

  #drawSoon(): void {
    this.#drawAt(this.#drawnMs + LEAST_PAUSE_MS);
  }

  #drawAt(atMs: number): void {
    if (this.#timerAtMs <= atMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#clock.after(atMs - this.#clock.monotonicMs(), () => this.#draw());
  }

  #draw(): void {
    const { columns, rows } = this.#screen.size;
    const { board, now } = this.#frozen ?? { board: this.#board, now: momentOf(this.#clock) };
    const style = this.#output.style.bind(this.#output);
    const frame = { columns, rows, style, store: this.#holdfast.storeName, keys: this.#keys };
    this.#screen.draw(drawTop(board.view(now, this.#keys), frame));
    this.#drawnMs = this.#clock.monotonicMs();
    this.#timer?.cancel();
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    if (!this.#over.signal.aborted) this.#drawAt(this.#drawnMs + DRAW_EVERY_MS);
  }
}
