/** An instance that is gone: how it ended, and who has its targets. */
import { members, type SeenTarget } from '../../data/fleet.ts';
import { nameOf } from '../../data/palette.ts';
import { counted, exactly, moment } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
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
              <Icon name="warning" /> The store still names it as the owner of{' '}
              {counted(owned.length, 'target')}. Other instances take over when the leases expire.
            </p>
          )}
          {successor !== undefined && (
            <p>
              It has been restarted: <Owner id={successor.id} /> is its new instance.
            </p>
          )}
          <a href={hrefOf('members')}>All instances</a>
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
          ? 'The store has no heartbeat of this instance, and the log does not say how it ended.'
          : 'Loading its events …'}
      </p>
    );
  return (
    <>
      {leaving !== null && (
        <p>
          {leaving.isExpired
            ? 'Its heartbeat expired: its process was killed or frozen, or could not reach the store.'
            : 'It stopped normally.'}{' '}
          <Owner id={leaving.noticedBy} /> noticed at {moment(leaving.at)}.
        </p>
      )}
      {failed.count > 0 && (
        <>
          <p>
            The leases of {counted(failed.count, 'target')} expired. Other instances took over, the
            last at {moment(failed.lastAt)}. The longest gap was {exactly(failed.gapMs)}.
          </p>
          <Takers heirs={failed} />
        </>
      )}
      {handed.count > 0 && (
        <>
          <p>It handed over {counted(handed.count, 'target')} before it ended.</p>
          <Takers heirs={handed} />
        </>
      )}
    </>
  );
}
