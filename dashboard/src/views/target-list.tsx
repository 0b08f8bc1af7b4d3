/** Targets as a list. */
import type { SeenTarget } from '../data/fleet.ts';
import { isNarrow } from '../data/narrow.ts';
import { now } from '../data/now.ts';
import { markOf } from '../data/palette.ts';
import { levelOf, wordsFor } from '../data/states.ts';
import { termsOf, timeLeft } from '../data/ttl.ts';
import { spanOf } from '../data/words.ts';
import { Meter, Owner } from '../parts/basics.tsx';
import { Icon } from '../parts/icon.tsx';
import { Rows } from '../parts/rows.tsx';
import { hrefOf } from '../router.ts';
import '../style/target-list.css';

/** On a wide and on a narrow screen, where a target has two lines. */
const ROW_HEIGHTS = [36, 58] as const;

export function TargetList({
  items,
  label,
  height,
  owner = true,
}: {
  items: readonly SeenTarget[];
  label: string;
  height: number;
  /** Whether to show the owners. */
  owner?: boolean;
}) {
  return (
    <Rows
      {...{ items, label, height }}
      rowHeight={ROW_HEIGHTS[isNarrow.value ? 1 : 0]}
      keyOf={({ id }) => id}
      row={(target) => <TargetRow target={target} hasOwner={owner} />}
    />
  );
}

function TargetRow({ target, hasOwner }: { target: SeenTarget; hasOwner: boolean }) {
  const level = levelOf(target);
  return (
    <div class="target-row">
      <a class="target-id mono" href={hrefOf('targets', target.id)} title={target.id}>
        {target.id}
      </a>
      {hasOwner && (
        <span class="target-owner">
          <Owner id={target.owner} />
        </span>
      )}
      <span class={`target-state ${level ?? 'quiet'}`}>
        {level !== undefined && <Icon name="warning" />}
        {wordsFor(target).join(', ')}
      </span>
      <TimeCell target={target} />
    </div>
  );
}

function TimeCell({ target }: { target: SeenTarget }) {
  const left = timeLeft(target, termsOf(target.owner), now.value);
  if (left === null) return <span class="target-time quiet">no lease</span>;
  const colour = target.owner === null ? undefined : markOf(target.owner).colour;
  return (
    <span class="target-time">
      <Meter
        share={left.share}
        label={`Lease of ${target.id} left`}
        {...(colour !== undefined && { colour })}
      />
      {left.isAtLeast && '≥ '}
      {spanOf(left.ms < 1_000 ? Math.round(left.ms / 100) * 100 : left.ms)}
    </span>
  );
}
