/** The fleet in one sentence and a few figures. Figures that are zero are left out: what needs attention comes first, and is larger. */
import { members, roundTripMs, type SeenMember } from '../../data/fleet.ts';
import { type Counts, counts } from '../../data/lanes.ts';
import { counted } from '../../data/words.ts';
import { Stat, type StatProps } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';

export function CountStats() {
  const known = counts.value;
  const { value: there } = members;
  return (
    <section class="summary" aria-label="Fleet status">
      <Headline known={known} instances={there.length} />
      <div class="summary-stats">
        {figuresOf(known, there).map((figure) => (
          <Stat key={figure.name} {...figure} />
        ))}
      </div>
    </section>
  );
}

function Headline({ known, instances }: { known: Counts; instances: number }) {
  const { tone, title, note } = headlineOf(known, instances);
  return (
    <p class={`headline ${tone}`} role="status">
      <Icon name={tone === 'good' ? 'check' : tone === '' ? 'ring' : 'warning'} />
      <span>
        <strong>{title}</strong> {note}
      </span>
    </p>
  );
}

export interface Headline {
  readonly tone: 'good' | 'warn' | 'bad' | '';
  readonly title: string;
  readonly note: string;
}

/** How the fleet is doing, in a sentence: the worst of what there is. */
export function headlineOf(
  { all, owned, unowned, uncertain, orphaned, paused }: Omit<Counts, 'notPreferred'>,
  instances: number,
): Headline {
  const active = all - paused;
  if (instances === 0 && all > 0)
    return { tone: 'bad', title: 'No instance is running.', note: 'No target is polled.' };
  if (all === 0) return { tone: '', title: 'The fleet has no targets yet.', note: '' };
  if (unowned > 0) {
    const verb = unowned === 1 ? 'has' : 'have';
    const title = `${amount(unowned)} of ${counted(active, 'target')} ${verb} no owner.`;
    return { tone: 'bad', title, note: 'No instance polls them.' };
  }
  if (orphaned > 0) {
    const whose =
      orphaned === 1
        ? 'The owner of 1 target shows'
        : `The owners of ${amount(orphaned)} targets show`;
    const note = 'Other instances take over when the leases expire.';
    return { tone: 'bad', title: `${whose} no sign of life.`, note };
  }
  if (uncertain > 0) {
    const title = `${counted(uncertain, 'target')} may lose ${uncertain === 1 ? 'its owner' : 'their owners'}.`;
    return { tone: 'warn', title, note: `All ${counted(owned, 'target')} have an owner now.` };
  }
  if (active === 0)
    return { tone: '', title: `All ${counted(all, 'target')} are paused.`, note: '' };
  const title =
    active === 1 ? 'The one target has an owner.' : `All ${amount(active)} targets have an owner.`;
  return { tone: 'good', title, note: 'Every lease is renewed in time.' };
}

function figuresOf(
  { all, unowned, uncertain, orphaned, notPreferred, paused }: Counts,
  there: readonly SeenMember[],
): readonly StatProps[] {
  const draining = there.filter(({ isDraining }) => isDraining).length;
  const roundTrip = `${roundTripMs.value.toFixed(roundTripMs.value < 10 ? 1 : 0)} ms`;
  const some = (count: number, figure: Omit<StatProps, 'value'>): readonly StatProps[] =>
    count === 0 ? [] : [{ ...figure, value: amount(count) }];
  return [
    ...some(unowned, { name: 'Without owner', tone: 'bad' }),
    ...some(orphaned, { name: 'Owner gone', tone: 'bad' }),
    ...some(uncertain - orphaned, { name: 'Uncertain', tone: 'warn' }),
    { name: 'Targets', value: amount(all) },
    {
      name: 'Instances',
      value: amount(there.length),
      ...(draining > 0 && { note: `${draining} draining` }),
      ...(there.length === 0 && { tone: 'bad' as const }),
    },
    ...some(paused, { name: 'Paused', tone: 'quiet' }),
    ...some(notPreferred, { name: 'Not preferred', tone: 'quiet' }),
    ...balanceOf(there),
    { name: 'Store round trip', value: roundTrip, tone: 'quiet' },
  ];
}

/** By how much the instance that is furthest from its quota misses it; nothing while all have theirs. */
function balanceOf(all: readonly SeenMember[]): readonly StatProps[] {
  let worst: SeenMember | null = null;
  for (const member of all)
    if (!member.isForeign && offBy(member) > (worst === null ? 0 : offBy(worst))) worst = member;
  if (worst === null) return [];
  const value = `${worst.owned > worst.quota ? '+' : '−'}${amount(offBy(worst))}`;
  const note = `${worst.name}, quota ${amount(worst.quota)}`;
  return [{ name: 'Off balance', value, note, tone: 'quiet' }];
}

function offBy({ owned, quota }: SeenMember): number {
  return Math.abs(owned - quota);
}

function amount(count: number): string {
  return count.toLocaleString('en');
}
