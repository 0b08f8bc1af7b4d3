/** The fleet in figures. */
import { members, roundTripMs, type SeenMember, seenAtMs } from '../../data/fleet.ts';
import { counts } from '../../data/lanes.ts';
import { now } from '../../data/now.ts';
import { counted, spanOf } from '../../data/words.ts';
import { Stat } from '../../parts/basics.tsx';

export function CountStats() {
  const { all, owned, unowned, uncertain, notPreferred, paused } = counts.value;
  const { value: there } = members;
  const draining = there.filter(({ isDraining }) => isDraining).length;
  return (
    <div class="stats map-stats">
      <Stat
        name="Targets"
        value={amount(all)}
        note={paused === 0 ? undefined : `${amount(paused)} paused`}
      />
      <Stat name="Owned" value={amount(owned)} note={shareOf(owned, all - paused)} />
      <Stat
        name="Unowned"
        value={amount(unowned)}
        alarm={unowned > 0}
        note={unowned > 0 ? 'nobody polls them' : all > 0 && 'all have an owner'}
      />
      <Stat
        name="Uncertain"
        value={amount(uncertain)}
        alarm={uncertain > 0}
        note={uncertain > 0 ? 'may be lost' : owned > 0 && renewedWords(unowned)}
      />
      <Stat
        name="Not preferred"
        value={amount(notPreferred)}
        note={notPreferred > 0 ? 'well, but elsewhere' : all > 0 && 'none is elsewhere'}
      />
      <Stat
        name="Members"
        value={amount(there.length)}
        note={draining === 0 ? undefined : `${draining} draining`}
        alarm={there.length === 0}
      />
      <Balance all={there} />
      <Store />
    </div>
  );
}

/** Nobody renews what has no owner. */
function renewedWords(unowned: number): string {
  return unowned > 0 ? 'those with an owner are renewed in time' : 'all renewed in time';
}

/** By how much whoever is furthest from it misses its quota. */
function Balance({ all }: { all: readonly SeenMember[] }) {
  let worst: SeenMember | null = null;
  for (const member of all)
    if (!member.isForeign && offBy(member) > (worst === null ? 0 : offBy(worst))) worst = member;
  if (all.length === 0) return <Stat name="Balance" value="–" />;
  if (worst === null) return <Stat name="Balance" value="even" note="each has its quota" />;
  const isOver = worst.owned > worst.quota;
  return (
    <Stat
      name="Balance"
      value={`${isOver ? '+' : '−'}${amount(offBy(worst))}`}
      note={`${worst.name}, of ${amount(worst.quota)}`}
    />
  );
}

function offBy({ owned, quota }: SeenMember): number {
  return Math.abs(owned - quota);
}

function Store() {
  const seenAt = seenAtMs.value;
  const age =
    seenAt === null ? '' : spanOf(Math.max(0, Math.round((now.value - seenAt) / 100) * 100));
  return (
    <Stat
      name="Store round trip"
      value={`${roundTripMs.value.toFixed(roundTripMs.value < 10 ? 1 : 0)} ms`}
      note={`seen ${age} ago`}
    />
  );
}

function amount(count: number): string {
  return count.toLocaleString('en');
}

function shareOf(part: number, whole: number): string | undefined {
  if (whole === 0) return undefined;
  return part === whole ? 'all' : `of ${counted(whole, 'target')}`;
}
