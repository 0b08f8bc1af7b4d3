/** What a timeline shows: its window, what is chosen in it, and what its address says of that. */
import { computed, effect, type Signal, signal } from '@preact/signals';
import { listVersion, members, targets } from '../../data/fleet.ts';
import { explain, type Gap, gapsOf } from '../../data/gaps.ts';
import { now } from '../../data/now.ts';
import type { Mark } from '../../data/story.ts';
import { type Tenure, withPresent } from '../../data/tenures.ts';
import { place, setQuery } from '../../router.ts';
import { WORDS } from './instance-words.ts';
import type { Window } from './lane.ts';
import { ownedOver, type Step } from './owned.ts';
import { Reading } from './reading.ts';
import { endsOf, queryOf, type Span, spanOfQuery } from './span.ts';

export type Chosen =
  | { readonly kind: 'gap'; readonly gap: Gap }
  | { readonly kind: 'gaps'; readonly gaps: readonly Gap[] }
  | { readonly kind: 'marks'; readonly marks: readonly Mark[] };

/** What stands in the address follows what is dragged after this pause: browsers refuse to change it all the time. */
const WRITE_AFTER_MS = 300;
/** Whatever has to look at all targets does so at most this often. */
const SURVEY_MS = 1_000;

export class Scene {
  readonly reading = new Reading();
  readonly span: Signal<Span> = signal(spanOfQuery(place.peek().query));
  readonly chosen: Signal<Chosen | null> = signal(null);
  readonly trackPx = signal(800);
  readonly by = computed(() => (place.value.query.get('by') === 'member' ? 'member' : 'target'));
  readonly filter = computed(() => place.value.query.get('q') ?? '');
  readonly isChangedOnly = computed(() => place.value.query.get('changed') === '1');
  /** Ticks slowly. */
  readonly #survey = computed(() => Math.floor(now.value / SURVEY_MS));
  #writing: ReturnType<typeof setTimeout> | null = null;
  readonly #stops: (() => void)[] = [];

  start(): void {
    this.reading.start();
    this.#stops.push(
      effect(() => {
        const { from } = this.window.value;
        this.reading.reach(from);
      }),
      effect(() => {
        const asked = spanOfQuery(place.value.query);
        const shown = this.span.peek();
        if (this.#writing !== null) return;
        if (asked.lengthMs !== shown.lengthMs || asked.until !== shown.until)
          this.span.value = asked;
      }),
    );
  }

  stop(): void {
    for (const stop of this.#stops) stop();
    if (this.#writing !== null) clearTimeout(this.#writing);
    this.reading.stop();
  }

  move(span: Span): void {
    this.span.value = span;
    this.#writing ??= setTimeout(() => {
      this.#writing = null;
      if (place.peek().view === 'timeline') setQuery(queryOf(this.span.peek()));
    }, WRITE_AFTER_MS);
  }

  /** By the server's clock. */
  wallNow(): number {
    return this.reading.wall(now.value);
  }

  readonly window = computed((): Window => {
    const at = this.wallNow();
    return { ...endsOf(this.span.value, at), now: at };
  });

  /** In order of id: those of the fleet, and those that were there. */
  readonly #allTargets = computed(() => {
    listVersion.value;
    this.#known.value;
    const told = this.reading.story.targets().keys();
    return [...new Set([...targets.keys(), ...told])].sort();
  });

  /** Grows only when the log names a target that was not known: the list of all is long. */
  readonly #known = computed(() => {
    this.reading.version.value;
    return this.reading.story.targets().size;
  });

  readonly lanes = computed((): readonly string[] => {
    const wanted = this.filter.value.toLowerCase();
    const all = this.by.value === 'member' ? this.#allMembers.value : this.#shownTargets.value;
    return wanted === '' ? all : all.filter((id) => id.toLowerCase().includes(wanted));
  });

  readonly #shownTargets = computed(() => {
    if (!this.isChangedOnly.value) return this.#allTargets.value;
    this.#survey.value;
    const { from } = this.window.peek();
    const told = this.reading.story.targets();
    return [...told].flatMap(([id, at]) => (at >= from ? [id] : [])).sort();
  });

  /** Those that are there, and those that were at some time of the window. */
  readonly #allMembers = computed(() => {
    this.#survey.value;
    const { from, to } = this.window.peek();
    const shown = new Set(members.value.map(({ id }) => id));
    for (const { who, kind, at } of this.reading.story.marks())
      if (who !== null && LIVES.has(kind) && at >= from && at <= to) shown.add(who);
    for (const [who, steps] of this.owned.value)
      if (steps.some(({ at, owned }) => at >= from || owned > 0)) shown.add(who);
    return [...shown].sort();
  });

  /** By the instance that they are about. */
  readonly marksBy = computed(() => {
    this.reading.version.value;
    const by = new Map<string | null, Mark[]>();
    for (const mark of this.reading.story.marks()) {
      const known = by.get(mark.who) ?? [];
      by.set(mark.who, known);
      known.push(mark);
    }
    return by;
  });

  /** Those that last. */
  readonly bands = computed(() => {
    this.reading.version.value;
    return this.reading.story.marks().filter(({ until }) => until !== null);
  });

  /** Looks at all targets, so only while lanes are members. */
  readonly owned = computed((): ReadonlyMap<string, readonly Step[]> => {
    this.#survey.value;
    if (this.by.value !== 'member') return new Map();
    return ownedOver(this.#allTargets.value.map((id) => this.tenures(id)));
  });

  tenures(target: string): readonly Tenure[] {
    const seen = targets.get(target);
    const known = this.reading.story.tenures(target);
    if (seen === undefined) return known;
    const { owner, movedAtMs } = seen;
    const since = movedAtMs === null ? null : this.reading.wall(movedAtMs);
    return withPresent(known, { owner, since }, this.wallNow());
  }

  gaps(target: string): readonly Gap[] {
    return gapsOf(target, this.tenures(target), this.reading.story.marksOf(target));
  }

  explain(gap: Gap) {
    return explain(gap, this.reading.story.marks(), WORDS);
  }
}

/** What happens to members as members. */
const LIVES = new Set(['crash', 'left', 'joined', 'drain']);
