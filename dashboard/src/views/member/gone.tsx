/** A member that is not there any more: what has become of it, and of what it had. */
import { members, type SeenTarget } from '../../data/fleet.ts';
import { nameOf } from '../../data/palette.ts';
import { counted, exactly, moment } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';
import { EventList } from './event-list.tsx';
import type { MemberEvents } from './member-events.ts';
import { heirsOf, leavingOf } from './story.ts';
import { Takers } from './takers.tsx';

export function Gone({
  id,
  known,
  owned,
}: {
  id: string;
  known: MemberEvents;
  owned: readonly SeenTarget[];
}) {
  const name = nameOf(id);
  const successor = members.value.find((member) => member.name === name);
  return (
    <>
      <Panel title={`${name} is gone`}>
        <div class="gone">
          <What id={id} known={known} />
          {owned.length > 0 && (
            <p class="bad">
              ▲ The store still says that it owns {counted(owned.length, 'target')}: others take
              them when their leases run out.
            </p>
          )}
          {successor !== undefined && (
            <p>
              An instance of the same name is there: <Owner id={successor.id} />{' '}
              <code class="small">{successor.id}</code>
            </p>
          )}
          <a href={hrefOf('members')}>All members</a>
        </div>
      </Panel>
      <EventList id={id} known={known} />
    </>
  );
}

function What({ id, known }: { id: string; known: MemberEvents }) {
  const leaving = leavingOf(id, known.events);
  const failed = heirsOf(id, known.events, { how: 'failover' });
  const handed = heirsOf(id, known.events, { how: 'handover' });
  if (leaving === null && failed.count === 0)
    return (
      <p>
        {known.isWhole
          ? 'No heartbeat of it is in the store, and the log does not say what has become of it.'
          : 'Reading what has become of it …'}
      </p>
    );
  return (
    <>
      {leaving !== null && (
        <p>
          {leaving.isExpired
            ? 'Its heartbeat ran out: it was killed, froze, or lost the store.'
            : 'It left, and said so.'}{' '}
          <Owner id={leaving.noticedBy} /> noticed at {moment(leaving.at)}.
        </p>
      )}
      {failed.count > 0 && (
        <>
          <p>
            {counted(failed.count, 'target')} ran out with it, and others took over, the last at{' '}
            {moment(failed.lastAt)}. The longest gap was {exactly(failed.gapMs)}.
          </p>
          <Takers heirs={failed} />
        </>
      )}
      {handed.count > 0 && (
        <>
          <p>It handed {counted(handed.count, 'target')} over while it lived.</p>
          <Takers heirs={handed} />
        </>
      )}
    </>
  );
}
