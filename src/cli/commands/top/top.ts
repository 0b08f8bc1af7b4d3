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

/** The screen is drawn at most this often, however many events come, */
const MIN_PAUSE_MS = 250;
/** and at least this often, because the times on it change. */
const DRAW_EVERY_MS = 1_000;
/** Events from before the start, read in one request: so the last minute is complete. */
const MAX_EVENTS = 1_000;
/** The size without a terminal. */
const SNAPSHOT = { columns: 100, rows: 60 };

/** Shows the fleet on the whole screen until the user quits. Without a terminal, prints it once. */
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
  const state = new TopState();
  if (!output.json) await recall(holdfast, state);
  const now = momentOf(systemClock);
  state.update({ kind: 'picture', picture }, now);
  output.result(
    {
      ...picture,
      members: picture.members.map((member) => jsonFacts({ ...member })),
      targets: picture.targets.map((target) => jsonFacts({ ...target })),
    },
    () => {
      const style = output.style.bind(output);
      const frame = { ...SNAPSHOT, store: holdfast.storeName, style, keys: null };
      return `${drawTop(state.view(now, NO_KEYS), frame).join('\n')}\n`;
    },
  );
}

/** Adds the latest events to the state. Returns the position after them, if there are any. */
async function recall({ log }: Holdfast, state: TopState): Promise<{ after?: string }> {
  const { entries } = await log.recall({ most: MAX_EVENTS });
  const now = momentOf(systemClock);
  for (const event of entries.toReversed()) state.addEvent(event, now);
  const [latest] = entries;
  return latest === undefined ? {} : { after: latest.position };
}

function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** One run on a terminal: reads the fleet and the log, and draws the screen. */
class TopRun {
  readonly #holdfast: Holdfast;
  readonly #output: Output;
  readonly #clock: Clock = systemClock;
  readonly #over = new AbortController();
  readonly #state = new TopState();
  readonly #screen: ScreenOutput;
  #keys = NO_KEYS;
  /** While paused: the state that the screen shows, and its time. */
  #frozen: { readonly state: TopState; readonly now: Moment } | null = null;
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
    // A user who quits does not wait for a request in flight.
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
      this.#state.update(sighting, momentOf(this.#clock));
      this.#drawSoon();
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { log } = this.#holdfast;
    // If the store does not answer now, the last minute begins now.
    const place = await recall(this.#holdfast, this.#state).catch(() => ({}));
    for await (const followed of log.follow({ ...place, signal })) {
      if (followed.kind !== 'event') continue;
      this.#state.addEvent(followed.event, momentOf(this.#clock));
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
        ? { state: this.#state.copy(), now: momentOf(this.#clock) }
        : null;
    this.#keys = keys;
    // Typed keys show at once.
    this.#draw();
  }

  #drawSoon(): void {
    this.#drawAt(this.#drawnMs + MIN_PAUSE_MS);
  }

  #drawAt(atMs: number): void {
    if (this.#timerAtMs <= atMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#clock.after(atMs - this.#clock.monotonicMs(), () => this.#draw());
  }

  #draw(): void {
    const { columns, rows } = this.#screen.size;
    const { state, now } = this.#frozen ?? { state: this.#state, now: momentOf(this.#clock) };
    const style = this.#output.style.bind(this.#output);
    const frame = { columns, rows, style, store: this.#holdfast.storeName, keys: this.#keys };
    this.#screen.draw(drawTop(state.view(now, this.#keys), frame));
    this.#drawnMs = this.#clock.monotonicMs();
    this.#timer?.cancel();
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    if (!this.#over.signal.aborted) this.#drawAt(this.#drawnMs + DRAW_EVERY_MS);
  }
}
