/** Drains an instance, shows the progress, and undoes it. */
import { useState } from 'preact/hooks';
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { client } from '../../data/access.ts';
import type { SeenMember } from '../../data/fleet.ts';
import { now } from '../../data/now.ts';
import { serverWallOf } from '../../data/server-time.ts';
import { counted, shellWord, spanOf } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';
import { AsCli } from '../../parts/as-cli.tsx';
import { Meter, Panel } from '../../parts/basics.tsx';
import { drainingSince, heirsOf } from './story.ts';
import { Takers } from './takers.tsx';

export function DrainActions({ member: { id, name, isDraining } }: { member: SeenMember }) {
  return isDraining ? (
    <Action
      name="Undo the drain"
      effect={`${name} stops draining and gets its share of the targets again.`}
      cli={`holdfast undrain ${shellWord(id)}`}
      scope="v3:admin"
      run={() => client.undrain(id)}
    />
  ) : (
    <Action
      name="Drain"
      effect={`${name} hands over its targets, one after the other and without a gap, and takes no new ones until you undo the drain. Its process keeps running.`}
      cli={`holdfast drain ${shellWord(id)}`}
      scope="v3:admin"
      run={() => client.drain(id)}
    />
  );
}

export function DrainProgress({
  member,
  events,
  left,
}: {
  member: SeenMember;
  events: readonly ApiEvent[];
  left: number;
}) {
  const [openedAt] = useState(serverWallOf(now.peek()));
  const since = drainingSince(member.id, events) ?? openedAt;
  const heirs = heirsOf(member.id, events, { since });
  const total = heirs.count + left;
  const isDone = left === 0;
  const untilMs = isDone && heirs.lastAt > 0 ? heirs.lastAt : serverWallOf(now.value);
  const elapsedMs = Math.max(0, untilMs - since);
  return (
    <Panel
      title={isDone ? 'Drained' : 'Draining'}
      aside={<>for {spanOf(serverWallOf(now.value) - since)}</>}
    >
      <div class="drain">
        <Meter
          share={total === 0 ? 1 : heirs.count / total}
          label={`${heirs.count} of ${total} handed over`}
        />
        <dl class="drain-facts">
          <div>
            <dt>left</dt>
            <dd>{counted(left, 'target')}</dd>
          </div>
          <div>
            <dt>handed over</dt>
            <dd>{heirs.count}</dd>
          </div>
          <div>
            <dt>{isDone ? 'took' : 'elapsed'}</dt>
            <dd>{spanOf(elapsedMs)}</dd>
          </div>
          <div>
            <dt>estimated</dt>
            <dd>{estimate(isDone, heirs.count, left, elapsedMs)}</dd>
          </div>
        </dl>
        <Takers heirs={heirs} />
        {isDone && (
          <p class="quiet">
            It owns no targets now, so you can stop its process without a gap. Or undo the drain:
          </p>
        )}
        <div class="buttons">
          <DrainActions member={member} />
          <AsCli command={`holdfast undrain ${shellWord(member.id)}`} />
        </div>
      </div>
    </Panel>
  );
}

function estimate(isDone: boolean, moved: number, left: number, elapsedMs: number): string {
  if (isDone) return 'done';
  return moved === 0 ? 'unknown' : `${spanOf((elapsedMs / moved) * left)} more`;
}
